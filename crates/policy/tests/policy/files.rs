//! Paths: which rule decides, what is private, what is protected.

use crate::*;
use Access::{Read, Write};
use Verdict::{Allowed, Denied, Private};

fn check(policy: &Policy, rows: &[(&str, Access, Verdict)]) {
    for (text, access, verdict) in rows {
        let decision = policy.may_path(&path(text), *access);
        assert_eq!(decision.verdict, *verdict, "{access:?} {text}: {decision:?}");
    }
}

fn visible(paths: &[&str]) -> Policy {
    let mut fragment = fragment(Layer::User, paths, &[]);
    fragment.home = Some((HomeMode::Visible, origin(Layer::User, 1)));
    policy(vec![fragment])
}

#[test]
fn the_default() {
    let policy = policy(vec![]);
    check(
        &policy,
        &[
            ("/usr/bin/env", Read, Allowed),
            ("/usr/bin/env", Write, Denied),
            ("/home/u/w/src/main.rs", Write, Allowed),
            ("/home/u/w", Read, Allowed),
            ("/home/u/w2", Read, Private),
            ("/home/u/w2", Write, Private),
            ("/home/u", Write, Private),
            ("/home/u/.ssh/id_ed25519", Read, Private),
            ("/home/u/.ssh/known_hosts", Read, Allowed),
            ("/home/u/.ssh/known_hosts", Write, Denied),
            ("/home/u/.gitconfig", Read, Allowed),
            ("/home/u/.gitconfig", Write, Denied),
            ("/home/other/x", Read, Allowed),
            ("/tmp/x", Write, Private),
            ("/var/tmp", Read, Private),
            ("/run/docker.sock", Write, Private),
            ("/dev/shm/x", Read, Private),
            ("/tmpx", Read, Allowed),
        ],
    );
    let decision = policy.may_path(&path("/home/u/.ssh/id_ed25519"), Read);
    assert_eq!(decision.reason, "credential store: ssh keys; home is private");
    assert_eq!(decision.flag.as_deref(), Some("--read ~/.ssh/id_ed25519"));
    let decision = policy.may_path(&path("/etc/hosts"), Write);
    assert_eq!(decision.reason, "outside the writable roots");
    assert_eq!(decision.remedy.as_deref(), Some("[files] write = [\"/etc/hosts\"]"));
    assert_eq!(decision.flag.as_deref(), Some("--write /etc/hosts"));
}

#[test]
fn a_visible_home_hides_the_stores() {
    check(
        &visible(&[]),
        &[
            ("/home/u/notes.txt", Read, Allowed),
            ("/home/u/notes.txt", Write, Denied),
            ("/home/u/.ssh", Read, Denied),
            ("/home/u/.ssh/id_ed25519", Read, Denied),
            ("/home/u/.ssh/known_hosts", Read, Allowed),
            ("/home/u/.ssh/config", Read, Allowed),
            ("/home/u/.aws/credentials", Read, Denied),
            ("/home/u/.config/google-chrome-beta/Default/Cookies", Read, Denied),
            ("/home/u/.docker/config.json", Read, Denied),
            ("/home/u/.docker/cli-plugins/docker-compose", Read, Allowed),
            ("/home/u/.bash_history", Read, Denied),
            ("/home/u/.claude/.credentials.json", Read, Denied),
            ("/home/u/snap/firefox/common", Read, Denied),
            ("/home/u/.npmrc", Read, Denied),
        ],
    );
    let decision = visible(&[]).may_path(&path("/home/u/.ssh/id_rsa"), Read);
    assert_eq!(decision.reason, "credential store: ssh keys");
    assert_eq!(decision.origin, Origin::builtin("credential stores"));
    assert_eq!(decision.remedy.as_deref(), Some("[files] allow_read = [\"~/.ssh/id_rsa\"]"));
}

