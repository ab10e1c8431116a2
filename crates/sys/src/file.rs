//! Files by path, without following symlinks where that matters.

use crate::{Context, Errno, SysError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// What a path is; symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// Device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
}

fn quoted(path: &Path) -> String {
    format!("{path:?}")
}

/// Opens a path without access to its content (`O_PATH`), no component of which may be a symlink (openat2(2)).
///
/// # Errors
/// `ELOOP`: a component is a symlink.
pub fn open_path(path: &Path) -> Result<OwnedFd, SysError> {
    // Not O_NOFOLLOW: together with O_PATH that would open a link in the last place instead of refusing it.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve).at("openat2", || quoted(path))
}

/// The same, below a folder.
///
/// # Errors
/// `ELOOP`: a component is a symlink; `EXDEV`: the path leads out of the folder.
pub fn open_path_at(dir: impl AsFd, path: impl AsRef<Path>) -> Result<OwnedFd, SysError> {
    let path = path.as_ref();
    // Not O_NOFOLLOW: together with O_PATH that would open a link in the last place instead of refusing it.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve).at("openat2", || quoted(path))
}

/// Opens an entry of a folder without access to its content, a symbolic link as itself.
///
/// # Errors
/// openat(2) fails.
pub fn open_path_at_link(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, SysError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, name, flags, Mode::empty()).at("openat", || format!("{name:?}"))
}

/// Opens a device or terminal for reading and writing; it does not become the controlling terminal.
///
/// # Errors
/// open(2) fails.
pub fn open_device(path: &Path, blocking: Blocking) -> Result<OwnedFd, SysError> {
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    if blocking == Blocking::No {
        flags |= OFlags::NONBLOCK;
    }
    rustix::fs::open(path, flags, Mode::empty()).at("open", || quoted(path))
}

/// Whether calls on a descriptor wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// They wait.
    Yes,
    /// They fail with `EAGAIN` instead.
    No,
}

/// What a descriptor is.
///
/// # Errors
/// fstat(2) fails.
pub fn kind(fd: impl AsFd) -> Result<FileKind, SysError> {
    let stat = rustix::fs::fstat(fd).at("fstat", String::new)?;
    Ok(match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => FileKind::Dir,
        rustix::fs::FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    })
}

/// Who owns a file.
///
/// # Errors
/// fstat(2) fails.
pub fn owner(fd: impl AsFd) -> Result<u32, SysError> {
    rustix::fs::fstat(fd).map(|stat| stat.st_uid).at("fstat", String::new)
}

/// Which file a descriptor is.
///
/// # Errors
/// fstat(2) fails.
pub fn id(fd: impl AsFd) -> Result<FileId, SysError> {
    let stat = rustix::fs::fstat(fd).at("fstat", String::new)?;
    Ok(FileId { device: stat.st_dev, inode: stat.st_ino })
}

/// Makes a folder; `Ok(false)` when something is there already. The mode is not changed by the umask of a process that
/// has set it to 0.
///
/// # Errors
/// mkdirat(2) fails.
pub fn make_dir(path: &Path, mode: u32) -> Result<bool, SysError> {
    match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(mode)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(SysError::new("mkdir", quoted(path), errno)),
    }
}

/// Makes a folder below a folder; it must not exist.
///
/// # Errors
/// mkdirat(2) fails.
pub fn make_dir_at(dir: impl AsFd, name: impl AsRef<Path>, mode: u32) -> Result<(), SysError> {
    let name = name.as_ref();
    rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode)).at("mkdirat", || format!("{name:?}"))
}

/// Makes an empty file below a folder, without following a symlink; it must not exist.
///
/// # Errors
/// openat(2) fails.
pub fn make_file_at(dir: impl AsFd, name: impl AsRef<Path>, mode: u32) -> Result<OwnedFd, SysError> {
    let name = name.as_ref();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode)).at("openat", || quoted(name))
}

/// Gives an entry of a folder another name, which must be free (renameat2(2), `RENAME_NOREPLACE`).
///
/// # Errors
/// renameat2(2) fails.
pub fn rename_at(dir: impl AsFd, from: &OsStr, to: &OsStr) -> Result<(), SysError> {
    rustix::fs::renameat_with(&dir, from, &dir, to, RenameFlags::NOREPLACE)
        .at("renameat2", || format!("{from:?}, {to:?}"))
}

