//! Private homes: one folder per workspace, kept until the user cleans it.

use super::{Store, StoreError, io_error, make_private, sha256_hex};
use ringfence_policy::HostPath;
use ringfence_sys::files::{EntryKind, entry_kind, list_dir, open_lock, open_read};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A private home in use. Others may use it as well; cleaning waits for the last of them.
#[derive(Debug)]
pub struct Lease {
    home: HostPath,
    _lock: File,
}

impl Lease {
    /// The folder that stands in the place of the home.
    pub fn home(&self) -> &HostPath {
        &self.home
    }
}

/// A private home, as `home list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeEntry {
    /// Its name in the store.
    pub id: String,
    /// The workspace that it belongs to; `None` when its marker is lost.
    pub workspace: Option<HostPath>,
    /// Whether the workspace is still there.
    pub workspace_exists: bool,
    /// The folder that stands in the place of the home.
    pub home: HostPath,
    /// When a run last began with it.
    pub last_used: Option<SystemTime>,
    /// Whether a run uses it now.
    pub in_use: bool,
}

impl HomeEntry {
    /// Bytes on disk.
    pub fn size(&self) -> u64 {
        size_of(self.home.as_path())
    }
}

/// Which homes are cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// That of one workspace.
    Workspace(HostPath),
    /// The one of this name.
    Id(String),
    /// Those whose workspace is gone.
    Orphans,
    /// Those that no run used for so long.
    Unused(Duration),
}

/// What became of a cleaning.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Removed.
    pub removed: Vec<HomeEntry>,
    /// Left, because a run uses them.
    pub in_use: Vec<HomeEntry>,
    /// Could not be removed as a whole.
    pub failed: Vec<(HomeEntry, StoreError)>,
}

impl Store {
    fn homes_dir(&self) -> HostPath {
        self.data.join("homes")
    }

    /// The private home of a workspace, which need not exist yet.
    pub fn home_of(&self, workspace: &HostPath) -> HostPath {
        self.homes_dir().join(id_of(workspace)).join("home")
    }

    /// Makes the private home of a workspace where it is missing and takes a lease on it.
    ///
    /// # Errors
    /// The store cannot be used, is full, or the folder belongs to another workspace.
    pub fn lease_home(&self, workspace: &HostPath) -> Result<Lease, StoreError> {
        let id = id_of(workspace);
        let folder = self.homes_dir().join(&id);
        let lock_path = folder.join("lock");
        // Another process may clean the folder between the two steps; then its lock file has no name any more.
        for _ in 0..8 {
            make_private(&self.data, &[OsStr::new("homes"), OsStr::new(&id), OsStr::new("home")])?;
            let lock = match open_lock(lock_path.as_path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(io_error("open", &lock_path)(error)),
            };
            lock.lock_shared().map_err(io_error("lock", &lock_path))?;
            let held = lock.metadata().map_err(io_error("look at", &lock_path))?;
            if held.nlink() == 0 {
                continue;
            }
            mark(&folder, workspace)?;
            // The time of the lock file says when the home was last used.
            lock.set_modified(SystemTime::now()).map_err(io_error("touch", &lock_path))?;
            return Ok(Lease { home: folder.join("home"), _lock: lock });
        }
        Err(io_error("lock", &lock_path)(ErrorKind::ResourceBusy.into()))
    }