#[test]
fn every_store_of_the_design_is_hidden() {
    let policy = visible(&[]);
    for store in [
        ".ssh/id_rsa",
        ".aws/config",
        ".config/gcloud/x",
        ".azure/x",
        ".kube/config",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".gnupg/x",
        ".config/gh/hosts.yml",
        ".mozilla/x",
        ".local/share/keyrings/x",
        ".zsh_history",
        ".codex/auth.json",
        ".gemini/oauth_creds.json",
        ".config/github-copilot/x",
        ".local/share/opencode/auth.json",
        ".cargo/credentials.toml",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".terraform.d/credentials.tfrc.json",
        ".vault-token",
        ".config/op/x",
        ".config/Bitwarden/x",
        "vault.kdbx",
        ".config/rclone/rclone.conf",
        ".s3cfg",
        ".boto",
        ".config/doctl/x",
        ".config/netlify/x",
        ".fly/x",
        ".cloudflared/x",
        ".config/sops/age/keys.txt",
        ".password-store/x",
        ".local/share/kwalletd/x",
        ".config/chromium/x",
        ".config/BraveSoftware/x",
        ".config/microsoft-edge/x",
        ".thunderbird/x",
        ".var/app/org.mozilla.firefox/x",
        ".python_history",
        ".node_repl_history",
        ".psql_history",
        ".mysql_history",
        ".sqlite_history",
        ".lesshst",
        ".viminfo",
        ".bitcoin/wallet.dat",
        ".pgpass",
    ] {
        let decision = policy.may_path(&path("/home/u").join(store), Read);
        assert_eq!(decision.verdict, Denied, "{store}");
        assert!(decision.reason.starts_with("credential store: "), "{store}: {}", decision.reason);
    }
}

#[test]
fn the_most_specific_rule_decides() {
    let rows: &[(&[&str], &str, Access, Verdict)] = &[
        (&["-r /data", "+r /data/a"], "/data/a/x", Read, Allowed),
        (&["-r /data", "+r /data/a"], "/data/b", Read, Denied),
        (&["+w /data", "-w /data/a"], "/data/a/x", Write, Denied),
        (&["+w /data", "-w /data/a"], "/data/a/x", Read, Allowed),
        (&["+w /data", "-w /data/a", "+w /data/a/b"], "/data/a/b/c", Write, Allowed),
        // The same node: a denial beats a grant, a path beats a pattern.
        (&["+w /data/a", "-w /data/a"], "/data/a", Write, Denied),
        (&["+r /data/.env", "-r /data/**/.env"], "/data/.env", Read, Allowed),
        (&["+r /data/*", "-r /data/**/.env"], "/data/.env", Read, Denied),
        // A pattern matches at its own node, which may be deeper than a path's.
        (&["+w /data/sub", "-r /data/**/.env"], "/data/sub/.env", Write, Denied),
        (&["+w /data/sub", "-r /data/**/.env"], "/data/sub/.env/x", Read, Denied),
        // Reading is not writing.
        (&["+r /data"], "/data/x", Write, Denied),
        (&["-r /data", "+w /data/x"], "/data/x", Read, Allowed),
        (&["+w /data", "-r /data/x", "+r /data/x/y"], "/data/x/y", Write, Denied),
        (&["+w /data", "-r /data/x", "+r /data/x/y"], "/data/x/y", Read, Allowed),
        // Components, not strings.
        (&["+w /data/a"], "/data/ab", Write, Denied),
    ];
    for (rules, at, access, verdict) in rows {
        let decision = with_paths(Layer::User, rules).may_path(&path(at), *access);
        assert_eq!(decision.verdict, *verdict, "{rules:?}: {access:?} {at}: {decision:?}");
    }
}

#[test]
fn what_somebody_wrote_beats_what_is_built_in_at_the_same_node() {
    let policy = with_paths(Layer::Preset, &["+w /home/u/.claude", "+r /home/u/.config/gh"]);
    check(
        &policy,
        &[
            ("/home/u/.claude/projects/x", Write, Allowed),
            ("/home/u/.claude/.credentials.json", Read, Allowed),
            ("/home/u/.claude/settings.json", Write, Denied),
            ("/home/u/.claude/hooks/x", Write, Denied),
            ("/home/u/.config/gh/hosts.yml", Read, Allowed),
            ("/home/u/.config/gh2", Read, Private),
        ],
    );
}

#[test]
fn an_opened_part_of_the_home_keeps_its_denials() {
    let policy = with_paths(Layer::User, &["+r /home/u/docs", "-r /home/u/docs/tax", "+w /home/u/docs/out"]);
    check(
        &policy,
        &[
            ("/home/u/docs/x", Read, Allowed),
            ("/home/u/docs/x", Write, Denied),
            ("/home/u/docs/tax/2025", Read, Denied),
            ("/home/u/docs/tax/2025", Write, Denied),
            ("/home/u/docs/out/x", Write, Allowed),
            ("/home/u/other", Read, Private),
        ],
    );
    // A denial where nothing of the host's is shown hides nothing: the folder is the sandbox's own.
    check(
        &with_paths(Layer::User, &["-r /home/u/docs", "-w /tmp/x"]),
        &[("/home/u/docs/x", Read, Private), ("/tmp/x", Write, Private)],
    );
    // A writable root around a private folder does not reach into it.
    check(&with_paths(Layer::User, &["+w /home"]), &[("/home/u/x", Write, Private), ("/home/v/x", Write, Allowed)]);
    let around = with_paths(Layer::User, &["+w /home", "+r /home/u/docs"]);
    check(&around, &[("/home/u/docs/x", Read, Allowed), ("/home/u/docs/x", Write, Denied)]);
}