/// Where a symbolic link that is open as a path leads (readlinkat(2) with an empty path).
///
/// # Errors
/// It is no link.
pub fn link_target(fd: impl AsFd) -> Result<OsString, SysError> {
    rustix::fs::readlinkat(fd, c"", Vec::new())
        .map(|target| OsString::from_vec(target.into_bytes()))
        .at("readlinkat", String::new)
}

/// Makes a symbolic link below a folder.
///
/// # Errors
/// symlinkat(2) fails.
pub fn make_symlink_at(to: &str, dir: impl AsFd, name: impl AsRef<Path>) -> Result<(), SysError> {
    let name = name.as_ref();
    rustix::fs::symlinkat(to, dir, name).at("symlinkat", || format!("{to:?}, {name:?}"))
}

/// Sets the mode of an open folder or file.
///
/// # Errors
/// fchmod(2) fails.
pub fn set_mode(fd: impl AsFd, mode: u32) -> Result<(), SysError> {
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode)).at("fchmod", || format!("{mode:o}"))
}

/// Removes a file by name.
///
/// # Errors
/// unlink(2) fails.
pub fn remove(path: &Path) -> Result<(), SysError> {
    rustix::fs::unlink(path).at("unlink", || quoted(path))
}

/// Removes an empty folder by name.
///
/// # Errors
/// rmdir(2) fails.
pub fn remove_dir(path: &Path) -> Result<(), SysError> {
    rustix::fs::rmdir(path).at("rmdir", || quoted(path))
}

/// Sets the mask of the modes of new files; the old one is returned.
pub fn set_umask(mask: u32) -> u32 {
    rustix::process::umask(Mode::from_raw_mode(mask)).bits()
}

/// Changes the working directory.
///
/// # Errors
/// chdir(2) fails.
pub fn change_dir(path: &Path) -> Result<(), SysError> {
    rustix::process::chdir(path).at("chdir", || quoted(path))
}

/// Writes into an existing file with one write(2), as files of the kernel demand.
///
/// # Errors
/// open(2) or write(2) fails, or not everything was taken (`EIO`).
pub fn write_existing(path: impl AsRef<Path>, content: &[u8]) -> Result<(), SysError> {
    let path = path.as_ref();
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).at("open", || quoted(path))?;
    write_once(&fd, content, path)
}

/// The same, below a folder.
///
/// # Errors
/// See [`write_existing`].
pub fn write_existing_at(dir: impl AsFd, path: impl AsRef<Path>, content: &[u8]) -> Result<(), SysError> {
    let path = path.as_ref();
    let fd =
        rustix::fs::openat(dir, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).at("openat", || quoted(path))?;
    write_once(&fd, content, path)
}

fn write_once(fd: &OwnedFd, content: &[u8], path: &Path) -> Result<(), SysError> {
    let n = rustix::io::write(fd, content).at("write", || quoted(path))?;
    if n == content.len() { Ok(()) } else { Err(SysError::new("write", quoted(path), Errno::IO)) }
}

/// Writes everything, whatever number of calls that takes.
///
/// # Errors
/// write(2) fails.
pub fn write_all(fd: impl AsFd, mut content: &[u8]) -> Result<(), SysError> {
    while !content.is_empty() {
        match rustix::io::write(&fd, content) {
            Ok(n) => content = content.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SysError::new("write", format!("{} bytes", content.len()), errno)),
        }
    }
    Ok(())
}

/// Reads once.
///
/// # Errors
/// read(2) fails; `EINTR` is tried again.
pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::read(&fd, &mut *buffer))
}

/// Writes once.
///
/// # Errors
/// write(2) fails; `EINTR` is tried again.
pub fn write(fd: impl AsFd, buffer: &[u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::write(&fd, buffer))
}

/// Reads a small text file of the kernel.
///
/// # Errors
/// It cannot be opened or read, or is not text.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, SysError> {
    let path = path.as_ref();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).at("open", || quoted(path))?;
    let mut out = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let n = read(&fd, &mut buffer).at("read", || quoted(path))?;
        if n == 0 {
            break;
        }
        out.extend_from_slice(buffer.get(..n).unwrap_or_default());
    }
    String::from_utf8(out).map_err(|_| SysError::new("read", quoted(path), Errno::ILSEQ))
}

/// Whether something is there, following symlinks.
pub fn exists(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
}