    /// All private homes, the one used last first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn homes(&self) -> Result<Vec<HomeEntry>, StoreError> {
        let dir = self.homes_dir();
        let entries = match list_dir(dir.as_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &dir)(error)),
        };
        let folders = entries.into_iter().filter(|(_, kind)| *kind == EntryKind::Dir);
        let mut homes: Vec<HomeEntry> = folders.map(|(name, _)| entry(&dir, &name)).collect();
        homes.sort_by(|a, b| b.last_used.cmp(&a.last_used).then_with(|| a.id.cmp(&b.id)));
        Ok(homes)
    }

    /// Removes private homes with everything in them. Those in use are left.
    ///
    /// # Errors
    /// The store cannot be read. What went wrong with a single home is in the result.
    pub fn clean_homes(&self, which: &Which) -> Result<Cleaned, StoreError> {
        let mut cleaned = Cleaned::default();
        for home in self.homes()? {
            let chosen = match which {
                Which::All => true,
                Which::Workspace(path) => home.workspace.as_ref() == Some(path),
                Which::Id(id) => home.id == *id,
                Which::Orphans => !home.workspace_exists,
                Which::Unused(time) => home.last_used.is_none_or(|t| t.elapsed().is_ok_and(|idle| idle > *time)),
            };
            if !chosen {
                continue;
            }
            let folder = self.homes_dir().join(&home.id);
            match remove(&folder) {
                Ok(true) => cleaned.removed.push(home),
                Ok(false) => cleaned.in_use.push(home),
                Err(error) => cleaned.failed.push((home, error)),
            }
        }
        Ok(cleaned)
    }
}

/// A name that a person recognises, and a hash of the path that keeps workspaces of one name apart.
fn id_of(workspace: &HostPath) -> String {
    let name = workspace.file_name().unwrap_or_default();
    let readable: String = name
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.' { c } else { '_' })
        .take(40)
        .collect();
    let hash = sha256_hex(workspace.as_path().as_os_str().as_bytes());
    let readable = readable.trim_start_matches('.');
    format!("{readable}-{}", hash.get(..16).unwrap_or(&hash))
}

/// Writes the marker, or compares it.
fn mark(folder: &HostPath, workspace: &HostPath) -> Result<(), StoreError> {
    let path = folder.join("workspace");
    let wanted = workspace.as_path().as_os_str().as_bytes();
    match read_marker(&path) {
        Some(found) if found == wanted => Ok(()),
        Some(found) if !found.is_empty() => Err(StoreError::Marker { home: folder.join("home") }),
        _ => {
            let mut file = open_lock(path.as_path()).map_err(io_error("make", &path))?;
            file.write_all(wanted).map_err(io_error("write", &path))
        }
    }
}

fn read_marker(path: &HostPath) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_read(path.as_path()).ok()?.take(8192).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn entry(dir: &HostPath, name: &OsStr) -> HomeEntry {
    let folder = dir.join(name);
    let workspace = read_marker(&folder.join("workspace"))
        .filter(|bytes| !bytes.is_empty())
        .and_then(|bytes| HostPath::new(OsString::from_vec(bytes)).ok());
    let lock = File::open(folder.join("lock").as_path()).ok();
    HomeEntry {
        id: name.to_string_lossy().into_owned(),
        workspace_exists: workspace.as_ref().is_some_and(|w| entry_kind(w.as_path()).is_ok()),
        workspace,
        home: folder.join("home"),
        last_used: lock.as_ref().and_then(|l| l.metadata().ok()?.modified().ok()),
        in_use: lock.is_some_and(|l| matches!(l.try_lock(), Err(TryLockError::WouldBlock))),
    }
}

/// Removes a home. `false`: it is in use.
fn remove(folder: &HostPath) -> Result<bool, StoreError> {
    let lock_path = folder.join("lock");
    let lock = open_lock(lock_path.as_path()).map_err(io_error("open", &lock_path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(io_error("lock", &lock_path)(error)),
    }
    let home = folder.join("home");
    // The standard library removes relative to open folders and follows no link. The lock goes last, so that nobody
    // finds half a home.
    if let Err(error) = remove_tree(home.as_path()) {
        return Err(io_error("remove", &home)(error));
    }
    std::fs::remove_dir_all(folder.as_path()).map_err(io_error("remove", folder))?;
    Ok(true)
}

fn remove_tree(tree: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(tree) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // Caches of Go and others hold folders without write permission, which stop their owner, too.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_up(tree);
            std::fs::remove_dir_all(tree)
        }
        other => other,
    }
}

fn open_up(dir: &Path) {
    let _ = std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700));
    for (name, kind) in list_dir(dir).unwrap_or_default() {
        if kind == EntryKind::Dir {
            open_up(&dir.join(name));
        }
    }
}

