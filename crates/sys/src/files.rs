//! Files of our own, opened so that nobody can redirect or share them, and looks at other files that follow nothing.

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What an entry is; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
    /// A device or FIFO.
    Other,
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            FileType::Socket => Self::Socket,
            _ => Self::Other,
        }
    }
}

/// What is at a path; its last component is not followed.
///
/// # Errors
/// As fstatat(2).
pub fn entry_kind(path: &Path) -> io::Result<EntryKind> {
    let stat = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode).into())
}

/// The entries of a folder with their kinds. A symlink in the place of the folder is an error, unlike in opendir(3).
///
/// # Errors
/// As openat(2) and getdents64(2).
pub fn list_dir(path: &Path) -> io::Result<Vec<(OsString, EntryKind)>> {
    let fd =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mut dir = rustix::fs::Dir::new(fd)?;
    let mut entries = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems leave d_type empty (readdir(3)).
            FileType::Unknown => match rustix::fs::statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode).into(),
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            known => known.into(),
        };
        entries.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind));
    }
    Ok(entries)
}

/// Whether the kernel refuses to look a name up in this folder, whichever (path_resolution(7): search permission).
pub fn is_closed(folder: &Path) -> bool {
    let looked = rustix::fs::accessat(rustix::fs::CWD, folder, rustix::fs::Access::EXEC_OK, AtFlags::EACCESS);
    looked == Err(rustix::io::Errno::ACCESS)
}

/// Where a path leads after following every symlink. The kernel walks the path once (`O_PATH`) and names the result,
/// where realpath(3) asks about each component.
///
/// # Errors
/// As open(2) and readlink(2).
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let name = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    let real = PathBuf::from(OsString::from_vec(name.into_bytes()));
    // What was deleted has no name any more; the kernel says so by a suffix that a living file may have as well
    // (proc_pid_fd(5)).
    let deleted = real.as_os_str().as_bytes().ends_with(b" (deleted)") && real.symlink_metadata().is_err();
    if real.is_absolute() && !deleted { Ok(real) } else { Err(rustix::io::Errno::NOENT.into()) }
}

/// The whole content of a file of `/proc` or `/sys`, whose size is not known before it is read. Few large reads: the
/// kernel makes some of these files anew for each.
///
/// # Errors
/// As open(2) and read(2).
pub fn read_generated(path: &str) -> io::Result<Vec<u8>> {
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut content = Vec::with_capacity(16 * 1024);
    loop {
        content.reserve(8 * 1024);
        if rustix::io::read(&fd, rustix::buffer::spare_capacity(&mut content))? == 0 {
            return Ok(content);
        }
    }
}

/// Whether an open failed because a link stands in the place of the file (`ELOOP` with `O_NOFOLLOW`).
pub fn refused_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Opens a regular file for reading without following a link in its last component and without waiting for a FIFO's
/// writer.
///
/// # Errors
/// As open(2); `ELOOP` for a link.
pub fn open_read(path: &Path) -> io::Result<File> {
    open(path, OFlags::RDONLY | OFlags::NONBLOCK)
}

/// Opens a file for appending, makes it with mode 0600 where it is missing, and never follows a link in its last
/// component.
///
/// # Errors
/// As open(2); `ELOOP` for a link.
pub fn open_append(path: &Path) -> io::Result<File> {
    open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK)
}

/// Opens a file for reading and writing, makes it with mode 0600 where it is missing, and never follows a link.
///
/// # Errors
/// As open(2); `ELOOP` for a link.
pub fn open_lock(path: &Path) -> io::Result<File> {
    open(path, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK)
}

/// Makes a new file with mode 0600 for writing.
///
/// # Errors
/// As open(2); `EEXIST` when anything has that name.
pub fn create_new(path: &Path) -> io::Result<File> {
    open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(fd))
}

/// A folder that is held open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder. A link in its last component is an error.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the folder of this name in this one, makes it with mode 0700 where it is missing. A link is an error.
    ///
    /// # Errors
    /// As mkdirat(2) and openat(2).
    pub fn enter_or_make(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(fd) => return Ok(Self(fd)),
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::fs::mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Owner and permission bits.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn owner_and_mode(&self) -> io::Result<(u32, u32)> {
        let stat = rustix::fs::fstat(&self.0)?;
        Ok((stat.st_uid, stat.st_mode & 0o7777))
    }

    /// Sets the permission bits to 0700.
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn make_private(&self) -> io::Result<()> {
        rustix::fs::fchmod(self.0.as_fd(), Mode::RWXU)?;
        Ok(())
    }
}

/// Whether this process may write here, by the effective ids (faccessat2(2)).
pub fn may_write(path: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Whether this process may execute the file, by the effective ids.
pub fn may_execute(path: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "x").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let link = dir.path().join("link");
        symlink(&target, &link).unwrap();
        symlink(dir.path().join("folder"), dir.path().join("dirlink")).unwrap();
        assert_eq!(entry_kind(&link).unwrap(), EntryKind::Symlink);
        assert!(open_read(&target).is_ok());
        assert!(open_append(&target).is_ok());
        assert_eq!(open_read(&link).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(open_append(&link).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert!(list_dir(&dir.path().join("folder")).is_ok());
        assert!(list_dir(&dir.path().join("dirlink")).is_err());
        let mut entries = list_dir(dir.path()).unwrap();
        entries.sort();
        let names: Vec<_> = entries.iter().map(|(n, k)| (n.to_str().unwrap(), *k)).collect();
        assert_eq!(
            names,
            [
                ("dirlink", EntryKind::Symlink),
                ("folder", EntryKind::Dir),
                ("link", EntryKind::Symlink),
                ("target", EntryKind::File)
            ]
        );
    }

    #[test]
    fn real_paths_are_those_of_the_library() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("l")).unwrap();
        let asked = dir.path().join("l/b/../b");
        assert_eq!(real_path(&asked).unwrap(), std::fs::canonicalize(&asked).unwrap());
        assert!(real_path(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn generated_files_are_read_to_their_end() {
        assert_eq!(read_generated("/proc/self/status").unwrap().last(), Some(&b'\n'));
        assert!(
            read_generated("/proc/self/mountinfo")
                .unwrap()
                .starts_with(&std::fs::read("/proc/self/mountinfo").unwrap()[..20])
        );
    }

    #[test]
    fn folders_are_made_private_and_links_in_their_place_refused() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/tmp", dir.path().join("planted")).unwrap();
        let base = Folder::open(dir.path()).unwrap();
        let made = base.enter_or_make(OsStr::new("ours")).unwrap();
        assert_eq!(made.owner_and_mode().unwrap().1, 0o700);
        assert!(base.enter_or_make(OsStr::new("ours")).is_ok());
        assert!(base.enter_or_make(OsStr::new("planted")).is_err());
    }
}
