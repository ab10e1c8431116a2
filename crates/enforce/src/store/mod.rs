//! Ringfence's own files: private homes per workspace, trusted policy files, caches and logs.
//!
//! ```text
//! $XDG_DATA_HOME/ringfence/homes/ID/{home/, workspace, lock}
//! $XDG_STATE_HOME/ringfence/{trust.json, audit.jsonl, registries/, decoy}
//! ```
//!
//! Everything is private to the user (0700, 0600), owned by the user, and outside of every folder that a sandbox may
//! write: whoever could change these files could widen the next run. Links in their place are refused.

mod homes;
mod trust;

pub use homes::{Cleaned, HomeEntry, Lease, Which};
pub use trust::{Trust, TrustEntry};

use crate::probe::Env;
use ringfence_policy::HostPath;
use ringfence_sys::files::{Folder, create_new, real_path, refused_link};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

/// The folders of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    data: HostPath,
    state: HostPath,
}

/// Why a file of ours cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A step failed.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// The step.
        doing: &'static str,
        /// On what.
        path: HostPath,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder belongs to somebody else, who could change what we keep there.
    #[error("`{path}` belongs to user {owner}, not to user {uid}")]
    Foreign {
        /// The folder.
        path: HostPath,
        /// Whose it is.
        owner: u32,
        /// Who runs ringfence.
        uid: u32,
    },
    /// A folder of ours lies where the command may write.
    #[error("ringfence's own folder `{path}` lies inside `{root}`, where the command may write")]
    Inside {
        /// Our folder.
        path: HostPath,
        /// The writable root.
        root: HostPath,
    },
    /// A private home was made for another workspace.
    #[error("the private home `{home}` belongs to another workspace")]
    Marker {
        /// The home.
        home: HostPath,
    },
    /// A file of ours cannot be understood.
    #[error("`{path}` is damaged: {why}")]
    Damaged {
        /// Which.
        path: HostPath,
        /// In what way.
        why: String,
    },
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { path, source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    format!("free space on the file system of `{path}`")
                }
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    "set XDG_DATA_HOME and XDG_STATE_HOME to folders that you may write".to_owned()
                }
                ErrorKind::NotADirectory => format!("remove what is at `{path}`"),
                _ if refused_link(source) => format!("remove the link at `{path}`"),
                _ => format!("look at `{path}`"),
            },
            Self::Foreign { .. } => {
                "run with your own HOME (sudo -H), or set XDG_DATA_HOME and XDG_STATE_HOME".to_owned()
            }
            Self::Inside { .. } => {
                "choose a narrower workspace, or set XDG_DATA_HOME and XDG_STATE_HOME to folders outside of it"
                    .to_owned()
            }
            Self::Marker { home } => format!("remove it: ringfence home clean, or look at `{home}`"),
            Self::Damaged { path, .. } => format!("remove `{path}` and trust the files again"),
        }
    }
}

fn io_error(doing: &'static str, path: &HostPath) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.clone();
    move |source| StoreError::Io { doing, path, source }
}

/// The SHA-256 of some bytes, as lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl Store {
    /// Finds the folders, makes nothing. A variable that is not an absolute path is ignored (XDG Base Directory
    /// Specification).
    pub fn at(env: &[(OsString, OsString)], home: &HostPath) -> Self {
        let env = Env(env);
        let folder = |var: &str, default: &[&str]| {
            let base = env.path(var).unwrap_or_else(|| default.iter().fold(home.clone(), |at, name| at.join(name)));
            without_links(&base).join("ringfence")
        };
        Self {
            data: folder("XDG_DATA_HOME", &[".local", "share"]),
            state: folder("XDG_STATE_HOME", &[".local", "state"]),
        }
    }

    /// Where the private homes are. The command must not read it: other workspaces' logins are there.
    pub fn data_dir(&self) -> &HostPath {
        &self.data
    }

    /// Where trust, logs and caches are. The command must not read it.
    pub fn state_dir(&self) -> &HostPath {
        &self.state
    }

    /// The audit file that is used when none is named.
    pub fn audit_file(&self) -> HostPath {
        self.state.join("audit.jsonl")
    }

    /// Where the answers of package clients are kept.
    pub fn registry_cache(&self) -> HostPath {
        self.state.join("registries")
    }

    /// Whether the command may write none of our folders.
    ///
    /// # Errors
    /// [`StoreError::Inside`].
    pub fn check_outside(&self, writable: &[HostPath]) -> Result<(), StoreError> {
        for path in [&self.data, &self.state] {
            if let Some(root) = writable.iter().find(|root| path.is_within(root)) {
                return Err(StoreError::Inside { path: path.clone(), root: root.clone() });
            }
        }
        Ok(())
    }

    /// A file that the proof tries to read and must not be able to; made when it is missing.
    ///
    /// # Errors
    /// The state folder cannot be used or is full.
    pub fn decoy(&self) -> Result<HostPath, StoreError> {
        let path = self.state.join("decoy");
        if path.as_path().symlink_metadata().is_ok_and(|m| m.is_file()) {
            return Ok(path);
        }
        make_private(&self.state, &[])?;
        match create_new(path.as_path()) {
            Ok(mut file) => {
                file.write_all(b"Nobody behind the walls can read this.\n").map_err(io_error("write", &path))?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("make", &path)(error)),
        }
        Ok(path)
    }
}