fn size_of(dir: &Path) -> u64 {
    let entries = list_dir(dir).unwrap_or_default();
    let sizes = entries.into_iter().map(|(name, kind)| {
        let path = dir.join(name);
        let own = path.symlink_metadata().map_or(0, |m| m.blocks() * 512);
        own + if kind == EntryKind::Dir { size_of(&path) } else { 0 }
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::world;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_workspace_keeps_its_home_and_another_gets_another() {
        let (_dir, home, store) = world();
        let (a, b) = (home.join("x").join("app"), home.join("y").join("app"));
        let lease = store.lease_home(&a).unwrap();
        assert_eq!(lease.home(), &store.home_of(&a));
        assert!(lease.home().as_path().is_dir());
        assert_ne!(store.home_of(&a), store.home_of(&b));
        std::fs::write(lease.home().join("kept").as_path(), "x").unwrap();
        drop(lease);
        let again = store.lease_home(&a).unwrap();
        assert!(again.home().join("kept").as_path().exists());
        let mode = again.home().as_path().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
    }

    #[test]
    fn homes_in_use_are_listed_and_not_cleaned() {
        let (_dir, home, store) = world();
        assert!(store.homes().unwrap().is_empty());
        let workspace = home.join("app");
        std::fs::create_dir(workspace.as_path()).unwrap();
        let first = store.lease_home(&workspace).unwrap();
        let second = store.lease_home(&workspace).unwrap();
        drop(first);
        let listed = store.homes().unwrap();
        assert_eq!(listed.len(), 1);
        assert!(listed[0].in_use && listed[0].workspace_exists);
        assert_eq!(listed[0].workspace.as_ref(), Some(&workspace));
        let cleaned = store.clean_homes(&Which::All).unwrap();
        assert_eq!((cleaned.removed.len(), cleaned.in_use.len()), (0, 1));
        drop(second);
        let cleaned = store.clean_homes(&Which::Workspace(workspace)).unwrap();
        assert_eq!((cleaned.removed.len(), cleaned.in_use.len()), (1, 0));
        assert!(store.homes().unwrap().is_empty());
    }

    #[test]
    fn cleaning_chooses_and_follows_no_link() {
        let (_dir, home, store) = world();
        let outside = home.join("outside");
        std::fs::create_dir(outside.as_path()).unwrap();
        std::fs::write(outside.join("precious").as_path(), "x").unwrap();
        let lease = store.lease_home(&home.join("gone")).unwrap();
        symlink(outside.as_path(), lease.home().join("link").as_path()).unwrap();
        let locked = lease.home().join("cache");
        std::fs::create_dir(locked.as_path()).unwrap();
        std::fs::write(locked.join("f").as_path(), "x").unwrap();
        std::fs::set_permissions(locked.as_path(), PermissionsExt::from_mode(0o500)).unwrap();
        assert!(store.homes().unwrap()[0].size() > 0);
        drop(lease);
        drop(store.lease_home(&outside).unwrap());
        let day = Duration::from_secs(86_400);
        assert!(store.clean_homes(&Which::Unused(day)).unwrap().removed.is_empty());
        let cleaned = store.clean_homes(&Which::Orphans).unwrap();
        assert_eq!(cleaned.removed.len(), 1, "{:?}", cleaned.failed);
        assert!(outside.join("precious").as_path().exists());
        assert_eq!(store.homes().unwrap().len(), 1);
    }

    #[test]
    fn a_home_of_another_workspace_is_refused() {
        let (_dir, home, store) = world();
        let workspace = home.join("app");
        drop(store.lease_home(&workspace).unwrap());
        let marker = store.home_of(&workspace).parent().unwrap().join("workspace");
        std::fs::write(marker.as_path(), "/somewhere/else").unwrap();
        assert!(matches!(store.lease_home(&workspace), Err(StoreError::Marker { .. })));
    }

    #[test]
    fn odd_names_make_plain_ids() {
        let id = id_of(&HostPath::new(OsStr::from_bytes(b"/a/.we\xff ird/../..b\n")).unwrap());
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{id}");
        assert!(!id.starts_with('.'));
    }
}
