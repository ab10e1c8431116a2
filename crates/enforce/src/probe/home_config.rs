//! Harmless configuration in the home folder that the command may read: who commits, how the editor looks, which hosts
//! ssh knows, where the package clients' mirrors are.
//!
//! Shells' rc files are left out on purpose: they are where people export keys, and a shell works without them. Files
//! that may hold a secret are read first and left out when they do.

use super::secrets::{holds_secret, read_small};
use super::{Env, Note};
use ringfence_plan::facts::Toolchain;
use ringfence_policy::HostPath;
use ringfence_sys::files::{entry_kind, list_dir};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Shown as they are.
const PLAIN: &[(&str, &[&str])] = &[
    ("ssh hosts and names", &[".ssh/known_hosts", ".ssh/config"]),
    (
        "editor settings",
        &[
            ".vimrc",
            ".vim",
            ".config/nvim",
            ".nanorc",
            ".config/nano",
            ".emacs",
            ".emacs.d/init.el",
            ".config/helix",
            ".config/micro",
            ".editorconfig",
        ],
    ),
    (
        "terminal settings",
        &[
            ".inputrc",
            ".tmux.conf",
            ".config/tmux",
            ".screenrc",
            ".dircolors",
            ".terminfo",
            ".config/htop",
            ".config/bat",
            ".config/ripgrep",
            ".ripgreprc",
            ".lesskey",
            ".config/starship.toml",
        ],
    ),
    ("git settings", &[".config/git/ignore", ".config/git/attributes", ".gitignore_global"]),
    ("version files of tool managers", &[".tool-versions", ".asdfrc", ".nvmrc", ".python-version", ".node-version"]),
];

/// Shown when they hold no secret.
const CHECKED: &[(&str, &[&str])] = &[(
    "package client settings",
    &[
        ".cargo/config.toml",
        ".cargo/config",
        ".config/pip/pip.conf",
        ".pip/pip.conf",
        ".config/uv/uv.toml",
        ".config/go/env",
        ".yarnrc",
        ".yarnrc.yml",
        ".bunfig.toml",
        ".config/pnpm/rc",
        ".condarc",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".gemrc",
        ".config/mise/config.toml",
    ],
)];

/// Included files beyond this are left out.
const MAX_INCLUDES: usize = 16;

/// Finds what is there, adds it to `shown`.
pub(super) fn find(
    env: Env<'_>,
    home: &HostPath,
    workspace: &HostPath,
    shown: &mut Vec<Toolchain>,
    notes: &mut Vec<Note>,
) {
    // Two listings instead of a question for each name: most of the names are not there.
    let top = names_in(home);
    let config = names_in(&home.join(".config"));
    let mut finder = Finder { home, workspace, top, config, shown, notes };
    for (why, paths) in PLAIN {
        for path in *paths {
            finder.show(&within(home, path), why);
        }
    }
    for (why, paths) in CHECKED {
        for path in *paths {
            finder.show_checked(&within(home, path), why);
        }
    }
    finder.git(env);
}

fn names_in(folder: &HostPath) -> Option<HashSet<OsString>> {
    Some(list_dir(folder.as_path()).ok()?.into_iter().map(|(name, _)| name).collect())
}

fn within(home: &HostPath, path: &str) -> HostPath {
    HostPath::new(home.as_path().join(path)).unwrap_or_else(|_| home.clone())
}

struct Finder<'a> {
    home: &'a HostPath,
    workspace: &'a HostPath,
    /// Names in the home; `None` when it cannot be listed.
    top: Option<HashSet<OsString>>,
    /// Names in its `.config`, which is a folder of its own; `None` when it is not, or cannot be listed.
    config: Option<HashSet<OsString>>,
    shown: &'a mut Vec<Toolchain>,
    notes: &'a mut Vec<Note>,
}

