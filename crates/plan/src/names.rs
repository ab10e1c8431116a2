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