/// The path with the links of its existing part followed: the executor opens what we name without following any.
fn without_links(path: &HostPath) -> HostPath {
    let mut missing = Vec::new();
    let mut at = path.clone();
    loop {
        if let Ok(real) = real_path(at.as_path())
            && let Ok(real) = HostPath::new(real)
        {
            return missing.iter().rev().fold(real, |at, name: &OsString| at.join(name));
        }
        match (at.file_name(), at.parent()) {
            (Some(name), Some(parent)) => {
                missing.push(name);
                at = parent;
            }
            _ => return path.clone(),
        }
    }
}

/// Opens `base` and the folders `below` it, one in the other, and makes those that are missing. All of them are ours:
/// private, owned by this user, no links.
pub(crate) fn make_private(base: &HostPath, below: &[&OsStr]) -> Result<Folder, StoreError> {
    let parent = base.parent().unwrap_or_else(HostPath::root);
    if parent.as_path().symlink_metadata().is_err() {
        use std::os::unix::fs::DirBuilderExt;
        // The specification asks for 0700 when a base folder has to be made.
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent.as_path()).map_err(io_error("make", &parent))?;
    }
    let mut folder = Folder::open(parent.as_path()).map_err(io_error("open", &parent))?;
    let mut path = parent;
    let first = base.file_name().unwrap_or_default();
    for name in std::iter::once(first.as_os_str()).chain(below.iter().copied()) {
        path = path.join(name);
        folder = folder.enter_or_make(name).map_err(io_error("make or open", &path))?;
        let (owner, mode) = folder.owner_and_mode().map_err(io_error("look at", &path))?;
        let uid = ringfence_sys::host::effective_ids().0;
        if owner != uid {
            return Err(StoreError::Foreign { path, owner, uid });
        }
        if mode & 0o077 != 0 {
            folder.make_private().map_err(io_error("make private", &path))?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    pub(crate) fn world() -> (tempfile::TempDir, HostPath, Store) {
        let dir = tempfile::tempdir().unwrap();
        let home = HostPath::new(std::fs::canonicalize(dir.path()).unwrap()).unwrap();
        let store = Store::at(&[], &home);
        (dir, home, store)
    }

    #[test]
    fn hashes_are_those_of_fips_180_4() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn folders_follow_the_specification() {
        let (_dir, home, store) = world();
        assert_eq!(store.data_dir(), &home.join(".local").join("share").join("ringfence"));
        let vars = [("XDG_DATA_HOME", "/srv/data"), ("XDG_STATE_HOME", "relative")];
        let vars = vars.map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let moved = Store::at(&vars, &home);
        assert_eq!(moved.data_dir(), &HostPath::new("/srv/data/ringfence").unwrap());
        assert_eq!(moved.state_dir(), &home.join(".local").join("state").join("ringfence"));
        // A link on the way is followed once, here.
        std::fs::create_dir(home.join("real").as_path()).unwrap();
        symlink("real", home.join(".local").as_path()).unwrap();
        assert_eq!(Store::at(&[], &home).data_dir(), &home.join("real").join("share").join("ringfence"));
    }

    #[test]
    fn nothing_is_made_until_it_is_needed_and_then_it_is_private() {
        let (_dir, home, store) = world();
        assert!(!home.join(".local").as_path().exists());
        let decoy = store.decoy().unwrap();
        assert_eq!(store.decoy().unwrap(), decoy);
        let mode = |p: &HostPath| p.as_path().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&decoy), 0o600);
        assert_eq!(mode(store.state_dir()), 0o700);
        std::fs::set_permissions(store.state_dir().as_path(), PermissionsExt::from_mode(0o755)).unwrap();
        make_private(store.state_dir(), &[]).unwrap();
        assert_eq!(mode(store.state_dir()), 0o700);
    }

    #[test]
    fn a_link_in_the_place_of_our_folder_is_refused() {
        let (_dir, home, store) = world();
        std::fs::create_dir_all(home.join(".local").join("state").as_path()).unwrap();
        std::fs::create_dir(home.join("bait").as_path()).unwrap();
        symlink(home.join("bait").as_path(), store.state_dir().as_path()).unwrap();
        let error = store.decoy().unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(error.hint().contains("remove"), "{}", error.hint());
        assert!(!home.join("bait").join("decoy").as_path().exists());
    }

    #[test]
    fn our_folders_may_not_be_writable_for_the_command() {
        let (_dir, home, store) = world();
        assert!(store.check_outside(&[home.join("ws")]).is_ok());
        assert!(matches!(store.check_outside(&[home.join(".local")]), Err(StoreError::Inside { .. })));
    }

    #[test]
    fn a_full_disk_is_said_so() {
        let error = io_error("write", &HostPath::root())(ErrorKind::StorageFull.into());
        assert!(error.hint().starts_with("free space"));
    }
}
