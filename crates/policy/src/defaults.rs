//! The built-in tables: credential stores, control sockets, protected names, withheld variables.
//!
//! The long ones are text files in `defaults/`, one line of paths after another under the reason for them, so that they can
//! be read and reviewed as what they are. [`fragment`] makes rules of them.

mod sockets;

pub use sockets::Power;

use crate::env_rule::EnvRule;
use crate::fragment::Fragment;
use crate::glob::PathGlob;
use crate::layer::Base;
use crate::name_glob::escape;
use crate::origin::{Layer, Origin};
use crate::path_rule::{HostPath, PathPattern, PathRule, PathVerb};
use crate::protected_name::{ProtectedKind, ProtectedName};
use serde::Serialize;

const HOME_STORES: &str = include_str!("defaults/home_stores.txt");
const HOME_SHOWN: &str = include_str!("defaults/home_shown.txt");
const ROOT_STORES: &str = include_str!("defaults/root_stores.txt");
const PROTECTED: &str = include_str!("defaults/protected_names.txt");
const VARIABLES: &str = include_str!("defaults/variables.txt");

/// Folders that are private to the run.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// What stays visible of the folder of everybody's homes: software that is installed there.
const SHARED_HOMES: &[&str] = &["/home/linuxbrew/.linuxbrew"];

/// Folders that are private to the run: empty at start, gone at its end.
pub fn private_folders() -> Vec<HostPath> {
    PRIVATE.iter().filter_map(|folder| HostPath::new(folder).ok()).collect()
}

/// A socket of the host through which a program leaves the wall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlSocket {
    /// Where it is: a socket, or a folder that holds sockets.
    pub pattern: PathPattern,
    /// What whoever can connect can do.
    pub power: Power,
    /// The same for people: `docker: root on the host`.
    pub why: &'static str,
}

/// Control sockets of the host. Most lie in folders that are private to the run; the rest must be covered.
pub fn control_sockets(home: &HostPath) -> Vec<ControlSocket> {
    let home = escape(&home.to_string());
    let absolute = |text: &str| match text.strip_prefix('~') {
        Some(rest) => format!("{home}{rest}"),
        None => text.to_owned(),
    };
    let rows = sockets::SOCKETS.iter();
    rows.filter_map(|(text, power, why)| {
        let pattern = PathPattern::parse(&absolute(text)).ok()?;
        Some(ControlSocket { pattern, power: *power, why })
    })
    .collect()
}

/// Which stores of the home folder become rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stores {
    /// All.
    All,
    /// Those above, at or below one of these paths, which are relative to the home folder: of a home that is not shown,
    /// nothing else is seen, so that the other rules would decide nothing.
    Near(Vec<Vec<u8>>),
}

impl Stores {
    /// Whether an entry of the table, a path below the home folder with wildcards, becomes a rule.
    fn take(&self, entry: &str) -> bool {
        let Self::Near(shown) = self else { return true };
        let literal = literal_part(entry);
        shown.iter().any(|path| is_below(literal.as_bytes(), path) || is_below(path, literal.as_bytes()))
    }
}

/// What stands before the first wildcard of an entry, cut at a whole name.
fn literal_part(entry: &str) -> &str {
    match entry.find(['*', '?', '[', '{', '\\']) {
        Some(at) => entry.get(..at).and_then(|head| head.rsplit_once('/')).map_or("", |(folder, _)| folder),
        None => entry,
    }
}

/// Whether one relative path is another or lies below it.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

/// What is built in, as a fragment like any other.
pub fn fragment(base: &Base) -> Fragment {
    with_stores(base, &Stores::All)
}

/// Paths of the home folder that the table shows, relative to it, up to their first wildcard.
pub(crate) fn shown_at_home() -> impl Iterator<Item = &'static str> {
    entries(HOME_SHOWN).map(|(_, path)| literal_part(path))
}

/// The same with fewer stores.
pub(crate) fn with_stores(base: &Base, stores: &Stores) -> Fragment {
    let mut fragment = Fragment::empty(Layer::Builtin);
    default_grants(base, &mut fragment.paths);
    home_stores(&base.home, stores, &mut fragment.paths);
    if base.uid == 0 {
        root_stores(&base.home, &mut fragment.paths);
    }
    fragment.protected = protected_names(base);
    for (table, name) in entries(VARIABLES) {
        let rule = EnvRule { pattern: name.to_owned(), origin: Origin::builtin(table) };
        if table == "passed" { fragment.env_pass.push(rule) } else { fragment.env_deny.push(rule) }
    }
    fragment
}

/// The credential stores of a home folder, each as a denial: also for homes that are not the run's own.
pub fn stores_of(home: &HostPath) -> Vec<PathRule> {
    let mut rules = Vec::with_capacity(STORES_EXPECTED);
    credential_stores(home, &Stores::All, &mut rules);
    rules
}

/// Room for the rules of one home folder.
const STORES_EXPECTED: usize = 700;

fn default_grants(base: &Base, rules: &mut Vec<PathRule>) {
    let root = PathPattern::Subtree(HostPath::root());
    rules.push(rule(root, PathVerb::AllowRead, "default reads", "outside the home folder"));
    let workspace = PathPattern::Subtree(base.workspace.clone());
    rules.push(rule(workspace, PathVerb::AllowWrite, "workspace", "the workspace"));
    for dir in &base.git_dirs {
        let dir = PathPattern::Subtree(dir.clone());
        rules.push(rule(dir, PathVerb::AllowWrite, "workspace", "a git directory of the workspace"));
    }
}