impl Finder<'_> {
    /// Whether something of that name can be there at all.
    fn may_exist(&self, path: &HostPath) -> bool {
        let mut names = path.components().skip(self.home.depth());
        let (Some(first), second) = (names.next(), names.next()) else { return true };
        let has = |names: &Option<HashSet<OsString>>, name: &OsStr| names.as_ref().is_none_or(|n| n.contains(name));
        has(&self.top, first) && (first != ".config" || second.is_none_or(|second| has(&self.config, second)))
    }

    fn show(&mut self, path: &HostPath, why: &str) {
        let useful = path.is_within(self.home)
            && path != self.home
            && !path.is_within(self.workspace)
            && !self.shown.iter().any(|t| path.is_within(&t.path))
            && self.may_exist(path)
            && entry_kind(path.as_path()).is_ok();
        if useful {
            self.shown.push(Toolchain { path: path.clone(), why: why.to_owned() });
        }
    }

    /// Shows a file and returns its text, unless it holds a secret.
    fn show_checked(&mut self, path: &HostPath, why: &str) -> Option<String> {
        if path.is_within(self.home) && !self.may_exist(path) {
            return None;
        }
        // Dotfiles are often links into a repository of dotfiles: the file counts that is there in the end.
        let real = ringfence_sys::files::real_path(path.as_path()).ok()?;
        let text = read_small(&real)?;
        if holds_secret(&text) {
            self.notes.push(Note {
                text: format!("`{path}` is not shown: it holds a secret"),
                hint: Some("move the secret to another file, or show it by name: --read FILE".to_owned()),
            });
            return None;
        }
        self.show(path, why);
        Some(text)
    }

    /// Git's own files with what they include, and the files that they name.
    fn git(&mut self, env: Env<'_>) {
        let config_home = env.path("XDG_CONFIG_HOME").unwrap_or_else(|| within(self.home, ".config"));
        let mut queue = vec![within(self.home, ".gitconfig"), within(&config_home, "git/config")];
        let mut seen = 0;
        while let Some(file) = queue.pop() {
            seen += 1;
            if seen > MAX_INCLUDES {
                return;
            }
            let Some(text) = self.show_checked(&file, "git settings") else { continue };
            for (key, value) in named_files(&text) {
                let Some(path) = self.resolve(&file, value) else { continue };
                match key {
                    Named::Include => queue.push(path),
                    // Programs that git would run and lists that it obeys: read-only, as outside.
                    Named::Other => self.show(&path, "named by the git settings"),
                }
            }
        }
    }

    /// git-config(1): `~/` is the home; a relative path is relative to the file.
    fn resolve(&self, file: &HostPath, value: &str) -> Option<HostPath> {
        let path = match value.strip_prefix("~/") {
            Some(rest) => self.home.as_path().join(rest),
            None => file.as_path().parent()?.join(Path::new(value)),
        };
        HostPath::new(path).ok().filter(|p| p.is_within(self.home))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Include,
    Other,
}

/// Keys of a git configuration that name files.
fn named_files(text: &str) -> Vec<(Named, &str)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            section = head.split([']', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches('"');
        if value.is_empty() {
            continue;
        }
        match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("include" | "includeif", "path") => found.push((Named::Include, value)),
            ("core", "excludesfile" | "attributesfile" | "hookspath")
            | ("commit", "template")
            | ("gpg", "allowedsignersfile") => found.push((Named::Other, value)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run(setup: impl Fn(&Path)) -> (Vec<String>, Vec<Note>) {
        let dir = tempfile::tempdir().unwrap();
        let home = HostPath::new(fs::canonicalize(dir.path()).unwrap()).unwrap();
        setup(home.as_path());
        let (mut shown, mut notes) = (Vec::new(), Vec::new());
        find(Env(&[]), &home, &home.join("ws"), &mut shown, &mut notes);
        let mut names: Vec<String> = shown
            .iter()
            .map(|t| t.path.as_path().strip_prefix(home.as_path()).unwrap().display().to_string())
            .collect();
        names.sort();
        (names, notes)
    }

    fn put(home: &Path, path: &str, text: &str) {
        fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
        fs::write(home.join(path), text).unwrap();
    }

    #[test]
    fn git_includes_are_followed_and_shell_files_are_not_shown() {
        let (names, notes) = run(|home| {
            put(
                home,
                ".gitconfig",
                "[user]\nname = A\n[include]\npath = .gitconfig.local\n[includeIf \"gitdir:~/w/\"]\npath = ~/w.inc\n[core]\nexcludesFile = ~/.ignore\nhooksPath = /etc/hooks\n",
            );
            put(home, ".gitconfig.local", "[include]\n path = ~/.gitconfig\n[user]\n email = a@b");
            put(home, "w.inc", "[user]\nemail = w@b");
            put(home, ".ignore", "*.o");
            put(home, ".bashrc", "export KEY=1");
            put(home, ".ssh/known_hosts", "h");
            put(home, ".ssh/id_ed25519", "k");
            put(home, ".vimrc", "");
        });
        assert_eq!(names, [".gitconfig", ".gitconfig.local", ".ignore", ".ssh/known_hosts", ".vimrc", "w.inc"]);
        assert!(notes.is_empty());
    }

    #[test]
    fn a_file_with_a_secret_is_left_out_and_said_so() {
        let (names, notes) = run(|home| {
            put(home, ".gitconfig", "[http]\nextraHeader = Authorization: Bearer x\n[include]\npath=~/inc");
            put(home, "inc", "");
            put(home, ".cargo/config.toml", "[registries.a]\ntoken = \"t\"");
            put(home, ".config/pip/pip.conf", "[global]\nindex-url = https://mirror.test/simple");
        });
        assert_eq!(names, [".config/pip/pip.conf"]);
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn a_link_is_judged_by_what_it_leads_to() {
        let (names, _) = run(|home| {
            put(home, "dotfiles/gitconfig", "[user]\nname = A");
            put(home, "dotfiles/cargo", "token = \"t\"");
            std::os::unix::fs::symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
            fs::create_dir(home.join(".cargo")).unwrap();
            std::os::unix::fs::symlink("../dotfiles/cargo", home.join(".cargo/config.toml")).unwrap();
        });
        assert_eq!(names, [".gitconfig"]);
    }
}