#[test]
fn a_workspace_in_a_private_folder_is_the_hosts() {
    let at = Base { home: path("/tmp/t/home"), workspace: path("/tmp/t/ws"), git_dirs: vec![], uid: 1000 };
    let (policy, _) = merge(&at, vec![]);
    check(
        &policy,
        &[
            ("/tmp/t/ws/x", Write, Allowed),
            ("/tmp/t/out", Write, Private),
            ("/tmp/t/home/x", Read, Private),
            ("/tmp/t/home/.gitconfig", Read, Allowed),
        ],
    );
}

#[test]
fn protected_names_at_any_depth_in_any_case() {
    let policy = policy(vec![]);
    for name in [
        ".git/hooks/pre-commit",
        "vendor/sub/.git/hooks/x",
        "a/b/c/.git/config",
        ".git/config",
        ".git/config.worktree",
        ".git/modules/m/hooks/x",
        ".git/modules/a/b/config",
        ".git/worktrees/x/config.worktree",
        "bare.git/hooks/x",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".CLAUDE/Settings.JSON",
        ".claude/commands/x",
        ".claude/skills/x",
        ".mcp.json",
        ".Mcp.Json",
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".gemini/settings.json",
        ".github/copilot-instructions.md",
        ".vscode/tasks.json",
        "pkg/.vscode/tasks.json",
        ".idea/x",
        ".devcontainer/devcontainer.json",
        ".bashrc",
        ".zshenv",
        ".profile",
        ".envrc",
        "sub/.envrc",
        ".gitconfig",
        "ringfence.toml",
        "opencode.json",
    ] {
        let decision = policy.may_path(&path("/home/u/w").join(name), Write);
        assert_eq!(decision.verdict, Denied, "{name}");
        assert!(decision.reason.starts_with("protected: "), "{name}: {}", decision.reason);
        assert_eq!(decision.flag, None, "{name}");
        assert!(decision.remedy.is_some_and(|line| line.starts_with("[files] unprotect")), "{name}");
        assert_eq!(policy.may_path(&path("/home/u/w").join(name), Read).verdict, Allowed, "{name}");
    }
    for name in [
        ".git",
        ".git/HEAD",
        ".git/index",
        ".git/objects/x",
        ".git/refs/heads/config",
        ".git/worktrees/x/commondir",
        ".git/info/exclude",
        ".gitignore",
        ".gitmodules",
        ".npmrc",
        ".cargo/config.toml",
        ".venv/bin/python",
        "Makefile",
        "package.json",
        ".github/workflows/ci.yml",
        "hooks/x",
        "CLAUDE.md",
        ".claude/todo.md",
        "config",
        ".env",
    ] {
        assert_eq!(policy.may_path(&path("/home/u/w").join(name), Write).verdict, Allowed, "{name}");
    }
}

#[test]
fn protected_names_do_not_open_by_a_rule_in_the_workspace() {
    let policy = with_paths(Layer::CommandLine, &["+w /home/u/w/.git/hooks", "+w /home/u/w/.vscode/x"]);
    check(&policy, &[("/home/u/w/.git/hooks/x", Write, Denied), ("/home/u/w/.vscode/x", Write, Denied)]);
    // Elsewhere a rule that names the very folder opens it: a preset shares its agent's own state so.
    let policy = with_paths(Layer::Preset, &["+w /home/u/.codex"]);
    check(&policy, &[("/home/u/.codex/auth.json", Write, Allowed), ("/home/u/.codex/a/.git/hooks/x", Write, Denied)]);
}

#[test]
fn a_workspace_below_a_protected_name_works() {
    let at = Base { workspace: path("/home/u/.cursor/worktrees/x"), ..base() };
    let (policy, _) = merge(&at, vec![]);
    check(
        &policy,
        &[
            ("/home/u/.cursor/worktrees/x/src", Write, Allowed),
            ("/home/u/.cursor/worktrees/x/.cursor/mcp.json", Write, Denied),
            ("/home/u/.cursor/other", Write, Private),
        ],
    );
}

