//! Reads policy files. What they say is for [`ringfence_dialect`].

use crate::error::SourceError;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the managed policy stands. Not configurable: who can point elsewhere could escape its ceiling.
pub(crate) const MANAGED_DIR: &str = "/etc/ringfence";

/// A policy file is a page or two; more is a mistake or an attempt to exhaust memory.
const MAX_BYTES: u64 = 1 << 20;

/// Bits of a mode that let others than the owner write.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// A policy file's text and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// Who must own a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Anybody: whoever wrote it, the user named it.
    Any,
    /// Whoever wrote the repository: the file itself counts, and not what a link of this name leads to.
    Repository,
    /// Root, and nobody else may write it.
    RootOnly,
}

/// Reads the managed policy: `policy.toml`, then `policy.d/*.toml` by name. None of them need exist, but one that exists
/// and cannot be read, or that somebody else than root could have written, ends the run: it may hold a ceiling.
///
/// # Errors
/// See above.
pub(crate) fn managed(dir: &Path) -> Result<Vec<FileText>, SourceError> {
    let mut found = Vec::new();
    if !exists(dir)? {
        return Ok(found);
    }
    guarded(dir)?;
    let main = dir.join("policy.toml");
    if exists(&main)? {
        found.push(read(&main, Owner::RootOnly)?);
    }
    let parts = dir.join("policy.d");
    if exists(&parts)? {
        guarded(&parts)?;
        let unreadable = |error| SourceError::Unreadable { path: parts.clone(), error };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&parts).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|ext| ext == "toml") {
                files.push(path);
            }
        }
        files.sort();
        for file in files {
            found.push(read(&file, Owner::RootOnly)?);
        }
    }
    Ok(found)
}

/// Reads a file that must exist.
///
/// # Errors
/// It cannot be read, is no regular file, is too large, or is not UTF-8.
pub(crate) fn file(path: &Path) -> Result<FileText, SourceError> {
    read(path, Owner::Any)
}

/// Reads a file that a repository brings. It must not be a link: the lines of what it leads to would be quoted in the messages
/// about them, wherever those end up.
///
/// # Errors
/// See [`file`].
pub(crate) fn of_repository(path: &Path) -> Result<FileText, SourceError> {
    read(path, Owner::Repository)
}

/// Reads a file that need not exist.
///
/// # Errors
/// It exists and cannot be read.
pub(crate) fn optional(path: &Path) -> Result<Option<FileText>, SourceError> {
    if exists(path)? { read(path, Owner::Any).map(Some) } else { Ok(None) }
}

/// Whether there is something; an error other than "not there" is not taken for absence.
fn exists(path: &Path) -> Result<bool, SourceError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(SourceError::Unreadable { path: path.to_owned(), error }),
    }
}

fn guarded(path: &Path) -> Result<(), SourceError> {
    let meta = path.metadata().map_err(|error| SourceError::Unreadable { path: path.to_owned(), error })?;
    writable_by_root_only(path, &meta)
}

fn writable_by_root_only(path: &Path, meta: &std::fs::Metadata) -> Result<(), SourceError> {
    if meta.uid() != 0 || meta.mode() & OTHERS_MAY_WRITE != 0 {
        return Err(SourceError::NotRootOnly { path: path.to_owned(), uid: meta.uid(), mode: meta.mode() & 0o7777 });
    }
    Ok(())
}

fn read(path: &Path, owner: Owner) -> Result<FileText, SourceError> {
    let unreadable = |error| SourceError::Unreadable { path: path.to_owned(), error };
    // Before the open, because opening a FIFO waits for a writer.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(SourceError::NotAFile { path: path.to_owned() });
    }
    let opened = File::open(path).map_err(unreadable)?;
    if owner == Owner::Repository {
        // After the open: a link that took the name in between leads to another file than the one that has the name now.
        let (named, found) = (path.symlink_metadata().map_err(unreadable)?, opened.metadata().map_err(unreadable)?);
        if !named.is_file() || (named.dev(), named.ino()) != (found.dev(), found.ino()) {
            return Err(SourceError::NotAFile { path: path.to_owned() });
        }
    }
    if owner == Owner::RootOnly {
        // On the descriptor, so that what was judged is what is read.
        writable_by_root_only(path, &opened.metadata().map_err(unreadable)?)?;
    }
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|n| n > MAX_BYTES) {
        return Err(SourceError::TooLarge { path: path.to_owned() });
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| SourceError::NotUtf8 { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })?;
    Ok(FileText { path: path.to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn an_absent_managed_policy_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(managed(&dir.path().join("none")).unwrap(), Vec::new());
    }

    #[test]
    fn managed_files_are_read_in_order_and_only_from_root() {
        let dir = tempfile::tempdir().unwrap();
        mode(dir.path(), 0o755);
        let parts = dir.path().join("policy.d");
        std::fs::create_dir(&parts).unwrap();
        mode(&parts, 0o755);
        for (name, text) in [("policy.toml", "a"), ("policy.d/20.toml", "c"), ("policy.d/10.toml", "b")] {
            std::fs::write(dir.path().join(name), text).unwrap();
            mode(&dir.path().join(name), 0o644);
        }
        std::fs::write(parts.join("30.toml.bak"), "no policy").unwrap();
        let read = managed(dir.path());
        if dir.path().metadata().unwrap().uid() != 0 {
            assert!(matches!(read, Err(SourceError::NotRootOnly { .. })), "{read:?}");
            return;
        }
        let texts: Vec<_> = read.unwrap().into_iter().map(|s| s.text).collect();
        assert_eq!(texts, ["a", "b", "c"]);
        mode(&parts.join("10.toml"), 0o666);
        assert!(matches!(managed(dir.path()), Err(SourceError::NotRootOnly { mode: 0o666, .. })));
        mode(&parts.join("10.toml"), 0o644);
        mode(&parts, 0o777);
        assert!(matches!(managed(dir.path()), Err(SourceError::NotRootOnly { mode: 0o777, .. })));
    }

    #[test]
    fn a_dangling_link_is_not_taken_for_absence() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("policy.toml");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(matches!(optional(&link), Err(SourceError::Unreadable { .. })));
    }

    #[test]
    fn a_repository_cannot_have_another_file_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let (secret, link) = (dir.path().join("secret"), dir.path().join("ringfence.toml"));
        std::fs::write(&secret, "hush").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert_eq!(file(&link).unwrap().text, "hush", "control: one that the user names");
        assert!(matches!(of_repository(&link), Err(SourceError::NotAFile { .. })));
        assert_eq!(of_repository(&secret).unwrap().text, "hush");
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(file(dir.path()), Err(SourceError::NotAFile { .. })));
        let binary = dir.path().join("b");
        std::fs::write(&binary, [b'a', 0xff]).unwrap();
        assert!(matches!(file(&binary), Err(SourceError::NotUtf8 { offset: 1, .. })));
        std::fs::write(&binary, vec![b'#'; 1 << 20]).unwrap();
        assert!(file(&binary).is_ok());
        std::fs::write(&binary, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(matches!(file(&binary), Err(SourceError::TooLarge { .. })));
    }
}