fn home_stores(home: &HostPath, stores: &Stores, rules: &mut Vec<PathRule>) {
    credential_stores(home, stores, rules);
    for (what, path) in entries(HOME_SHOWN) {
        rules.extend(below(home, path).map(|p| rule(p, PathVerb::AllowRead, "harmless configuration", what)));
    }
}

fn credential_stores(home: &HostPath, stores: &Stores, rules: &mut Vec<PathRule>) {
    let mut why = String::new();
    for (what, path) in entries(HOME_STORES).filter(|(_, path)| stores.take(path)) {
        // Made once for all entries below a title: this runs before every command.
        if !why.ends_with(what) {
            why = format!("credential store: {what}");
        }
        rules.extend(below(home, path).map(|p| rule(p, PathVerb::DenyRead, "credential stores", &why)));
    }
}

fn root_stores(home: &HostPath, rules: &mut Vec<PathRule>) {
    for (what, path) in entries(ROOT_STORES) {
        let why = format!("credential store: {what}");
        rules.extend(
            PathPattern::parse(path).ok().map(|p| rule(p, PathVerb::DenyRead, "credential stores of root", &why)),
        );
    }
    // Root can read everybody's files; the home that was asked for is the only one that the run is about.
    for folder in ["/home", "/root"].into_iter().filter_map(|folder| HostPath::new(folder).ok()) {
        if folder != *home {
            let why = "other people's home folders";
            rules.push(rule(PathPattern::Subtree(folder), PathVerb::DenyRead, "credential stores of root", why));
        }
    }
    for folder in SHARED_HOMES.iter().filter_map(|folder| HostPath::new(folder).ok()) {
        let why = "software that is installed for everybody";
        rules.push(rule(PathPattern::Subtree(folder), PathVerb::AllowRead, "default reads", why));
    }
}

fn protected_names(base: &Base) -> Vec<ProtectedName> {
    let mut names = Vec::new();
    for (title, pattern) in entries(PROTECTED) {
        let (kind, why) = match title.strip_prefix("git-config: ") {
            Some(why) => (ProtectedKind::GitConfig, why),
            None => (ProtectedKind::Any, title),
        };
        names.extend(ProtectedName::new(pattern, kind, why, Origin::builtin("protected names")));
    }
    // A git directory of any other name is known here, and its parts are protected all the same.
    for name in base.git_dirs.iter().filter_map(HostPath::file_name) {
        let name = escape(&name.to_string_lossy());
        for (part, kind, why) in [
            ("hooks", ProtectedKind::Any, "git would run it"),
            ("config", ProtectedKind::GitConfig, "git would obey it, and it can name programs"),
            ("config.worktree", ProtectedKind::GitConfig, "git would obey it, and it can name programs"),
        ] {
            names.extend(ProtectedName::new(&format!("{name}/{part}"), kind, why, Origin::builtin("protected names")));
        }
    }
    names
}

fn rule(pattern: PathPattern, verb: PathVerb, table: &str, why: &str) -> PathRule {
    PathRule { pattern, verb, origin: Origin::builtin(table), why: Some(why.to_owned()) }
}

/// A path of a table below the home folder.
fn below(home: &HostPath, path: &str) -> Option<PathPattern> {
    if path.bytes().any(|b| b"*?[{".contains(&b)) {
        return PathGlob::parse_below(home, path).ok().map(PathPattern::Glob);
    }
    Some(PathPattern::Subtree(home.join(path)))
}

/// The entries of a table with the title above them. The titles stand in brackets on a line of their own, comments after `#`.
fn entries(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut title = "";
    table.lines().flat_map(move |line| {
        let line = line.trim();
        let heading = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        title = heading.unwrap_or(title);
        let line = if heading.is_some() || line.starts_with('#') { "" } else { line };
        let title = title;
        line.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(move |entry| (title, entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn base(uid: u32) -> Base {
        let path = |text: &str| HostPath::new(text).unwrap();
        Base { home: path("/home/[u]"), workspace: path("/home/[u]/w"), git_dirs: vec![path("/srv/.bare")], uid }
    }

    #[test]
    fn every_entry_becomes_a_rule_and_none_is_there_twice() {
        for (name, table) in [
            ("home stores", HOME_STORES),
            ("shown", HOME_SHOWN),
            ("root stores", ROOT_STORES),
            ("names", PROTECTED),
            ("variables", VARIABLES),
        ] {
            let mut seen = BTreeSet::new();
            for (title, entry) in entries(table) {
                assert!(!title.is_empty(), "{name}: {entry} has no title");
                assert!(seen.insert(entry), "{name}: {entry} is there twice");
            }
        }
        let count = |table| entries(table).count();
        let user = fragment(&base(1000));
        assert_eq!(user.paths.len(), 3 + count(HOME_STORES) + count(HOME_SHOWN));
        let root = fragment(&base(0));
        assert_eq!(root.paths.len(), user.paths.len() + count(ROOT_STORES) + 3);
        assert_eq!(user.protected.len(), count(PROTECTED) + 3);
        assert_eq!(user.env_deny.len() + user.env_pass.len(), count(VARIABLES));
        assert_eq!(control_sockets(&base(0).home).len(), sockets::SOCKETS.len());
        assert!(count(HOME_STORES) > 500 && count(PROTECTED) > 150);
    }

    #[test]
    fn a_home_with_wildcards_in_its_name_is_taken_literally() {
        let fragment = fragment(&base(1000));
        let store = |path: &str| {
            let path = HostPath::new(path).unwrap();
            fragment.paths.iter().any(|r| r.verb == PathVerb::DenyRead && r.pattern.match_depth(&path).is_some())
        };
        assert!(store("/home/[u]/.docker/key.pem") && store("/home/[u]/.ssh/id_ed25519"));
        assert!(!store("/home/u/.docker/key.pem"));
    }
}
