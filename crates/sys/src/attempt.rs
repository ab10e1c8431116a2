//! Single calls that are tried to find out whether they are allowed. Each returns the kernel's answer.

use crate::{Errno, last_errno};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;
use std::net::SocketAddr;
use std::path::Path;

/// The answer to an attempt.
pub type Tried = Result<(), Errno>;

fn from_raw(done: libc::c_long) -> Tried {
    if done >= 0 { Ok(()) } else { Err(last_errno()) }
}

/// Opens a file for reading.
///
/// # Errors
/// The kernel's answer.
pub fn read(path: &Path) -> Tried {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
        .map(drop)
}

/// Opens an existing file for writing, and writes nothing.
///
/// # Errors
/// The kernel's answer.
pub fn open_write(path: &Path) -> Tried {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
        .map(drop)
}

/// Makes a file in a folder that never gets a name (open(2), `O_TMPFILE`).
///
/// # Errors
/// The kernel's answer; `EOPNOTSUPP` or `EISDIR`: this file system cannot.
pub fn create_unnamed(dir: &Path) -> Tried {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::from_raw_mode(0o600)).map(drop)
}

/// Makes a file with this name, which must not exist, and removes it.
///
/// # Errors
/// The kernel's answer to the making.
pub fn create_named(path: &Path) -> Tried {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    drop(fd);
    let _ = rustix::fs::unlinkat(CWD, path, AtFlags::empty());
    Ok(())
}

/// Connects to an internet address.
///
/// # Errors
/// The kernel's answer.
pub fn connect(address: SocketAddr) -> Tried {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&fd, &address)
}

/// Sends a datagram to an internet address.
///
/// # Errors
/// The kernel's answer.
pub fn send_datagram(address: SocketAddr) -> Tried {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::sendto(&fd, b"?", SendFlags::NOSIGNAL, &address).map(drop)
}

/// The place of a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixPlace<'a> {
    /// A path.
    Path(&'a Path),
    /// A name that is in no file system (unix(7)).
    Abstract(&'a [u8]),
}

fn unix_address(place: UnixPlace<'_>) -> Result<SocketAddrUnix, Errno> {
    match place {
        UnixPlace::Path(path) => SocketAddrUnix::new(path),
        UnixPlace::Abstract(name) => SocketAddrUnix::new_abstract_name(name),
    }
}

/// Connects to a Unix stream socket.
///
/// # Errors
/// The kernel's answer.
pub fn connect_unix(place: UnixPlace<'_>) -> Tried {
    let address = unix_address(place)?;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&fd, &address)
}

/// A Unix stream listener, the other side of [`connect_unix`]; non-blocking.
///
/// # Errors
/// The kernel's answer.
pub fn listen_unix(place: UnixPlace<'_>) -> Result<OwnedFd, Errno> {
    let address = unix_address(place)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, 8)?;
    Ok(fd)
}

/// Whether something is there to be read, without waiting.
pub fn is_readable(fd: impl AsFd) -> bool {
    crate::event::wait(&[(fd.as_fd(), crate::event::Interest::Read)], Some(std::time::Duration::ZERO))
        .map_or(true, |ready| ready.first().copied().unwrap_or(true))
}

/// `socket(2)`.
///
/// # Errors
/// The kernel's answer.
pub fn socket(family: i32, kind: i32, protocol: i32) -> Tried {
    // SAFETY: socket(2) touches no memory.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    close_if_open(fd)
}

/// `io_uring_setup(2)`.
///
/// # Errors
/// The kernel's answer.
pub fn io_uring() -> Tried {
    // Larger than `struct io_uring_params`, of which the kernel writes 120 bytes.
    let mut params = [0u64; 32];
    // SAFETY: io_uring_setup(2) reads and writes one structure, for which the buffer is large enough.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, params.as_mut_ptr()) };
    close_if_open(i32::try_from(fd).unwrap_or(-1))
}

fn close_if_open(fd: i32) -> Tried {
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: a new descriptor that nobody else owns.
    drop(unsafe { <OwnedFd as rustix::fd::FromRawFd>::from_raw_fd(fd) });
    Ok(())
}

/// `unshare(CLONE_NEWUSER)`. When that works this process is in the new namespace.
///
/// # Errors
/// The kernel's answer.
pub fn new_user_namespace() -> Tried {
    // SAFETY: unshare(2) with this flag alone shares no less memory or descriptors than before.
    from_raw(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into())
}

/// Signal 0.
///
/// # Errors
/// The kernel's answer; `ESRCH`: nobody there.
pub fn signal(pid: Pid) -> Tried {
    rustix::process::test_kill_process(pid)
}

/// Becomes the tracer of a process, without stopping it (ptrace(2), `PTRACE_SEIZE`).
///
/// # Errors
/// The kernel's answer.
pub fn trace(pid: Pid) -> Tried {
    // SAFETY: PTRACE_SEIZE reads no memory of ours; address and data are numbers.
    from_raw(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid.as_raw_nonzero().get(), 0usize, 0usize) })
}

/// Mounts a temporary file system on a folder.
///
/// # Errors
/// The kernel's answer.
pub fn mount(on: &Path) -> Tried {
    rustix::mount::mount("none", on, "tmpfs", rustix::mount::MountFlags::empty(), None)
}

/// Reads a raw descriptor number that this process should not have.
///
/// # Errors
/// `EBADF`: it does not have it.
pub fn has_descriptor(number: i32) -> Tried {
    // SAFETY: fcntl(2) F_GETFD touches no memory.
    from_raw(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())
}

/// The number behind a descriptor.
pub fn number(fd: impl AsFd) -> i32 {
    fd.as_fd().as_raw_fd()
}
