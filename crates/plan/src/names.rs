//! Protected names as they exist when the run starts; the seam for the broker, which decides on those that do not.
//!
//! Also the sieve by which the search of [`crate::walk`] tells, from a name alone, whether the policy must be asked
//! about a path at all: in a workspace of 100,000 files it must not be asked 100,000 times.

use ringfence_policy::{HostPath, ProtectedName};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;

/// Names that patterns may end in. It lets too much through, never too little; letters are compared without case,
/// because protected names are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sieve {
    /// First letters of the names in `literal`: most names of a workspace are told apart by theirs.
    initials: BTreeSet<u8>,
    literal: HashSet<Vec<u8>>,
    /// What a name begins and ends with.
    affixes: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Sieve {
    /// Adds a pattern's last component.
    pub(crate) fn add(&mut self, pattern: &str) {
        let last = pattern.rsplit('/').find(|name| *name != "**").unwrap_or("*");
        for name in alternatives(last) {
            let name = name.to_ascii_lowercase();
            match (name.find(WILD), name.rfind(WILD)) {
                (Some(first), Some(last)) => {
                    let (head, tail) =
                        (name.get(..first).unwrap_or_default(), name.get(last + 1..).unwrap_or_default());
                    self.affixes.insert((head.as_bytes().to_vec(), tail.as_bytes().to_vec()));
                }
                _ => {
                    self.initials.extend(name.bytes().next());
                    self.literal.insert(name.into_bytes());
                }
            }
        }
    }

    /// Whether a pattern may end in this name.
    pub(crate) fn passes(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        // How letters beyond ASCII are compared is the policy's affair.
        if !name.is_ascii() {
            return !self.is_empty();
        }
        let initial = name.first().map(u8::to_ascii_lowercase);
        let literal = initial.is_some_and(|initial| self.initials.contains(&initial))
            && self.literal.contains(&name.to_ascii_lowercase());
        literal || self.affixes.iter().any(|(head, tail)| has_affixes(name, head, tail))
    }

    /// Whether no pattern was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.affixes.is_empty()
    }
}

/// Whether a name begins with one thing and ends with another, without a look at case.
fn has_affixes(name: &[u8], head: &[u8], tail: &[u8]) -> bool {
    let start = name.get(..head.len());
    let end = name.len().checked_sub(tail.len()).and_then(|at| name.get(at..));
    name.len() >= head.len() + tail.len()
        && start.is_some_and(|start| start.eq_ignore_ascii_case(head))
        && end.is_some_and(|end| end.eq_ignore_ascii_case(tail))
}

/// Characters that have a meaning in patterns.
const WILD: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// `*.{pem,key}` as two patterns. What is nested stays as it is: its braces then count as wildcards.
fn alternatives(name: &str) -> Vec<String> {
    let parts = name.split_once('{').and_then(|(head, rest)| {
        let (inside, tail) = rest.split_once('}')?;
        let plain = ![head, inside, tail].iter().any(|part| part.contains(['{', '}', '\\', '[']));
        plain.then(|| inside.split(',').map(|choice| format!("{head}{choice}{tail}")).collect())
    });
    parts.unwrap_or_else(|| vec![name.to_owned()])
}

/// Sieves for protected names. A pattern of several components is looked for only in a folder whose own name suits the
/// one before the last: `hooks` and `config` are common names, `.git` is not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Protected {
    single: Sieve,
    within: Vec<Within>,
}

/// What is protected in folders of some name.
#[derive(Debug, Clone)]
struct Within {
    pattern: String,
    folder: Sieve,
    /// Also in folders at any depth below such a folder.
    deep: bool,
    names: Sieve,
}

/// Which of [`Protected::within`] matter in a folder.
pub(crate) type Active = Vec<usize>;

impl Protected {
    pub(crate) fn new(names: &[ProtectedName]) -> Self {
        let mut out = Self::default();
        for name in names {
            out.add(&name.pattern);
        }
        out
    }

    fn add(&mut self, pattern: &str) {
        let Some((folders, _)) = pattern.rsplit_once('/') else {
            self.single.add(pattern);
            return;
        };
        let (folders, deep) = match folders.strip_suffix("/**") {
            Some(folders) => (folders, true),
            None => (folders, false),
        };
        let folder = folders.rsplit('/').next().unwrap_or("*");
        let known = self.within.iter_mut().find(|within| within.pattern == folder && within.deep == deep);
        if let Some(within) = known {
            within.names.add(pattern);
            return;
        }
        let mut within = Within { pattern: folder.to_owned(), folder: Sieve::default(), deep, names: Sieve::default() };
        within.folder.add(folder);
        within.names.add(pattern);
        self.within.push(within);
    }

    /// What matters in the folder in which a search starts.
    pub(crate) fn at(&self, folder: &HostPath) -> Active {
        let mut active = Active::new();
        for name in folder.components() {
            active = self.below(&active, name);
        }
        active
    }

