//! Rules over paths.

use crate::glob::{GlobError, PathGlob};
use crate::index::{Key, Keyed};
use crate::origin::Origin;
use serde::Serialize;
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::path::{Component, Path, PathBuf};

/// An absolute path without `.`, `..` and doubled slashes. Compared by component, never as a string, so `/a/bc` is not
/// below `/a/b`. Its bytes need not be UTF-8.
#[derive(Debug, Clone)]
pub struct HostPath(PathBuf);

/// All comparisons are over bytes: normalised paths are equal where their bytes are, and a launch compares thousands.
impl PartialEq for HostPath {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for HostPath {}

impl Hash for HostPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

/// By component, as [`Path`] is: what lies below a path follows it without a gap.
impl Ord for HostPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.bytes(), other.bytes());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        // A slash ends a name, so it comes before every byte that a name can hold.
        let rank = |byte: Option<&u8>| byte.map(|&byte| if byte == b'/' { 0 } else { byte });
        rank(a.get(same)).cmp(&rank(b.get(same)))
    }
}

impl PartialOrd for HostPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Why a path is not a [`HostPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It does not start with `/`.
    #[error("path `{}` is not absolute", .0.display())]
    NotAbsolute(PathBuf),
    /// It contains a NUL byte, which no system call accepts.
    #[error("path `{}` contains a NUL byte", .0.display())]
    Nul(PathBuf),
}

impl HostPath {
    /// The root folder.
    pub fn root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Makes a path absolute in form: `.` and doubled slashes go, `..` takes the component before it away (lexically,
    /// as a shell's `cd -L` does; resolve symlinks before where they matter).
    ///
    /// # Errors
    /// The path is relative or holds a NUL byte.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(PathError::Nul(path.to_owned()));
        }
        if !path.is_absolute() {
            return Err(PathError::NotAbsolute(path.to_owned()));
        }
        let mut out = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Normal(name) => out.push(name),
                Component::ParentDir => {
                    out.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(Self(out))
    }

    /// The path for a system call or for printing.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The names below the root, in order.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.0.components().filter_map(|c| match c {
            Component::Normal(name) => Some(name),
            Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => None,
        })
    }

    /// How many names below the root: 0 for `/`.
    pub fn depth(&self) -> usize {
        let path = self.bytes();
        if path == b"/" { 0 } else { path.iter().filter(|&&b| b == b'/').count() }
    }

    /// Whether this path is `base` or lies below it.
    pub fn is_within(&self, base: &HostPath) -> bool {
        self.tail_below(base).is_some()
    }

    /// The names between `base` and this path; `None` when this path does not lie within `base`.
    pub(crate) fn names_below(&self, base: &HostPath) -> Option<impl Iterator<Item = &[u8]>> {
        self.tail_below(base).map(|tail| tail.split(|&b| b == b'/').filter(|name| !name.is_empty()))
    }

    /// The bytes behind `base`. Both are normalised, so that equal bytes up to a slash are equal components; comparing
    /// them at once keeps a decision over many rules cheap.
    fn tail_below(&self, base: &HostPath) -> Option<&[u8]> {
        let (path, base) = (self.bytes(), base.bytes());
        let tail = path.strip_prefix(base)?;
        (base == b"/" || tail.is_empty() || tail.first() == Some(&b'/')).then_some(tail)
    }

    /// The bytes of the path.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_encoded_bytes()
    }

    /// The path of `name` in this folder. `name` must be one component; anything else is normalised away.
    #[must_use]
    pub fn join(&self, name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        let plain = |part: &[u8]| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0);
        if name.as_encoded_bytes().split(|&b| b == b'/').all(plain) {
            let mut joined = OsString::with_capacity(self.bytes().len() + 1 + name.len());
            joined.push(&self.0);
            if self.bytes() != b"/" {
                joined.push("/");
            }
            joined.push(name);
            return Self(PathBuf::from(joined));
        }
        let joined = self.0.join(Path::new(name));
        Self::new(joined).unwrap_or_else(|_| self.clone())
    }

    /// The folder that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_owned()))
    }

    /// The path for people, with `~` in the place of the home folder.
    pub fn shortened(&self, home: &HostPath) -> String {
        match self.tail_below(home) {
            Some(_) if home.0.parent().is_none() => self.to_string(),
            Some(tail) => format!("~{}", String::from_utf8_lossy(tail)),
            None => self.to_string(),
        }
    }

    /// The last name; `None` for the root.
    pub fn file_name(&self) -> Option<OsString> {
        self.0.file_name().map(OsStr::to_owned)
    }
}

impl std::fmt::Display for HostPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for HostPath {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.to_string_lossy())
    }
}

/// What is asked of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read, list, execute.
    Read,
    /// Write, create, remove, rename, change metadata.
    Write,
}

/// What a rule says of the paths it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathVerb {
    /// Reading is allowed; says nothing of writing.
    AllowRead,
    /// Reading and writing are allowed.
    AllowWrite,
    /// Neither reading nor writing is allowed.
    DenyRead,
    /// Writing is not allowed; says nothing of reading.
    DenyWrite,
}

/// Which paths a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPattern {
    /// The path itself and everything below it. Wildcard characters in it mean themselves.
    Subtree(HostPath),
    /// Everything that the pattern matches, and everything below what it matches.
    Glob(PathGlob),
}

impl PathPattern {
    /// Parses an absolute path or pattern; what holds no wildcard is a [`PathPattern::Subtree`].
    ///
    /// # Errors
    /// As [`PathGlob::parse`].
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let glob = PathGlob::parse(text)?;
        Ok(if glob.is_literal() { Self::Subtree(glob.base) } else { Self::Glob(glob) })
    }

    /// Whether the pattern is a path, which beats a pattern with wildcards at the same node.
    pub fn is_exact(&self) -> bool {
        match self {
            Self::Subtree(_) => true,
            Self::Glob(_) => false,
        }
    }

    /// The depth of the node through which the pattern covers the path: the path itself or a folder above it; the
    /// deepest, when there are several. `None`: the pattern does not cover the path.
    pub fn match_depth(&self, path: &HostPath) -> Option<usize> {
        match self {
            Self::Subtree(base) => path.is_within(base).then(|| base.depth()),
            Self::Glob(glob) => glob.match_depth(path),
        }
    }

    /// Whether something strictly below the folder may be matched by itself, so that a search must enter it.
    pub fn could_match_below(&self, folder: &HostPath) -> bool {
        match self {
            Self::Subtree(base) => base != folder && base.is_within(folder),
            Self::Glob(glob) => glob.could_match_below(folder),
        }
    }

    /// Whether exactly this path is matched; what lies below it is covered, but not matched.
    pub fn matches(&self, path: &HostPath) -> bool {
        match self {
            Self::Subtree(base) => base == path,
            Self::Glob(glob) => glob.matches(path),
        }
    }

    /// The path, or the longest folder without wildcards.
    pub fn base(&self) -> &HostPath {
        match self {
            Self::Subtree(base) => base,
            Self::Glob(glob) => &glob.base,
        }
    }
}

/// The pattern as [`PathPattern::parse`] reads it back.
impl std::fmt::Display for PathPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Subtree(base) => f.write_str(&crate::name_glob::escape(&base.to_string())),
            Self::Glob(glob) => glob.fmt(f),
        }
    }
}

/// One rule over paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathRule {
    /// Which paths.
    pub pattern: PathPattern,
    /// What of them.
    pub verb: PathVerb,
    /// Whose word it is.
    pub origin: Origin,
    /// Why, in a few words, for `explain` and denials: `credential store: ssh keys`.
    pub why: Option<String>,
}

impl Keyed for PathRule {
    fn key(&self) -> Option<Key> {
        Some(Key::of_path(self.pattern.base()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn paths_are_compared_as_their_components_are(a in "/[ab./-]{0,8}", b in "/[ab./-]{0,8}") {
            let (a, b) = (HostPath::new(a).unwrap(), HostPath::new(b).unwrap());
            prop_assert_eq!(a.cmp(&b), a.as_path().cmp(b.as_path()));
            prop_assert_eq!(a == b, a.as_path() == b.as_path());
        }
    }
}
