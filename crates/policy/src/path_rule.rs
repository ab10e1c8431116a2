//! Rules over paths.

use crate::glob::PathGlob;
use crate::origin::Origin;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// An absolute path without `.`, `..` and doubled slashes. Compared by component, never as a string, so `/a/bc` is not
/// below `/a/b`. Its bytes need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPath(PathBuf);

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
        self.components().count()
    }

    /// Whether this path is `base` or lies below it.
    pub fn is_within(&self, base: &HostPath) -> bool {
        self.0.starts_with(&base.0)
    }

    /// The path of `name` in this folder. `name` must be one component; anything else is normalised away.
    #[must_use]
    pub fn join(&self, name: impl AsRef<OsStr>) -> Self {
        let joined = self.0.join(Path::new(name.as_ref()));
        Self::new(joined).unwrap_or_else(|_| self.clone())
    }

    /// The folder that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_owned()))
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read, list, execute.
    Read,
    /// Write, create, remove, rename, change metadata.
    Write,
}

/// What a rule says of the paths it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPattern {
    /// The path itself and everything below it. Wildcard characters in it mean themselves.
    Subtree(HostPath),
    /// Everything that the pattern matches, and everything below what it matches.
    Glob(PathGlob),
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