#[test]
fn git_directories_outside_of_the_workspace() {
    let at = Base { git_dirs: vec![path("/srv/repo/.git"), path("/srv/.bare")], ..base() };
    let (policy, _) = merge(&at, vec![]);
    check(
        &policy,
        &[
            ("/srv/repo/.git/objects/x", Write, Allowed),
            ("/srv/repo/.git/hooks/x", Write, Denied),
            ("/srv/repo/.git/config", Write, Denied),
            ("/srv/repo/src", Write, Denied),
            ("/srv/.bare/refs/x", Write, Allowed),
            ("/srv/.bare/hooks/x", Write, Denied),
            ("/srv/.bare/config", Write, Denied),
        ],
    );
}

#[test]
fn root_sees_no_stores_of_the_system_and_no_other_homes() {
    let at = Base { home: path("/root"), workspace: path("/root/w"), git_dirs: vec![], uid: 0 };
    let (policy, _) = merge(&at, vec![]);
    check(
        &policy,
        &[
            ("/etc/shadow", Read, Denied),
            ("/etc/shadow-", Read, Denied),
            ("/etc/gshadow", Read, Denied),
            ("/etc/ssh/ssh_host_ed25519_key", Read, Denied),
            ("/etc/ssh/ssh_host_ed25519_key.pub", Read, Allowed),
            ("/etc/ssl/private/x", Read, Denied),
            ("/etc/sudoers.d/x", Read, Denied),
            ("/etc/NetworkManager/system-connections/x", Read, Denied),
            ("/var/lib/git/.ssh/id", Read, Denied),
            ("/home/u/x", Read, Denied),
            ("/home/linuxbrew/.linuxbrew/bin/x", Read, Allowed),
            ("/etc/passwd", Read, Allowed),
            ("/root/w/x", Write, Allowed),
            ("/root/x", Read, Private),
        ],
    );
    let mut shown = Fragment::empty(Layer::User);
    shown.home = Some((HomeMode::Visible, origin(Layer::User, 1)));
    let (policy, _) = merge(&Base { uid: 0, ..base() }, vec![shown]);
    check(
        &policy,
        &[
            ("/home/u/x", Read, Allowed),
            ("/home/u/.ssh/id", Read, Denied),
            ("/home/v/x", Read, Denied),
            ("/root/x", Read, Denied),
        ],
    );
}

#[test]
fn remedies_are_given_only_where_they_help() {
    let at = |layer, rules: &[&str], text: &str, access| with_paths(layer, rules).may_path(&path(text), access);
    let managed = at(Layer::Managed, &["-r /data"], "/data/x", Read);
    assert_eq!((managed.verdict, managed.remedy, managed.flag), (Denied, None, None));
    let same = at(Layer::User, &["-r /data/x"], "/data/x", Read);
    assert_eq!((same.verdict, same.remedy, same.flag), (Denied, None, None));
    let wider = at(Layer::User, &["-r /data"], "/data/a b'c", Read);
    assert_eq!(wider.flag.as_deref(), Some("--read '/data/a b'\\''c'"));
    let hook = at(Layer::Managed, &[], "/home/u/w/.git/hooks/x", Write);
    assert_eq!((hook.flag, hook.remedy.as_deref()), (None, Some("[files] unprotect = [\"*.git/hooks\"]")));
}

/// What a remedy says must be so: the line that is offered allows the path.
#[test]
fn remedies_help() {
    let policy = visible(&["-r /data", "-w /home/u/w/out"]);
    for (text, access) in [
        ("/data/x", Read),
        ("/data/x", Write),
        ("/home/u/w/out/y", Write),
        ("/etc/x", Write),
        ("/home/u/.ssh/id", Read),
    ] {
        let decision = policy.may_path(&path(text), access);
        assert_eq!(decision.verdict, Denied, "{text}");
        assert!(decision.flag.is_some(), "{text}");
        let verb = if access == Read { "+r" } else { "+w" };
        let line = path_rule(Layer::CommandLine, &format!("{verb} {text}"));
        let mut helped = policy.clone();
        helped.files.rules = policy.files.rules.iter().cloned().chain([line]).collect();
        assert_eq!(helped.may_path(&path(text), access).verdict, Allowed, "{text}");
    }
}
