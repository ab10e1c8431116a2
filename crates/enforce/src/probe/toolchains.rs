//! The tools in the home folder that `PATH` names, and what they need around them.
//!
//! The home is private by default, so a tool that lives in it is there only when it is shown. Shown read-only is the
//! folder that `PATH` names, the version manager to which it belongs, and what the links in it lead to. A folder that is
//! known to hold more than one tool (the home itself, `.local/share`, `.config`) is never shown whole.

use super::{Asked, Env};
use ringfence_plan::facts::Toolchain;
use ringfence_policy::HostPath;
use ringfence_sys::files::{EntryKind, entry_kind, list_dir};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A version manager or tool home: the variable that moves it, where it is else (below the home), which parts are shown
/// (none: all of it) and what it is.
struct Root {
    var: &'static str,
    place: &'static str,
    parts: &'static [&'static str],
    why: &'static str,
}

const fn root(var: &'static str, place: &'static str, parts: &'static [&'static str], why: &'static str) -> Root {
    Root { var, place, parts, why }
}

const ROOTS: &[Root] = &[
    root("RUSTUP_HOME", ".rustup", &[], "rustup toolchains"),
    root("CARGO_HOME", ".cargo", &["bin", "env"], "programs that cargo installed"),
    root("PYENV_ROOT", ".pyenv", &[], "pyenv"),
    root("NVM_DIR", ".nvm", &[], "nvm"),
    root("FNM_DIR", ".local/share/fnm", &[], "fnm"),
    root("", ".fnm", &[], "fnm"),
    root("VOLTA_HOME", ".volta", &[], "volta"),
    root("ASDF_DIR", ".asdf", &[], "asdf"),
    root("ASDF_DATA_DIR", ".asdf", &[], "asdf"),
    root("MISE_DATA_DIR", ".local/share/mise", &[], "mise"),
    root("SDKMAN_DIR", ".sdkman", &[], "sdkman"),
    root("JENV_ROOT", ".jenv", &[], "jenv"),
    root("RBENV_ROOT", ".rbenv", &[], "rbenv"),
    root("GOENV_ROOT", ".goenv", &[], "goenv"),
    root("NODENV_ROOT", ".nodenv", &[], "nodenv"),
    root("N_PREFIX", "n", &[], "n"),
    root("", ".rvm", &[], "rvm"),
    root("DENO_INSTALL", ".deno", &["bin"], "deno"),
    root("BUN_INSTALL", ".bun", &["bin", "install/global"], "bun"),
    root("PNPM_HOME", ".local/share/pnpm", &[], "pnpm"),
    root("", ".yarn", &["bin"], "yarn"),
    root("", ".config/yarn/global", &[], "yarn"),
    root("DOTNET_ROOT", ".dotnet", &[], ".NET"),
    root("", ".ghcup", &[], "ghcup"),
    root("", ".cabal", &["bin"], "programs that cabal installed"),
    root("", ".juliaup", &[], "juliaup"),
    root("", ".julia/juliaup", &[], "juliaup"),
    root("OPAMROOT", ".opam", &[], "opam"),
    root("GOPATH", "go", &["bin"], "programs that go installed"),
    root("KREW_ROOT", ".krew", &[], "krew"),
    root("PIPX_HOME", ".local/share/pipx", &[], "pipx"),
    root("", ".local/pipx", &[], "pipx"),
    root("UV_TOOL_DIR", ".local/share/uv/tools", &[], "uv tools"),
    root("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", &[], "Pythons of uv"),
    root("POETRY_HOME", ".local/share/pypoetry", &[], "poetry"),
    root("FLUTTER_ROOT", ".flutter", &[], "flutter"),
];

/// When the first is shown, the second is needed, too.
const COMPANIONS: &[(&str, &str)] = &[
    (".cargo", ".rustup"),
    (".local/share/uv/tools", ".local/share/uv/python"),
    (".local/share/pipx", ".local/share/uv/python"),
    (".juliaup", ".julia/juliaup"),
    (".yarn", ".config/yarn/global"),
];

