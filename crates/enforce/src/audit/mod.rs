//! The audit file: one event is one line of JSON, appended by one `write(2)`.
//!
//! The file belongs to the user (0600) and lies where the command can neither read nor write it. What the command can
//! cause to be logged is bounded, and holds no control character that a terminal would obey.

mod line;
mod read;

pub use read::{Filter, Follow, ReadSummary, Record, read};

use crate::store::{StoreError, make_private};
use ringfence_policy::HostPath;
use ringfence_policy::event::{Event, EventSink};
use ringfence_sys::files::{create_new, open_append, open_lock, real_path, refused_link};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

/// The default file is set aside when it has grown to this many bytes.
pub const ROTATE_AT: u64 = 16 * 1024 * 1024;
/// How many files that were set aside are kept: `audit.jsonl.1` is the newest.
pub const KEPT: u32 = 3;
/// One run logs at most this many bytes; the command decides how many lines there are, so it could fill the disk.
pub const RUN_LIMIT: u64 = 64 * 1024 * 1024;

/// An event as the line that stands in the file, with its end; `None` when it cannot be serialised.
pub fn line(event: &Event, run: &str) -> Option<String> {
    line::render(event, run)
}

/// Why the audit file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A step failed.
    #[error("cannot {doing} the audit file `{path}`")]
    Io {
        /// The step.
        doing: &'static str,
        /// The file.
        path: HostPath,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The folder of the default file cannot be used.
    #[error("cannot use the folder of the audit file")]
    Folder(#[source] StoreError),
    /// The command could write the file.
    #[error("the audit file `{path}` lies inside `{root}`, where the command may write")]
    Inside {
        /// The file.
        path: HostPath,
        /// The writable root.
        root: HostPath,
    },
    /// It is no regular file, or has another name elsewhere, or another owner, or everybody may write it.
    #[error("the audit file `{path}` {what}")]
    Unsafe {
        /// The file.
        path: HostPath,
        /// What is wrong with it.
        what: String,
    },
}

impl AuditError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { path, source, .. } if refused_link(source) => {
                format!("name the file that the link `{path}` leads to")
            }
            Self::Io { source, .. } if source.kind() == ErrorKind::StorageFull => {
                "free space on its file system".to_owned()
            }
            Self::Io { source, .. } if source.kind() == ErrorKind::NotFound => "make its folder first".to_owned(),
            Self::Io { .. } | Self::Unsafe { .. } | Self::Inside { .. } => {
                "name another file, outside of the writable roots: --audit FILE".to_owned()
            }
            Self::Folder(error) => error.hint(),
        }
    }
}

/// Whether the file is the default one, which is rotated, or one that the user named and looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In our state folder, which is made when it is missing.
    Default,
    /// Somewhere else, in a folder that exists.
    Named,
}

/// Writes events to the file.
#[derive(Debug)]
pub struct AuditLog {
    path: HostPath,
    run: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    written: u64,
    limit: u64,
    lost: u64,
    /// The last write ended in the middle of a line, so the next one ends it first.
    torn: bool,
}

impl AuditLog {
    /// Opens the file for appending and makes it where it is missing. `writable` are the folders that the command may
    /// write; `run` names the run on each line.
    ///
    /// # Errors
    /// The command could reach the file, or it cannot be opened.
    pub fn open(path: &HostPath, place: Place, writable: &[HostPath], run: &str) -> Result<Self, AuditError> {
        let path = &settled(path);
        if let Some(root) = writable.iter().find(|root| path.is_within(root)) {
            return Err(AuditError::Inside { path: path.clone(), root: root.clone() });
        }
        if place == Place::Default {
            if let Some(folder) = path.parent() {
                make_private(&folder, &[]).map_err(AuditError::Folder)?;
            }
            rotate(path, ROTATE_AT)?;
        }
        let file = open_append(path.as_path()).map_err(io_error("open", path))?;
        check(path, &file)?;
        Ok(Self {
            path: path.clone(),
            run: run.to_owned(),
            inner: Mutex::new(Inner { file, written: 0, limit: RUN_LIMIT, lost: 0, torn: false }),
        })
    }

    /// The file.
    pub fn path(&self) -> &HostPath {
        &self.path
    }

