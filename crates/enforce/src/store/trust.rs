//! Which policy files of repositories the user trusts, by the very content.

use super::{Store, StoreError, io_error, make_private, sha256_hex};
use ringfence_policy::HostPath;
use ringfence_sys::files::{create_new, open_lock, open_read};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;

/// Version of the file's format.
const VERSION: u32 = 1;
/// The file stays far below this.
const MAX: u64 = 16 * 1024 * 1024;

/// Whether a policy file's content is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user trusted this very content.
    Trusted,
    /// The user trusted another content of this file.
    Changed,
    /// The user never trusted this file.
    Unknown,
}

/// A trusted file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// Its path, for people; odd bytes are replaced.
    pub path: String,
    /// SHA-256 of its content.
    pub sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    /// Keyed by the SHA-256 of the path's bytes, which need not be text.
    files: BTreeMap<String, TrustEntry>,
}

impl Store {
    fn trust_path(&self) -> HostPath {
        self.state.join("trust.json")
    }

    /// Whether `content` of the file at `path` is trusted.
    ///
    /// # Errors
    /// The trust file cannot be read or is damaged; treat the policy file as not trusted then.
    pub fn trust_of(&self, path: &HostPath, content: &[u8]) -> Result<Trust, StoreError> {
        Ok(match self.load()?.files.get(&key(path)) {
            Some(entry) if entry.sha256 == sha256_hex(content) => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Unknown,
        })
    }

    /// Trusts `content` of the file at `path`, and no other content of it.
    ///
    /// # Errors
    /// The trust file cannot be read or written.
    pub fn trust(&self, path: &HostPath, content: &[u8]) -> Result<(), StoreError> {
        let entry = TrustEntry { path: path.to_string(), sha256: sha256_hex(content) };
        self.change(|file| {
            file.files.insert(key(path), entry);
        })
    }

    /// Trusts no content of the file at `path` any more. `false`: none was trusted.
    ///
    /// # Errors
    /// The trust file cannot be read or written.
    pub fn distrust(&self, path: &HostPath) -> Result<bool, StoreError> {
        let mut was = false;
        self.change(|file| was = file.files.remove(&key(path)).is_some())?;
        Ok(was)
    }

    /// All trusted files, by path.
    ///
    /// # Errors
    /// The trust file cannot be read or is damaged.
    pub fn trusted_files(&self) -> Result<Vec<TrustEntry>, StoreError> {
        let mut entries: Vec<TrustEntry> = self.load()?.files.into_values().collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn load(&self) -> Result<TrustFile, StoreError> {
        let path = self.trust_path();
        let file = match open_read(path.as_path()) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(TrustFile::default()),
            Err(error) => return Err(io_error("open", &path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX).read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        let damaged = |why: String| StoreError::Damaged { path: path.clone(), why };
        let parsed: TrustFile = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if parsed.version != VERSION {
            return Err(damaged(format!("its version is {}, this program knows {VERSION}", parsed.version)));
        }
        Ok(parsed)
    }

    /// Reads, changes and replaces the file under a lock; a reader sees the old or the new one, never half of it.
    fn change(&self, change: impl FnOnce(&mut TrustFile)) -> Result<(), StoreError> {
        make_private(&self.state, &[])?;
        let lock_path = self.state.join("trust.lock");
        let lock = open_lock(lock_path.as_path()).map_err(io_error("open", &lock_path))?;
        lock.lock().map_err(io_error("lock", &lock_path))?;
        let mut file = self.load()?;
        change(&mut file);
        file.version = VERSION;
        let path = self.trust_path();
        let mut text = serde_json::to_vec_pretty(&file)
            .map_err(|error| StoreError::Damaged { path: path.clone(), why: error.to_string() })?;
        text.push(b'\n');
        let fresh = self.state.join("trust.json.new");
        // A leftover of a process that died; the lock is ours.
        let _ = std::fs::remove_file(fresh.as_path());
        let mut out = create_new(fresh.as_path()).map_err(io_error("make", &fresh))?;
        let written = out.write_all(&text).and_then(|()| out.sync_all());
        if let Err(error) = written {
            let _ = std::fs::remove_file(fresh.as_path());
            return Err(io_error("write", &fresh)(error));
        }
        std::fs::rename(fresh.as_path(), path.as_path()).map_err(io_error("replace", &path))
    }
}

fn key(path: &HostPath) -> String {
    sha256_hex(path.as_path().as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::tests::world;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_very_content_is_trusted() {
        let (_dir, home, store) = world();
        let path = home.join("ringfence.toml");
        assert_eq!(store.trust_of(&path, b"a").unwrap(), Trust::Unknown);
        store.trust(&path, b"a").unwrap();
        assert_eq!(store.trust_of(&path, b"a").unwrap(), Trust::Trusted);
        assert_eq!(store.trust_of(&path, b"b").unwrap(), Trust::Changed);
        assert_eq!(store.trust_of(&home.join("other.toml"), b"a").unwrap(), Trust::Unknown);
        store.trust(&path, b"b").unwrap();
        assert_eq!(store.trust_of(&path, b"a").unwrap(), Trust::Changed);
        assert_eq!(store.trusted_files().unwrap().len(), 1);
        assert!(store.distrust(&path).unwrap());
        assert!(!store.distrust(&path).unwrap());
        assert_eq!(store.trust_of(&path, b"b").unwrap(), Trust::Unknown);
        let mode = store.trust_path().as_path().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn a_damaged_or_redirected_file_trusts_nothing() {
        let (_dir, home, store) = world();
        let path = home.join("ringfence.toml");
        store.trust(&path, b"a").unwrap();
        for damage in ["{", r#"{"version":2,"files":{}}"#] {
            std::fs::write(store.trust_path().as_path(), damage).unwrap();
            assert!(matches!(store.trust_of(&path, b"a"), Err(StoreError::Damaged { .. })));
            assert!(store.trust(&path, b"a").is_err());
        }
        std::fs::remove_file(store.trust_path().as_path()).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", store.trust_path().as_path()).unwrap();
        assert!(matches!(store.trust_of(&path, b"a"), Err(StoreError::Io { .. })));
    }
}