    /// What matters in a folder of this name, which lies in one where `active` matters.
    pub(crate) fn below(&self, active: &Active, folder: &OsStr) -> Active {
        let matters = |n: &usize, within: &Within| within.deep && active.contains(n) || within.folder.passes(folder);
        self.within.iter().enumerate().filter(|(n, within)| matters(n, within)).map(|(n, _)| n).collect()
    }

    /// Whether a protected name may end in this name, in a folder where `active` matters.
    pub(crate) fn passes(&self, active: &Active, name: &OsStr) -> bool {
        self.single.passes(name) || active.iter().filter_map(|n| self.within.get(*n)).any(|w| w.names.passes(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.single.is_empty() && self.within.is_empty()
    }
}

/// The folders between a protected path and the folder that its pattern starts in: they must keep their names, else
/// `mv .git x && mkdir -p .git/hooks` makes a second, unprotected one.
pub(crate) fn holders(names: &[ProtectedName], path: &HostPath) -> BTreeSet<HostPath> {
    // Whether a name of this pattern ends exactly here: it protects the path, but not by a folder above it.
    let ends_here = |name: &&ProtectedName| name.protects(path, path.depth().saturating_sub(1));
    names.iter().filter(ends_here).flat_map(|name| between(&name.pattern, path)).collect()
}

/// The folders above a path that a pattern's components but for the last one stand for.
fn between(pattern: &str, path: &HostPath) -> Vec<HostPath> {
    let parents = std::iter::successors(path.parent(), HostPath::parent);
    let parts: Vec<&str> = pattern.split('/').collect();
    if !parts.contains(&"**") {
        return parents.take(parts.len().saturating_sub(1)).collect();
    }
    let mut first = Sieve::default();
    first.add(parts.first().unwrap_or(&"*"));
    let mut out = Vec::new();
    for folder in parents {
        let starts_here = folder.file_name().is_some_and(|name| first.passes(&name));
        out.push(folder);
        if starts_here {
            return out;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::{Origin, ProtectedKind};

    fn sieve(patterns: &[&str]) -> Sieve {
        let mut sieve = Sieve::default();
        patterns.iter().for_each(|pattern| sieve.add(pattern));
        sieve
    }

    #[test]
    fn only_names_that_a_pattern_can_end_in_pass() {
        let sieve = sieve(&["**/.env", "**/*.{pem,key}", ".claude/settings*.json", "a/[xy]?b", "secrets/**"]);
        for name in [".env", ".ENV", "a.pem", ".key", "settings.json", "Settings.local.JSON", "zzz-b", "secrets"] {
            assert!(sieve.passes(OsStr::new(name)), "{name}");
        }
        for name in ["env", ".envrc", "pem", "a.pem2", "settings.jsonc", "setting.json", "secret", "", "main.rs"] {
            assert!(!sieve.passes(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn names_beyond_ascii_are_left_to_the_policy() {
        assert!(sieve(&[".env"]).passes(OsStr::new("é")));
        assert!(!sieve(&[]).passes(OsStr::new("é")));
    }

    #[test]
    fn names_of_several_parts_are_looked_for_in_their_folders() {
        let name = |pattern| ProtectedName::new(pattern, ProtectedKind::Any, "", Origin::builtin("")).unwrap();
        let patterns = [".mcp.json", "*.git/hooks", ".git/modules/**/config", ".claude/settings*.json", ".a/*/b"];
        let protected = Protected::new(&patterns.map(name));
        let passes = |folder: &str, name: &str| {
            protected.passes(&protected.at(&HostPath::new(folder).unwrap()), OsStr::new(name))
        };
        for (folder, name) in [
            ("/w", ".mcp.json"),
            ("/w/bare.git", "hooks"),
            ("/w/.GIT", "Hooks"),
            ("/w/.git/modules", "config"),
            ("/w/.git/modules/a/b", "config"),
            ("/w/.claude", "settings.local.json"),
            ("/w/.a/x", "b"),
        ] {
            assert!(passes(folder, name), "{folder} {name}");
        }
        for (folder, name) in [("/w/git", "hooks"), ("/w", "config"), ("/w/.claude/x", "settings.json"), ("/w", "x")] {
            assert!(!passes(folder, name), "{folder} {name}");
        }
    }

    #[test]
    fn what_holds_a_protected_name() {
        let path = |text: &str| HostPath::new(text).unwrap();
        let name = |pattern| ProtectedName::new(pattern, ProtectedKind::Any, "", Origin::builtin("")).unwrap();
        let names = [name("*.git/hooks"), name("*.git/modules/**/hooks"), name(".mcp.json")];
        let holders = |at: &str| holders(&names, &path(at)).into_iter().map(|p| p.to_string()).collect::<Vec<_>>();
        assert_eq!(holders("/w/a/.git/hooks"), ["/w/a/.git"]);
        assert_eq!(
            holders("/w/.git/modules/a/b/hooks"),
            ["/w/.git", "/w/.git/modules", "/w/.git/modules/a", "/w/.git/modules/a/b"]
        );
        assert!(holders("/w/a/.mcp.json").is_empty());
        assert!(holders("/w/.git/hooks/pre-commit").is_empty());
    }
}