/// Variables that name one tool's folder as a whole.
const SINGLE: &[&str] =
    &["GOROOT", "JAVA_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "ANDROID_HOME"];

/// Folders that are never shown whole, because other things than one tool live in them.
const SHARED: &[&str] = &[
    "",
    ".local",
    ".local/share",
    ".local/lib",
    ".local/state",
    ".config",
    ".cache",
    ".var",
    ".var/app",
    "snap",
    ".ssh",
    ".gnupg",
    "Desktop",
    "Documents",
    "Downloads",
    "Library",
];

/// Folders of keys, from which nothing is shown, whatever links lead there.
const KEYS: &[&str] =
    &[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"];

/// Links of one folder beyond this are not followed.
const MAX_LINKS: usize = 512;

/// Looks through `PATH` and the variables of version managers.
pub(super) fn find(asked: &Asked<'_>, env: Env<'_>, home: &HostPath) -> Vec<Toolchain> {
    let roots = ROOTS.iter().filter_map(|r| {
        let moved = env.path(r.var).filter(|_| !r.var.is_empty());
        Some((moved.or_else(|| HostPath::new(home.as_path().join(r.place)).ok())?, r))
    });
    let mut finder = Finder { home, workspace: asked.workspace, roots: roots.collect(), shown: Vec::new() };
    if let Some(path) = env.get("PATH") {
        finder.path_variable(path);
    }
    for var in SINGLE {
        if let Some(folder) = env.path(var)
            && !finder.too_wide(&folder)
        {
            finder.show(&folder, &format!("named by {var}"));
        }
    }
    if let Some(program) = asked.program {
        finder.around(program, "the program's own folder");
    }
    finder.companions();
    // The scripts of `pip install --user` stand in `.local/bin` and import from here.
    let user_scripts = home.join(".local").join("bin");
    if finder.shown.iter().any(|t| t.path == user_scripts) {
        let lib = home.join(".local").join("lib");
        for (name, kind) in list_dir(lib.as_path()).unwrap_or_default() {
            if kind == EntryKind::Dir && name.as_bytes().starts_with(b"python") {
                finder.show(&lib.join(&name), "packages of pip install --user");
            }
        }
    }
    finder.shown
}

struct Finder<'a> {
    home: &'a HostPath,
    workspace: &'a HostPath,
    roots: Vec<(HostPath, &'static Root)>,
    shown: Vec<Toolchain>,
}

impl Finder<'_> {
    /// Shows what the entries of `PATH` name.
    fn path_variable(&mut self, path: &OsStr) {
        let mut done: Vec<HostPath> = Vec::new();
        for folder in std::env::split_paths(path).filter_map(|entry| HostPath::new(entry).ok()) {
            if done.contains(&folder) {
                continue;
            }
            if folder.is_within(self.home) {
                self.path_entry(&folder);
            } else if let Some(real) = leads_home(&folder, self.home) {
                self.path_entry(&real);
            }
            done.push(folder);
        }
    }

    fn path_entry(&mut self, folder: &HostPath) {
        if folder.is_within(self.workspace) || self.shared(folder) || entry_kind(folder.as_path()).is_err() {
            return;
        }
        let whole = self.show_root(folder).is_some_and(|root| root.parts.is_empty());
        if !self.is_shown(folder) {
            match tool_of(folder) {
                Some(tool) if !self.too_wide(&tool) && self_contained(&tool) => {
                    self.show(&tool, "tool that PATH names")
                }
                _ => self.show(folder, "PATH entry"),
            }
        }
        // What a version manager links to is its own; its folder of programs can be long.
        if !whole {
            self.links_of(folder);
        }
        if let Ok(real) = ringfence_sys::files::real_path(folder.as_path())
            && let Ok(real) = HostPath::new(real)
            && real != *folder
        {
            self.around_folder(&real);
        }
    }

    /// Follows the links in a folder of programs.
    fn links_of(&mut self, folder: &HostPath) {
        let entries = list_dir(folder.as_path()).unwrap_or_default();
        for (name, _) in entries.iter().filter(|(_, kind)| *kind == EntryKind::Symlink).take(MAX_LINKS) {
            let link = folder.join(name);
            let Ok(target) = std::fs::read_link(link.as_path()) else { continue };
            let Ok(target) = HostPath::new(folder.as_path().join(target)) else { continue };
            if !target.is_within(self.home) || self.is_shown(&target) || target.parent().as_ref() == Some(folder) {
                continue;
            }
            // The link's own words must hold inside, and so must the place to which they lead in the end.
            self.around(&target, "linked from a PATH entry");
            if let Ok(real) = ringfence_sys::files::real_path(target.as_path())
                && let Ok(real) = HostPath::new(real)
                && real != target
            {
                self.around(&real, "linked from a PATH entry");
            }
        }
    }

    /// Shows a program with what it is likely to need: its version manager, its package folder, its tool folder.
    fn around(&mut self, program: &HostPath, why: &str) {
        if !program.is_within(self.home) || self.is_shown(program) || self.show_root(program).is_some() {
            return;
        }
        if let Some(modules) = up_to(program, "node_modules") {
            self.show(&modules, why);
            return;
        }
        let Some(folder) = program.parent() else { return };
        match tool_of(&folder) {
            Some(tool) if !self.too_wide(&tool) && !is_project(&tool) => self.show(&tool, why),
            _ if !self.too_wide(&folder) && !is_project(&folder) && below(&folder, self.home) >= 2 => {
                self.show(&folder, why)
            }
            _ => self.show(program, why),
        }
    }

    fn around_folder(&mut self, folder: &HostPath) {
        if folder.is_within(self.home)
            && !self.is_shown(folder)
            && self.show_root(folder).is_none()
            && !self.shared(folder)
        {
            self.show(folder, "PATH entry");
        }
    }

    /// Shows the parts of the version manager in which `path` lies; `None`: in none.
    fn show_root(&mut self, path: &HostPath) -> Option<&'static Root> {
        // The innermost counts: `.local/share/uv/tools` may lie below another root.
        let inner = self.roots.iter().filter(|(at, _)| path.is_within(at)).max_by_key(|(at, _)| at.depth());
        let (at, root) = inner.map(|(at, root)| (at.clone(), *root))?;
        if root.parts.is_empty() {
            self.show(&at, root.why);
        } else if root.parts.iter().any(|part| path.as_path().starts_with(at.as_path().join(part))) {
            for part in root.parts {
                if let Ok(part) = HostPath::new(at.as_path().join(part)) {
                    self.show(&part, root.why);
                }
            }
        } else {
            return None;
        }
        Some(root)
    }

    fn companions(&mut self) {
        let at = |place: &str| ROOTS.iter().position(|r| r.place == place).and_then(|i| self.roots.get(i)).cloned();
        let needed: Vec<(HostPath, &'static Root)> = COMPANIONS
            .iter()
            .filter_map(|(first, second)| {
                let (first, _) = at(first)?;
                self.shown.iter().any(|t| t.path.is_within(&first)).then(|| at(second)).flatten()
            })
            .collect();
        for (path, root) in needed {
            self.show(&path, root.why);
        }
    }

    fn show(&mut self, path: &HostPath, why: &str) {
        let useful = path.is_within(self.home)
            && !self.shared(path)
            && !KEYS.iter().any(|k| path.as_path().starts_with(self.home.as_path().join(k)))
            && !path.is_within(self.workspace)
            && !self.is_shown(path)
            && entry_kind(path.as_path()).is_ok();
        if useful {
            self.shown.retain(|t| !t.path.is_within(path));
            self.shown.push(Toolchain { path: path.clone(), why: why.to_owned() });
        }
    }

    fn is_shown(&self, path: &HostPath) -> bool {
        self.shown.iter().any(|t| path.is_within(&t.path))
    }

    fn shared(&self, path: &HostPath) -> bool {
        SHARED.iter().any(|s| self.home.as_path().join(s) == *path.as_path())
    }

    /// A folder that holds more than one tool, or the workspace itself.
    fn too_wide(&self, path: &HostPath) -> bool {
        self.shared(path) || self.home.is_within(path) || self.workspace.is_within(path) || !path.is_within(self.home)
    }
}

/// Where a `PATH` entry outside of the home leads, when that is inside: shells' version managers put links into
/// `/run/user` or `/tmp`, of which the sandbox has its own.
fn leads_home(folder: &HostPath, home: &HostPath) -> Option<HostPath> {
    let volatile = ["/run", "/tmp", "/var/tmp", "/dev/shm"];
    if !volatile.iter().any(|v| folder.as_path().starts_with(v)) || home.as_path().starts_with("/tmp") {
        return None;
    }
    let real = HostPath::new(ringfence_sys::files::real_path(folder.as_path()).ok()?).ok()?;
    real.is_within(home).then_some(real)
}

/// The folder of the tool whose programs are in `folder`.
fn tool_of(folder: &HostPath) -> Option<HostPath> {
    let name = folder.file_name()?;
    ["bin", "sbin", "condabin", "shims"].iter().any(|n| name == *n).then(|| folder.parent()).flatten()
}

/// Whether a folder has the shape of an unpacked tool, so that its programs need what lies beside them.
fn self_contained(tool: &HostPath) -> bool {
    let has = |name: &str| entry_kind(tool.join(name).as_path()).is_ok();
    !is_project(tool) && ["lib", "libexec", "lib64", "VERSION", "conda-meta"].into_iter().any(has)
}

fn is_project(folder: &HostPath) -> bool {
    [".git", ".hg", ".svn"].iter().any(|name| entry_kind(folder.join(name).as_path()).is_ok())
}

/// The part of a path that ends in the first folder of this name.
fn up_to(path: &HostPath, name: &str) -> Option<HostPath> {
    let end = path.components().position(|c| c == name)?;
    let mut out = HostPath::root();
    for component in path.components().take(end + 1) {
        out = out.join(component);
    }
    Some(out)
}

fn below(path: &HostPath, home: &HostPath) -> usize {
    path.depth().saturating_sub(home.depth())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn names(tools: &[Toolchain], home: &Path) -> Vec<String> {
        let relative = |t: &Toolchain| t.path.as_path().strip_prefix(home).unwrap().display().to_string();
        let mut names: Vec<String> = tools.iter().map(relative).collect();
        names.sort();
        names
    }

    struct World {
        _dir: tempfile::TempDir,
        home: HostPath,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = HostPath::new(fs::canonicalize(dir.path()).unwrap()).unwrap();
            Self { _dir: dir, home }
        }

        fn dir(&self, path: &str) {
            fs::create_dir_all(self.home.as_path().join(path)).unwrap();
        }

        fn file(&self, path: &str) {
            self.dir(Path::new(path).parent().unwrap().to_str().unwrap());
            fs::write(self.home.as_path().join(path), "").unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            self.dir(Path::new(path).parent().unwrap().to_str().unwrap());
            symlink(target, self.home.as_path().join(path)).unwrap();
        }

        /// `~` at the start of a value is the fake home.
        fn find(&self, vars: &[(&str, &str)]) -> Vec<String> {
            let home = self.home.to_string();
            let vars: Vec<(OsString, OsString)> =
                vars.iter().map(|(k, v)| (OsString::from(k), OsString::from(v.replace('~', &home)))).collect();
            let workspace = self.home.join("ws");
            let asked = Asked { workspace: &workspace, env: &vars, program: None };
            names(&find(&asked, Env(&vars), &self.home), self.home.as_path())
        }
    }

    #[test]
    fn cargo_needs_rustup_and_nothing_else_of_its_home() {
        let world = World::new();
        world.file(".cargo/bin/cargo");
        world.file(".cargo/credentials.toml");
        world.dir(".rustup/toolchains");
        assert_eq!(world.find(&[("PATH", "/usr/bin:~/.cargo/bin")]), [".cargo/bin", ".rustup"]);
        world.dir("elsewhere");
        assert_eq!(
            world.find(&[("PATH", "~/.cargo/bin"), ("RUSTUP_HOME", "~/elsewhere")]),
            [".cargo/bin", "elsewhere"]
        );
    }

    #[test]
    fn version_managers_are_shown_whole() {
        let world = World::new();
        world.dir(".pyenv/shims");
        world.dir(".nvm/versions/node/v20/bin");
        world.dir(".asdf/shims");
        world.dir(".unused");
        assert_eq!(
            world.find(&[("PATH", "~/.pyenv/shims:~/.pyenv/bin:~/.nvm/versions/node/v20/bin:~/.asdf/shims")]),
            [".asdf", ".nvm", ".pyenv"]
        );
    }

    #[test]
    fn links_in_local_bin_bring_their_targets() {
        let world = World::new();
        world.file(".local/share/claude/versions/2.0.1");
        world.link(".local/bin/claude", "../share/claude/versions/2.0.1");
        world.file(".local/share/uv/tools/ruff/bin/ruff");
        world.link(
            ".local/bin/ruff",
            &world
                .home
                .join(".local")
                .join("share")
                .join("uv")
                .join("tools")
                .join("ruff")
                .join("bin")
                .join("ruff")
                .to_string(),
        );
        world.dir(".local/share/uv/python/cpython");
        world.file(".local/share/keyrings/login.keyring");
        world.file("project/.git/HEAD");
        world.file("project/bin/mine");
        world.link(".local/bin/mine", "../../project/bin/mine");
        world.dir(".local/lib/python3.11/site-packages");
        assert_eq!(
            world.find(&[("PATH", "~/.local/bin")]),
            [
                ".local/bin",
                ".local/lib/python3.11",
                ".local/share/claude/versions",
                ".local/share/uv/python",
                ".local/share/uv/tools",
                "project/bin",
            ]
        );
    }

    #[test]
    fn npm_prefixes_and_unpacked_tools_are_shown_whole() {
        let world = World::new();
        world.file(".npm-global/lib/node_modules/agent/cli.js");
        world.link(".npm-global/bin/agent", "../lib/node_modules/agent/cli.js");
        world.file("tools/go/VERSION");
        world.dir("tools/go/bin");
        world.dir("go/bin");
        world.dir("go/src/private");
        world.dir("bin");
        world.dir("lib");
        assert_eq!(
            world.find(&[("PATH", "~/.npm-global/bin:~/tools/go/bin:~/go/bin:~/bin")]),
            [".npm-global", "bin", "go/bin", "tools/go"]
        );
    }

    #[test]
    fn shared_folders_and_the_workspace_are_never_shown() {
        let world = World::new();
        world.file(".ssh/id");
        world.dir("ws/node_modules/.bin");
        world.link(".local/bin/odd", "../../.ssh/id");
        let found =
            world.find(&[("PATH", "~:~/.local:~/.config:~/.ssh:~/ws/node_modules/.bin:~/.local/bin:relative::")]);
        assert_eq!(found, [".local/bin"]);
    }

    #[test]
    fn links_to_links_work_at_each_step() {
        let world = World::new();
        world.file("apps/v2/bin/tool");
        world.link("apps/current", "v2");
        world.link(".local/bin/tool", "../../apps/current/bin/tool");
        assert_eq!(world.find(&[("PATH", "~/.local/bin")]), [".local/bin", "apps/current", "apps/v2"]);
    }
}
