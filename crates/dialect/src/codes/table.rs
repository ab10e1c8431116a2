//! The entries.

use super::Example::{Command, Host, Policy};
use super::{Code, CodeEntry};

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $example:expr; $explanation:literal)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*

        /// Every code, in order.
        pub const CODES: &[CodeEntry] = &[
            $(CodeEntry { code: $name, title: $title, explanation: $explanation, example: $example },)*
        ];
    };
}

codes! {
    FILE_UNREADABLE "RF0001" "a policy file cannot be read"
        Command("ringfence run --policy missing.toml -- make");
        "A policy that exists but cannot be read may hold a denial or a ceiling, so nothing is run without it. A managed \
         file must belong to root and be writable by root alone."
    WORKSPACE "RF0002" "the workspace cannot be used"
        Command("cd / && ringfence run -- make");
        "The workspace is the folder in which the command works, and everything in it is writable. It must exist, be a \
         folder, and not be `/`, the home folder or one that holds it: start in a project, or name one with `--workspace`."
    PROGRAM_MISSING "RF0003" "the program was not found"
        Command("ringfence run -- no-such-program");
        "The program is searched in `PATH` as a shell does. Exit status 127."
    PROGRAM_NOT_EXECUTABLE "RF0004" "the program cannot be executed"
        Command("ringfence run -- ./README.md");
        "The file is there, but it may not be executed or its format is unknown. Exit status 126."
    OWN_FILES "RF0005" "ringfence's own files cannot be used"
        Host("a full disk, an audit file in a folder that does not exist, a home folder that belongs to somebody else");
        "Ringfence keeps the private homes below `XDG_DATA_HOME`, trust and the log below `XDG_STATE_HOME`. They must be \
         the user's own, and nothing that runs behind the walls may reach them: it could widen the next run."
    PORT_TAKEN "RF0006" "a port cannot be published"
        Command("ringfence run --publish 3000 -- npm start");
        "A published port is opened on the host's own loopback under the same number, so it must be free there."

    SYNTAX "RF0100" "the file is not TOML"
        Policy("version = 1\n[network\nallow = []\n");
        "Policy files are TOML 1.1. Text values stand in quotes: `memory = \"8G\"`."
    VERSION_MISSING "RF0101" "the version is missing"
        Policy("[network]\nallow = [\"api.example.com\"]\n");
        "A policy file says `version = 1` at its top, so that a later format cannot be taken for this one."
    VERSION "RF0102" "the version is not supported"
        Policy("version = 2\n");
        "This program reads version 1. A file of another version was written for another program, and reading it as \
         version 1 could allow what it denies."
    UNKNOWN_KEY "RF0103" "unknown key"
        Policy("version = 1\n[network]\nallow_hosts = [\"api.example.com\"]\n");
        "A key that is not known is an error, because a denial with a spelling mistake would otherwise deny nothing. The \
         message names the key that was most likely meant."
    WRONG_TYPE "RF0104" "a value has the wrong type"
        Policy("version = 1\n[files]\nwrite = \".\"\n");
        "Lists are written `[\"a\", \"b\"]`, also with one entry. A rule in a list is a text, or a table \
         `{ rule = \"...\", why = \"...\" }` that gives a reason with it."
    DUPLICATE_KEY "RF0105" "a key is written twice"
        Policy("version = 1\n[network]\nallow = [\"a.example.com\"]\nallow = [\"b.example.com\"]\n");
        "TOML knows no second value for a key. Write one list."
    VALUE "RF0106" "a value is not one of those that can be"
        Policy("version = 1\n[files]\nhome = \"privat\"\n");
        "The message lists the values that can be written there."
    KEY_MISSING "RF0107" "a key is missing"
        Policy("version = 1\n[[network.rule]]\nmethods = [\"GET\"]\n");
        "The table says nothing without this key."
    HOST "RF0108" "a host is malformed"
        Policy("version = 1\n[network]\nallow = [\"https://api.example.com/v1\"]\n");
        "A host is written `name`, `name:port`, `*.name`, an address, `[v6]:port`, or a network `10.0.0.0/8`: without a \
         scheme, a path or a user. Names that are not ASCII are written as A-labels (`xn--...`)."
    HOST_TOO_WIDE "RF0109" "a host pattern is too wide"
        Policy("version = 1\n[network]\nallow = [\"*.com\"]\n");
        "`*`, `*.com` and wildcards below other public suffixes let the command send anything it can read to anybody \
         who registers a name there. Name the hosts. Where that is truly meant, write \
         `{ rule = \"*\", force = true, why = \"...\" }` in a policy file."
    PORT "RF0110" "a port is impossible"
        Policy("version = 1\n[network]\nports = { host = [0] }\n");
        "Ports are numbers from 1 to 65535. Behind a host stands one port, or `*` for all: `example.com:8443`, `example.com:*`."
    SET_UNKNOWN "RF0111" "unknown set of hosts"
        Policy("version = 1\n[network]\nallow = [\"@npmjs\"]\n");
        "`@npm`, `@pypi`, `@crates`, `@debian`, `@go` and `@maven` stand for the registries for which this machine's own \
         clients are set up, mirrors included. They stand alone, without a port."
    SET_UNRESOLVED "RF0112" "a set of hosts stands for nothing here"
        Host("`@go` in a policy, on a machine without a Go toolchain");
        "The client could not be asked, or its configuration names no registry. The set allows nothing in this run; \
         everything else holds."
    PATH "RF0113" "a path cannot be used"
        Policy("version = 1\n[files]\nwrite = [\"$HOME/work\"]\n");
        "Paths are absolute, start with `~/`, or are relative: to the workspace in user and managed policies and in \
         presets, to the file's own folder in a repository's `ringfence.toml`, to the working directory in flags. \
         Variables and other users' homes are not expanded."
    GLOB "RF0114" "a pattern is malformed"
        Policy("version = 1\n[files]\ndeny_read = [\"**/secret[\"]\n");
        "In a pattern `*` and `?` match within one name, `**` any number of names, `[ab]` one of these characters, \
         `{a,b}` one of these texts. `..` cannot stand behind a wildcard. A flag's path is never a pattern."
    GLOB_HERE "RF0115" "a pattern where one path is needed"
        Policy("version = 1\n[unix]\nallow = [\"/run/*.sock\"]\n");
        "Sockets, files to copy and files of secrets are named one by one."
    SIZE "RF0116" "a size is malformed"
        Policy("version = 1\n[limits]\nmemory = \"lots\"\n");
        "Sizes are a number and a unit: `512M`, `8G`, `1.5T`. Units are powers of 1024 (K, M, G, T; `GB` and `GiB` mean \
         the same). A number alone is a number of bytes."
    DURATION "RF0117" "a time is malformed"
        Policy("version = 1\n[limits]\nwall = \"2 fortnights\"\n");
        "Times are numbers with units: `90s`, `15m`, `2h`, `1d`, `1h30m`, `500ms`. A number without a unit is refused, \
         because one would have to guess it."
    RANGE "RF0118" "a number is out of range"
        Policy("version = 1\n[limits]\npids = 0\n");
        "Limits are at least 1; leave a limit out to set none."
    DUPLICATE_RULE "RF0119" "a rule is written twice"
        Policy("version = 1\n[network]\nallow = [\"api.example.com\", \"api.example.com\"]\n");
        "The second has no effect. This is a warning."
    ENV_NAME "RF0120" "a variable's name or value is impossible"
        Policy("version = 1\n[env]\ndeny = [\"AWS_SECRET=1\"]\n");
        "Names hold no `=`, no white space and no NUL; in patterns `*` is the only wildcard. Names that are set are \
         letters, digits and `_`. Values are text without a NUL."
    PRESET_UNKNOWN "RF0121" "unknown preset"
        Policy("version = 1\npreset = [\"ruby-on-rails\"]\n");
        "`ringfence preset list` prints the presets, `ringfence preset show NAME` what one says."
    CEILING "RF0122" "a ceiling outside of a managed policy"
        Policy("version = 1\n[ceiling]\nhosts = [\"*.example.com\"]\n");
        "Only `/etc/ringfence/policy.toml` and `/etc/ringfence/policy.d/*.toml` can set what nobody below may exceed."
    UPSTREAM "RF0123" "the parent proxy is malformed"
        Policy("version = 1\n[network]\nupstream = \"socks5://proxy.example.com\"\n");
        "Write `http://host:port`, or `environment` to take the launcher's own `HTTPS_PROXY`, `HTTP_PROXY` and \
         `NO_PROXY`. A name or password in the address is refused: it would stand in a file that others read."
    REQUEST "RF0124" "a request rule is malformed"
        Policy("version = 1\n[[network.rule]]\nhost = \"api.example.com\"\nmethods = [\"get\"]\npaths = [\"repos\"]\n");
        "Methods are upper-case words (`GET`); paths start with `/` and may hold `*` and `**`. The host is one name or a \
         wildcard, without a port."
    CREDENTIAL "RF0125" "a credential is malformed"
        Policy(
            "version = 1\n[[credential]]\nname = \"github\"\nsource = { env = \"GH_TOKEN\", file = \"~/token\" }\n\
             for = [\"api.example.com\"]\ninject = { header = \"Authorization\", format = \"Bearer\" }\n",
        );
        "A credential has a name, one source (`env`, `file`, `exec` or `keyring`), the hosts that get it, and the header \
         it goes into, with a format that holds `{}` once."
    CREDENTIAL_HOST "RF0126" "a credential for a host that is not exact"
        Policy(
            "version = 1\n[[credential]]\nname = \"github\"\nsource = { env = \"GH_TOKEN\" }\n\
             for = [\"*.example.com\"]\ninject = { header = \"Authorization\" }\n",
        );
        "A secret goes to hosts that are named one by one. Below a wildcard anybody could own a name."
    PROTECTED_NAME "RF0127" "a protected name is malformed"
        Policy("version = 1\n[files]\nprotect = [\"/etc/passwd\"]\n");
        "Protected names are relative: one or more names that are looked for at any depth below every writable folder, \
         such as `.git/hooks` or `.claude/settings*.json`. For one certain path use `deny_write`."
    TOO_LARGE "RF0128" "a policy is too large"
        Host("a policy file of more than a megabyte");
        "A policy is a page or two; more is a mistake."
    NOT_UTF8 "RF0129" "a policy is not UTF-8"
        Host("a policy file that was saved as Latin-1");
        "TOML files are UTF-8. The message names the first byte that is not."
    FLAG_VALUE "RF0130" "a flag's value is not text"
        Host("a host name with bytes that are not UTF-8, given to `--allow-host`");
        "Hosts, sizes, times and names of presets and variables are text. Only paths may hold any bytes."
    ADDRESS "RF0131" "a network address is malformed"
        Policy("version = 1\n[network]\nallow = [{ rule = \"git.example.com\", addresses = [\"intern\"] }]\n");
        "`addresses` names the private networks to which the names of a rule may resolve: an address, or a network as \
         `10.0.0.0/8`. Addresses of metadata services are never opened by it."
    CREDENTIAL_NAME "RF0132" "two credentials have one name"
        Policy(
            "version = 1\n[[credential]]\nname = \"a\"\nsource = { env = \"A\" }\nfor = [\"a.example.com\"]\n\
             inject = { header = \"X-A\" }\n[[credential]]\nname = \"a\"\nsource = { env = \"B\" }\n\
             for = [\"b.example.com\"]\ninject = { header = \"X-B\" }\n",
        );
        "The name is all that the log says of a credential, so it must tell which one it was."

    USERNS "RF0201" "this host forbids unprivileged user namespaces"
        Host("kernel.apparmor_restrict_unprivileged_userns = 1 (Ubuntu 24.04 and later), or a container's seccomp profile");
        "The wall is built in a user namespace. `ringfence doctor` says what forbids it here and what to do. \
         `--allow-weaker` accepts a wall without it, where there is one."
    PLAN_LINK "RF0202" "a writable root is a link out of its folder"
        Host("`--write build`, where `build` is a symlink to `/srv/shared`");
        "What was meant to be writable is not what would become writable. Name the target itself."
    PLAN_MISSING "RF0203" "a path that must exist does not"
        Command("ringfence run --write no/such/folder -- make");
        "A writable root, a socket or a file to copy that was named by hand must exist before the run. Presets may name \
         what is not there."
    PLAN_MATCHES "RF0204" "a pattern matches too many files"
        Policy("version = 1\n[files]\ndeny_read = [\"/**/*\"]\n");
        "Each match is covered by a mount of its own. Deny the folder that holds them."
    UNENFORCEABLE "RF0205" "a rule that no wall can hold"
        Policy("version = 1\n[[network.rule]]\nhost = \"api.example.com\"\nmethods = [\"GET\"]\n");
        "A rule that cannot be enforced stops the run; it is never dropped. The message says which layer lacks what."
    WEAKER "RF0206" "a layer is weaker than designed"
        Host("a kernel without Landlock");
        "Nothing gets weaker silently. `ringfence doctor` says what would make the layer whole; `--allow-weaker` or \
         `[walls] allow_weaker = true` accepts it as it is."
    VIEW "RF0207" "a folder could not be read while patterns were expanded"
        Host("`deny_read = [\"**/.env\"]` with a folder in the workspace that the user may not list");
        "A pattern that might match something there cannot be enforced."
    BUILD "RF0208" "a step of building the wall failed"
        Host("no `/proc`, a full disk, a system call that another sandbox refuses");
        "The message names the system call and its arguments. Nothing was started."
    PROOF "RF0209" "the wall did not hold when it was tried"
        Host("a write outside of the writable roots that succeeded");
        "Before the command starts, its own process tries what must fail and what must work. A surprise stops the run. \
         `--no-prove` skips it."

    PROJECT_GRANT "RF0301" "a grant of a project's policy is left out, because the project is not trusted"
        Policy("# ringfence.toml of a repository\nversion = 1\n[network]\nallow = [\"collect.example.com\"]\n");
        "A file that a repository brings only narrows: its denials and stricter limits hold, its grants do not. Read it, then say `ringfence trust`; that pins this very content."
    CEILING_IGNORED "RF0302" "a ceiling outside of a managed policy is ignored"
        Host("a program that uses the library and puts a ceiling into a source that is not managed");
        "The parser refuses such files (RF0122); this is for sources that were not parsed."
    UNPROTECT_IGNORED "RF0303" "`unprotect` of a project or a preset is ignored"
        Policy("# ringfence.toml of a repository\nversion = 1\n[files]\nunprotect = [\".vscode\"]\n");
        "Protected names are what a program outside of the walls would run or obey. Who takes one off the list must be the user or the administrator, also where the project is trusted."
    UNPROTECT_NOTHING "RF0304" "`unprotect` names nothing that is protected"
        Policy("version = 1\n[files]\nunprotect = [\".vcsode\"]\n");
        "Names are compared as they are written in the list of built-in names, which `ringfence explain` prints."
    CEILING_HOME "RF0305" "the home folder is narrowed to a ceiling"
        Command("ringfence run --home visible -- make    # under home = \"private\" in [ceiling]");
        "A managed policy says which home folder may be chosen at most."
    CEILING_LIMIT "RF0306" "a limit is lowered to a ceiling"
        Command("ringfence run --memory 64G -- make    # under limits.memory = \"8G\" in [ceiling]");
        "A managed policy says how much may be used at most."
    CEILING_WEAKER "RF0307" "a weaker wall is not accepted, because of a ceiling"
        Command("ringfence run --allow-weaker -- make    # under allow_weaker = false in [ceiling]");
        "A managed policy says that walls are whole and proved, or nothing is run."
    CEILING_PORT "RF0308" "a port is left out, because of a ceiling"
        Command("ringfence run --host-port 5432 -- make    # under ports = false in [ceiling]");
        "A managed policy says that no port is carried through the wall."
    CEILING_SOCKET "RF0309" "a socket is left out, because of a ceiling"
        Command("ringfence run --unix /run/docker.sock -- make    # under unix = false in [ceiling]");
        "A managed policy says that no socket of the host is opened."
    HOME_IS_ROOT "RF0310" "the home folder is `/` and cannot be private"
        Command("HOME=/ ringfence run -- make");
        "Everything lies in `/`, so nothing can stand in its place. Set `HOME` to a folder of its own."
    SET_TWICE "RF0311" "two sources of one layer set a variable to different values"
        Host("/etc/ringfence/policy.d/10.toml and 20.toml both set `CI`");
        "Which of two equals wins would be chance, so it is said. Let one of them set it."
    UNPROTECTED "RF0312" "a built-in name is no longer protected"
        Policy("version = 1\n[files]\nunprotect = [\".vscode\"]\n");
        "The command can now write what a program outside of the walls runs or obeys, and so leave the walls."
    CONTROL_SOCKET "RF0320" "a control socket of the host is allowed"
        Policy("version = 1\n[unix]\nallow = [\"/run/docker.sock\"]\n");
        "Who may speak to a container engine, a service manager or a desktop's bus can start programs outside of the walls."
    STORE_READABLE "RF0321" "a credential store is readable"
        Policy("version = 1\n[files]\nread = [\"~/.aws\"]\n");
        "What is in it can be sent to every allowed host. Pass one short-lived credential by name instead: `--env NAME`."
    HOME_WRITABLE "RF0322" "the home folder lies in a writable folder"
        Policy("version = 1\n[files]\nwrite = [\"~\"]\n");
        "Shells, editors and sessions run what lies in the home folder. Name the folders that the command needs."
    EVERY_HOST "RF0323" "every host is allowed"
        Policy("version = 1\n[network]\nallow = [{ rule = \"*\", force = true }]\n");
        "Whatever the program can read it can send to anybody. The walls around files are all that is left."
    STRANGERS "RF0324" "a wildcard covers hosts of strangers"
        Policy("version = 1\n[network]\nallow = [{ rule = \"*.github.io\", force = true }]\n");
        "Anybody can own a name below this one, and receive what is sent there."
    HOME_VISIBLE "RF0325" "the home folder is visible"
        Policy("version = 1\n[files]\nhome = \"visible\"\n");
        "Other projects and documents are readable; the built-in credential stores are not. `home = \"private\"` shows what tools need and nothing else."
    DROP "RF0326" "an allowed host keeps data of anybody"
        Policy("version = 1\n[network]\nallow = [\"gist.github.com\"]\n");
        "A program that brings a token of its own can store there what it can read."
    POLICY_REACHABLE "RF0327" "a policy file lies in a writable folder"
        Policy("version = 1\n[files]\nwrite = [\"~/.config\"]\n");
        "It decides on the next run. It is write-protected for this one; better, keep it out of writable folders."
    EVERY_PORT "RF0328" "every port of a host is allowed"
        Policy("version = 1\n[network]\nallow = [\"build.example.com:*\"]\n");
        "Also its shell, its databases and its management. Name the ports."
    OWN_NETWORK "RF0329" "addresses of this host or its networks are allowed"
        Policy("version = 1\n[network]\nallow = [\"10.0.0.0/8\"]\n");
        "Servers in there trust their network more than others do. Name the host and its port."
    WEAKER_ACCEPTED "RF0330" "weaker walls are accepted"
        Command("ringfence run --allow-weaker -- make");
        "`ringfence explain` says which layer is weaker and what it lacks."
    NOT_PROVED "RF0331" "the walls are not proved"
        Command("ringfence run --no-prove -- make");
        "A wall that is silently off would not be noticed. The proof takes a few milliseconds."
    ENV_WIDE "RF0332" "a pattern passes variables that may hold secrets"
        Policy("version = 1\n[env]\npass = [\"*\"]\n");
        "Name the variables that the command needs."
    METADATA "RF0333" "a rule allows a metadata service, without effect"
        Policy("version = 1\n[network]\nallow = [\"169.254.169.254\"]\n");
        "The metadata service of a cloud hands out the machine's own credentials to whoever asks. No rule over hosts opens it."
    LOCALHOST "RF0334" "a rule allows `localhost`, which is the sandbox's own inside"
        Policy("version = 1\n[network]\nallow = [\"localhost:5432\"]\n");
        "For a server on the host's loopback write `ports = { host = [5432] }`, or `--host-port 5432`."
    SYSTEM_WRITABLE "RF0335" "a folder of the system is writable"
        Policy("version = 1\n[files]\nwrite = [\"/usr\"]\n");
        "Programs that others run lie there. Build into the workspace, and install from outside."
    RUN_BY_HOST "RF0336" "a writable folder holds what programs of the host run"
        Policy("version = 1\n[files]\nwrite = [\"~/.local/bin\"]\n");
        "What is written there is run outside of the walls, sooner or later."
}
