//! Looking into another process on whose behalf a call is made: its memory, its descriptors, its working folder
//! (process_vm_readv(2), pidfd_getfd(2), proc_pid_cwd(5)). Each needs the right to trace it (ptrace(2)).

use crate::{Context, Errno, SysError, failed};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags};

/// A thread of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread(Pid);

impl Thread {
    /// By number, in this process's process namespace; `None` for 0, the number of a thread that cannot be seen.
    pub fn new(number: u32) -> Option<Self> {
        i32::try_from(number).ok().and_then(Pid::from_raw).map(Self)
    }

    fn number(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Copies memory, up to the length of `buffer`.
    ///
    /// # Errors
    /// `EFAULT`: not all of it is there; `ESRCH`: the thread is gone.
    pub fn read(self, address: u64, buffer: &mut [u8]) -> Result<(), SysError> {
        let told = || format!("{}, {} bytes", self.number(), buffer.len());
        let base = usize::try_from(address).map_err(|_| SysError::new("process_vm_readv", told(), Errno::FAULT))?;
        let length = buffer.len();
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: length };
        // SAFETY: the local vector is `buffer`, which lives and is ours alone; the remote one is only numbers to the
        // kernel, which checks them in the other process (process_vm_readv(2)).
        let done = unsafe { libc::process_vm_readv(self.number(), &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(done) {
            Ok(count) if count == length => Ok(()),
            Ok(_) => Err(SysError::new("process_vm_readv", format!("{}, {length} bytes", self.number()), Errno::FAULT)),
            Err(_) => Err(failed("process_vm_readv", format!("{}, {length} bytes", self.number()))),
        }
    }

    /// A descriptor of ours for the same open file as its descriptor `number`.
    ///
    /// # Errors
    /// `EBADF`: it has none with this number; `ESRCH`: the thread is gone.
    pub fn descriptor(self, number: i32) -> Result<OwnedFd, SysError> {
        let told = || format!("{}, {number}", self.number());
        // PIDFD_THREAD of linux/pidfd.h (Linux 6.9): the thread's own table, which need not be the group's.
        let thread = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        let process = match rustix::process::pidfd_open(self.0, thread) {
            Ok(fd) => fd,
            Err(Errno::INVAL) => self.leader()?,
            Err(errno) => return Err(errno).at("pidfd_open", told),
        };
        let number: ForeignRawFd = number;
        rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty()).at("pidfd_getfd", told)
    }

    /// The process of the thread, on a kernel that opens no threads.
    fn leader(self) -> Result<OwnedFd, SysError> {
        let status = crate::file::read_text(format!("/proc/{}/status", self.number()))?;
        let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        let group = group.and_then(Pid::from_raw).ok_or_else(|| SysError::new("read", "Tgid", Errno::SRCH))?;
        crate::pidfd::open(group)
    }

    /// The folder at which its relative paths begin.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn working_dir(self) -> Result<OwnedFd, SysError> {
        let path = format!("/proc/{}/cwd", self.number());
        rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .at("open", || format!("{path:?}, O_PATH"))
    }
}

/// Opens what a path of another program means, from the folder `base`, to look at it and not to use it. Symlinks are
/// followed, but for those of `/proc` that would mean this process and not the other one (openat2(2)).
///
/// # Errors
/// Nothing is there, or one of those links is on the way (`ELOOP`).
pub fn resolve(base: impl AsFd, path: &std::path::Path) -> Result<OwnedFd, SysError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(base, path, flags, Mode::empty(), rustix::fs::ResolveFlags::NO_MAGICLINKS)
        .at("openat2", || format!("{path:?}, O_PATH"))
}

/// The path at which an open file is found (proc_pid_fd(5)).
///
/// # Errors
/// There is no `/proc`.
pub fn name(file: impl AsFd) -> Result<std::path::PathBuf, SysError> {
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()));
    std::fs::read_link(&link).map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
        SysError::new("readlink", link, errno)
    })
}

/// connect(2) with the bytes of an address as another program gave them; the kernel judges them.
///
/// # Errors
/// The error of the call, for the caller on whose behalf it is made.
pub fn connect(socket: impl AsFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
    // SAFETY: the kernel copies `length` bytes from the slice and interprets nothing in our memory (connect(2)).
    let done = unsafe { libc::connect(fd, address.as_ptr().cast(), length) };
    if done == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

/// connect(2) to a Unix socket by its file, opened with `O_PATH`: exactly that one, whatever its name means by now.
///
/// # Errors
/// The error of the call.
pub fn connect_unix(socket: impl AsFd, file: impl AsFd) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()));
    let mut address = u16::try_from(libc::AF_UNIX).map_err(|_| Errno::INVAL)?.to_ne_bytes().to_vec();
    address.extend_from_slice(path.as_bytes());
    address.push(0);
    connect(socket, &address)
}

/// Whether calls on this socket wait.
///
/// # Errors
/// It is no open file.
pub fn waits(socket: impl AsFd) -> Result<crate::file::Blocking, Errno> {
    let flags = rustix::fs::fcntl_getfl(socket)?;
    Ok(if flags.contains(OFlags::NONBLOCK) { crate::file::Blocking::No } else { crate::file::Blocking::Yes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn me() -> Thread {
        Thread(rustix::thread::gettid())
    }

    #[test]
    fn memory_descriptors_and_the_working_folder_of_a_thread() {
        let text = *b"forty-two";
        let mut copy = [0u8; 9];
        me().read(text.as_ptr() as u64, &mut copy).unwrap();
        assert_eq!(copy, text);
        assert_eq!(me().read(8, &mut copy).unwrap_err().errno, Errno::FAULT);

        let (read, write) = rustix::pipe::pipe().unwrap();
        let copied = me().descriptor(write.as_raw_fd()).unwrap();
        rustix::io::write(&copied, b"x").unwrap();
        let mut byte = [0u8];
        rustix::io::read(&read, &mut byte).unwrap();
        assert_eq!(byte, *b"x");
        assert_eq!(me().descriptor(9_999).unwrap_err().errno, Errno::BADF);

        let here = me().working_dir().unwrap();
        let stat = rustix::fs::fstat(&here).unwrap();
        assert_eq!(stat.st_ino, rustix::fs::stat(".").unwrap().st_ino);
    }

    #[test]
    fn a_unix_socket_is_reached_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        // The name now means something else; the file does not.
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).unwrap();
        connect_unix(&socket, &file).unwrap();
        listener.accept().unwrap();
    }
}