    /// How many events could not be written: a full disk, or more than [`RUN_LIMIT`] bytes.
    pub fn lost(&self) -> u64 {
        self.inner.lock().map_or(0, |inner| inner.lost)
    }
}

impl EventSink for AuditLog {
    fn record(&self, event: &Event) {
        // A thread that panicked while it held the lock left a file that is still good to append to.
        let mut inner = match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        };
        match line::render(event, &self.run) {
            Some(line) => inner.append(&line),
            None => inner.lost += 1,
        }
    }
}

impl Inner {
    fn append(&mut self, line: &str) {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.written.saturating_add(length) > self.limit {
            self.lost += 1;
            return;
        }
        let joined;
        let bytes = if self.torn {
            joined = format!("\n{line}");
            joined.as_bytes()
        } else {
            line.as_bytes()
        };
        // One call, so that lines of several runs never mix: the kernel holds the inode's lock for an append.
        match self.file.write(bytes) {
            Ok(done) => {
                self.written = self.written.saturating_add(length);
                self.torn = done > 0 && done < bytes.len();
                if done < bytes.len() {
                    self.lost += 1;
                }
            }
            Err(_) => self.lost += 1,
        }
    }
}

fn io_error(doing: &'static str, path: &HostPath) -> impl FnOnce(io::Error) -> AuditError {
    let path = path.clone();
    move |source| AuditError::Io { doing, path, source }
}

/// The path with the links of its folder followed, so that it can be compared with the writable roots; the file itself
/// is never followed.
fn settled(path: &HostPath) -> HostPath {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.clone() };
    match real_path(folder.as_path()).map(HostPath::new) {
        Ok(Ok(folder)) => folder.join(name),
        _ => path.clone(),
    }
}

fn check(path: &HostPath, file: &File) -> Result<(), AuditError> {
    let meta = file.metadata().map_err(io_error("look at", path))?;
    let uid = ringfence_sys::host::effective_ids().0;
    let what = if !meta.is_file() {
        "is no regular file".to_owned()
    } else if meta.nlink() > 1 {
        // The other name may lie in a folder that the command may write.
        format!("has {} names (hard links)", meta.nlink())
    } else if meta.uid() != uid {
        format!("belongs to user {}", meta.uid())
    } else if meta.mode() & 0o022 != 0 {
        "may be written by others than its owner".to_owned()
    } else {
        return Ok(());
    };
    Err(AuditError::Unsafe { path: path.clone(), what })
}

