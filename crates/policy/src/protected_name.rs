//! Names that a host program would execute or obey later.

use crate::glob::GlobError;
use crate::index::{Indexed, Key, Keyed};
use crate::name_glob::{NameGlob, fold};
use crate::origin::Origin;
use crate::parts::{Part, Parts};
use crate::path_rule::HostPath;
use serde::Serialize;

/// A name that a host program would execute or obey later.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProtectedName {
    /// Path below any writable folder, as a component pattern relative to any depth: `.git/hooks`, `.mcp.json`,
    /// `.claude/settings*.json`.
    pub pattern: String,
    /// Whether the name protects a whole folder or one file.
    pub kind: ProtectedKind,
    /// What would run or obey it, for the denial message: `git would run it`.
    pub why: String,
    /// Who added it.
    pub origin: Origin,
    #[serde(skip)]
    parts: Parts,
}

/// What a [`ProtectedName`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectedKind {
    /// A file, or a folder with everything below it.
    Any,
    /// A git configuration file: judged by key once calls are brokered, whole until then.
    GitConfig,
}

impl ProtectedName {
    /// A protected name. The pattern is relative: it is looked for at every depth, so a leading `**/` says nothing and
    /// is dropped, as is a slash at the end.
    ///
    /// # Errors
    /// The pattern is empty, absolute, or holds `..`, or a class or alternation in it is malformed.
    pub fn new(pattern: &str, kind: ProtectedKind, why: &str, origin: Origin) -> Result<Self, GlobError> {
        let malformed = |problem| GlobError::Malformed { pattern: pattern.to_owned(), problem };
        if pattern.starts_with('/') {
            return Err(malformed("a protected name is relative, to every depth"));
        }
        let mut names: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        while names.first() == Some(&"**") {
            names.remove(0);
        }
        while names.last() == Some(&"**") {
            names.pop();
        }
        if names.is_empty() {
            return Err(malformed("it names nothing"));
        }
        if names.contains(&"..") {
            return Err(malformed("`..` has no meaning in a protected name"));
        }
        let mut parts = vec![Part::AnyDepth];
        for name in &names {
            parts.push(match *name {
                "**" => Part::AnyDepth,
                name => Part::Name(NameGlob::parse(name).map_err(malformed)?.folded()),
            });
        }
        let parts = Parts::new(parts).map_err(malformed)?;
        Ok(Self { pattern: names.join("/"), kind, why: why.to_owned(), origin, parts })
    }

    /// Whether the path is, or lies below, a node of this name that is strictly below a writable root at depth `root`.
    /// Names are compared as a file system that folds case compares them.
    pub fn protects(&self, path: &HostPath, root: usize) -> bool {
        self.node_depth(&Folded::new(path), root).is_some()
    }

    /// The depth of the first node of this name strictly below depth `root`, on the way to the path.
    fn node_depth(&self, path: &Folded, root: usize) -> Option<usize> {
        let mut now = self.parts.start();
        for (name, depth) in path.0.iter().zip(1..) {
            now = self.parts.step(now, name);
            if depth > root && self.parts.accepts(now) {
                return Some(depth);
            }
        }
        None
    }
}

impl Keyed for ProtectedName {
    fn key(&self) -> Option<Key> {
        self.parts.first_name().and_then(NameGlob::literal).map(|name| Key::of_bytes(name.as_bytes()))
    }
}

impl Indexed<ProtectedName> {
    /// The first name in the list that protects the path below a writable root at depth `root`.
    pub fn protecting(&self, path: &HostPath, root: usize) -> Option<&ProtectedName> {
        let path = Folded::new(path);
        let keys = path.0.iter().map(|name| Key::of_bytes(name));
        let protecting = self.candidates(keys).filter(|(_, name)| name.node_depth(&path, root).is_some());
        protecting.min_by_key(|(i, _)| *i).map(|(_, name)| name)
    }
}

/// The names of a path as a file system that folds case compares them.
struct Folded(Vec<Vec<u8>>);

impl Folded {
    fn new(path: &HostPath) -> Self {
        Self(path.names_below(&HostPath::root()).into_iter().flatten().map(fold).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(pattern: &str) -> ProtectedName {
        ProtectedName::new(pattern, ProtectedKind::Any, "test", Origin::builtin("test")).unwrap()
    }

    fn path(text: &str) -> HostPath {
        HostPath::new(text).unwrap()
    }

    #[test]
    fn at_any_depth_in_any_case_below_the_root() {
        let settings = name(".claude/settings*.json");
        for text in [
            "/w/.claude/settings.json",
            "/w/a/b/.claude/settings.local.json",
            "/w/.CLAUDE/Settings.JSON",
            "/w/.claude/\u{17f}ettings.json",
            "/w/.cla\u{200d}ude/settings.json",
            "/w/.claude/settings.json/below",
        ] {
            assert!(settings.protects(&path(text), 1), "{text}");
        }
        for text in ["/w/.claude", "/w/settings.json", "/w/.claude/x/settings.json", "/w/x.claude/settings.json"] {
            assert!(!settings.protects(&path(text), 1), "{text}");
        }
    }

    #[test]
    fn a_root_that_is_the_name_itself_is_not_below_itself() {
        assert!(name(".codex").protects(&path("/h/.codex/x"), 1));
        assert!(!name(".codex").protects(&path("/h/.codex/x"), 2));
        assert!(name(".claude/settings.json").protects(&path("/h/.claude/settings.json"), 2));
        assert!(name(".codex").protects(&path("/h/.codex/a/.codex/x"), 2));
    }

    #[test]
    fn patterns_that_name_nothing_are_refused() {
        for text in ["", "/", "**", "/etc/x", "a/../b", "a/["] {
            let made = ProtectedName::new(text, ProtectedKind::Any, "test", Origin::builtin("test"));
            assert!(made.is_err(), "{text}");
        }
        assert_eq!(name("**/a/b/").pattern, "a/b");
    }

    #[test]
    fn names_with_any_depth_inside() {
        let hooks = name("*.git/modules/**/hooks");
        for text in [
            "/w/.git/modules/a/hooks/x",
            "/w/.git/modules/a/b/c/hooks",
            "/w/.git/modules/a/modules/b/hooks",
            "/w/p.git/modules/hooks",
        ] {
            assert!(hooks.protects(&path(text), 1), "{text}");
        }
        for text in ["/w/.git/hooks", "/w/modules/a/hooks", "/w/.git/modules/a/hook"] {
            assert!(!hooks.protects(&path(text), 1), "{text}");
        }
    }
}