/// Sets a file aside that has grown too large. Several launchers may come here at once: the one that holds the lock looks
/// again.
fn rotate(path: &HostPath, at: u64) -> Result<(), AuditError> {
    let size = || path.as_path().symlink_metadata().map_or(0, |m| m.len());
    if size() < at {
        return Ok(());
    }
    let numbered = |n: u32| -> Option<HostPath> {
        let mut name = path.file_name()?;
        name.push(format!(".{n}"));
        Some(path.parent()?.join(name))
    };
    let mut lock_name = path.file_name().unwrap_or_default();
    lock_name.push(".lock");
    let lock_path = path.parent().unwrap_or_else(HostPath::root).join(lock_name);
    let lock = open_lock(lock_path.as_path()).map_err(io_error("lock", &lock_path))?;
    lock.lock().map_err(io_error("lock", &lock_path))?;
    if size() < at {
        return Ok(());
    }
    for n in (1..KEPT).rev() {
        if let (Some(from), Some(to)) = (numbered(n), numbered(n + 1)) {
            // The older ones need not be there.
            let _ = std::fs::rename(from.as_path(), to.as_path());
        }
    }
    if let Some(first) = numbered(1) {
        std::fs::rename(path.as_path(), first.as_path()).map_err(io_error("set aside", path))?;
    }
    // The new file is made under the lock, so that a reader that follows finds one.
    match create_new(path.as_path()) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io_error("make", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::event::{Door, EventKind};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn denied(destination: &str) -> Event {
        Event::now(EventKind::Denied {
            door: Door::Connect,
            destination: destination.to_owned(),
            code: "no_rule".to_owned(),
            reason: "no rule allows it".to_owned(),
            rule: None,
            remedy: None,
        })
    }

    fn world() -> (tempfile::TempDir, HostPath) {
        let dir = tempfile::tempdir().unwrap();
        let base = HostPath::new(std::fs::canonicalize(dir.path()).unwrap()).unwrap();
        (dir, base)
    }

    #[test]
    fn a_missing_file_is_made_private_and_lines_are_whole() {
        let (_dir, base) = world();
        let path = base.join("state").join("audit.jsonl");
        let log = AuditLog::open(&path, Place::Default, &[base.join("ws")], "r1").unwrap();
        log.record(&denied("evil.test:443"));
        log.record(&denied("odd\n\u{1b}[31m\u{202e}\u{7f}\u{9b}:443"));
        let text = std::fs::read_to_string(path.as_path()).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')), "{text:?}");
        let second: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(second["destination"], "odd\n\u{1b}[31m\u{202e}\u{7f}\u{9b}:443");
        assert_eq!((second["v"].as_u64(), second["run"].as_str()), (Some(1), Some("r1")));
        assert_eq!(path.as_path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn a_file_that_the_command_could_reach_is_refused() {
        let (_dir, base) = world();
        std::fs::create_dir(base.join("ws").as_path()).unwrap();
        let writable = [base.join("ws")];
        let open = |name: &str| AuditLog::open(&base.join(name), Place::Named, &writable, "r").map(drop);
        let inside = AuditLog::open(&base.join("ws").join("a"), Place::Named, &writable, "r");
        assert!(matches!(inside, Err(AuditError::Inside { .. })));
        symlink(base.join("ws").as_path(), base.join("way").as_path()).unwrap();
        let through = AuditLog::open(&base.join("way").join("a"), Place::Named, &writable, "r");
        assert!(matches!(through, Err(AuditError::Inside { .. })));

        symlink(base.join("ws").join("a").as_path(), base.join("link").as_path()).unwrap();
        let error = open("link").unwrap_err();
        assert!(error.hint().contains("link"), "{}", error.hint());
        assert!(!base.join("ws").join("a").as_path().exists());

        std::fs::write(base.join("ws").join("b").as_path(), "").unwrap();
        std::fs::hard_link(base.join("ws").join("b").as_path(), base.join("hard").as_path()).unwrap();
        assert!(matches!(open("hard"), Err(AuditError::Unsafe { .. })));
        std::fs::write(base.join("loose").as_path(), "").unwrap();
        std::fs::set_permissions(base.join("loose").as_path(), PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(open("loose"), Err(AuditError::Unsafe { .. })));
        assert!(open("fine").is_ok());
        std::fs::create_dir(base.join("folder").as_path()).unwrap();
        assert!(matches!(open("folder"), Err(AuditError::Io { .. })));
    }

    #[test]
    fn a_large_default_file_is_set_aside() {
        let (_dir, base) = world();
        let path = base.join("audit.jsonl");
        let aside = |n: u32| std::fs::read_to_string(base.join(format!("audit.jsonl.{n}")).as_path());
        for text in ["one", "two", "three", "four"] {
            std::fs::write(path.as_path(), text).unwrap();
            rotate(&path, 3).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path.as_path()).unwrap(), "");
        assert_eq!((aside(1).unwrap().as_str(), aside(3).unwrap().as_str()), ("four", "two"));
        assert!(aside(4).is_err());
    }

    #[test]
    fn the_command_cannot_fill_the_disk() {
        let (_dir, base) = world();
        let path = base.join("a");
        let log = AuditLog::open(&path, Place::Named, &[], "r").unwrap();
        log.inner.lock().unwrap().limit = 1000;
        for _ in 0..100 {
            log.record(&denied("evil.test:443"));
        }
        assert!(path.as_path().metadata().unwrap().len() <= 1000);
        assert!(log.lost() > 90);
    }

    #[test]
    fn a_full_disk_is_counted() {
        let log = AuditLog {
            path: HostPath::root(),
            run: String::new(),
            inner: Mutex::new(Inner {
                file: File::options().append(true).open("/dev/full").unwrap(),
                written: 0,
                limit: RUN_LIMIT,
                lost: 0,
                torn: false,
            }),
        };
        log.record(&denied("a.test:1"));
        assert_eq!(log.lost(), 1);
    }
}
