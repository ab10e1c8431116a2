//! System call filters and their user notifications (seccomp(2), seccomp_unotify(2)).

use crate::{Context, Errno, SysError, failed, last_errno};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// One instruction of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Jump when true.
    pub jt: u8,
    /// Jump when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

const SECCOMP_SET_MODE_FILTER: libc::c_uint = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: libc::c_uint = 1 << 3;
/// Linux 5.19: a call that was taken waits for its answer, and only a fatal signal ends that. Without it a signal makes
/// the call begin anew although it was made already.
const SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: libc::c_uint = 1 << 5;

fn set_filter(program: &[Instruction], flags: libc::c_uint) -> Result<libc::c_long, SysError> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    let len = u16::try_from(filter.len()).map_err(|_| SysError::new("seccomp", "program too long", Errno::INVAL))?;
    let fprog = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: seccomp(2) reads the program, which outlives the call; the kernel checks every instruction.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const fprog) };
    if done >= 0 { Ok(done) } else { Err(failed("seccomp", format!("SET_MODE_FILTER, {len} instructions"))) }
}

/// Puts a filter on this process, for good.
///
/// # Errors
/// The kernel refuses it; `EACCES`: [`crate::process::no_new_privileges`] comes first.
pub fn install(program: &[Instruction]) -> Result<(), SysError> {
    set_filter(program, 0).map(drop)
}

/// Puts a filter on this process and returns the descriptor at which calls with the verdict `USER_NOTIF` wait.
///
/// # Errors
/// The kernel refuses it, or there is a listener already (`EBUSY`).
pub fn install_with_listener(program: &[Instruction]) -> Result<OwnedFd, SysError> {
    let flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = match set_filter(program, flags) {
        Err(error) if error.errno == Errno::INVAL => set_filter(program, SECCOMP_FILTER_FLAG_NEW_LISTENER),
        done => done,
    }?;
    let fd = i32::try_from(fd).map_err(|_| SysError::new("seccomp", "listener", Errno::BADF))?;
    // SAFETY: SECCOMP_FILTER_FLAG_NEW_LISTENER returns a new descriptor of ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// For the answer.
    pub id: u64,
    /// The thread, in this process's process namespace.
    pub pid: u32,
    /// Number of the call.
    pub number: i32,
    /// Its arguments.
    pub args: [u64; 6],
}

/// Takes the next call; waits for one. `None`: it was interrupted before it could be taken.
///
/// # Errors
/// ioctl(2) fails; `ENOENT` is `None`.
pub fn receive(listener: impl AsFd) -> Result<Option<Notification>, SysError> {
    // SAFETY: a structure of numbers, for which zero is a value; the kernel demands that it is zeroed.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: SECCOMP_IOCTL_NOTIF_RECV fills one such structure (seccomp_unotify(2)).
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), NOTIF_RECV as _, &raw mut raw) };
    if done == 0 {
        return Ok(Some(Notification { id: raw.id, pid: raw.pid, number: raw.data.nr, args: raw.data.args }));
    }
    match last_errno() {
        Errno::NOENT | Errno::INTR => Ok(None),
        errno => Err(errno).at("ioctl", || "SECCOMP_IOCTL_NOTIF_RECV".to_owned()),
    }
}

/// Whether no process is left that could make a call (`POLLHUP`, Linux 5.9).
pub fn is_over(listener: impl AsFd) -> bool {
    let listener = listener.as_fd();
    let mut fds = [rustix::event::PollFd::new(&listener, rustix::event::PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let asked = rustix::event::poll(&mut fds, Some(&now));
    asked.is_ok() && fds.iter().any(|fd| fd.revents().contains(rustix::event::PollFlags::HUP))
}

/// What a waiting call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This value.
    Value(i64),
    /// This error.
    Error(Errno),
    /// Whatever the kernel makes of it; never for a call whose arguments are pointers that were judged.
    Continue,
}

/// Answers a call. `Ok(false)`: it does not wait any more.
///
/// # Errors
/// ioctl(2) fails.
pub fn respond(listener: impl AsFd, id: u64, answer: Answer) -> Result<bool, SysError> {
    const SECCOMP_USER_NOTIF_FLAG_CONTINUE: u32 = 1;
    let (val, error, flags) = match answer {
        Answer::Value(value) => (value, 0, 0),
        Answer::Error(errno) => (0, -errno.raw_os_error(), 0),
        Answer::Continue => (0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE),
    };
    let raw = libc::seccomp_notif_resp { id, val, error, flags };
    // SAFETY: SECCOMP_IOCTL_NOTIF_SEND reads one such structure (seccomp_unotify(2)).
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), NOTIF_SEND as _, &raw const raw) };
    outcome(done, "SECCOMP_IOCTL_NOTIF_SEND").map(|done| done.is_some())
}

/// Puts a copy of a descriptor into the calling process and returns its number there as the result of the call
/// (`SECCOMP_ADDFD_FLAG_SEND`, Linux 5.14). `None`: it does not wait any more.
///
/// # Errors
/// ioctl(2) fails.
pub fn respond_with_fd(listener: impl AsFd, id: u64, fd: impl AsFd, on_exec: OnExec) -> Result<Option<i32>, SysError> {
    const SECCOMP_ADDFD_FLAG_SEND: u32 = 2;
    let newfd_flags = match on_exec {
        OnExec::Close => libc::O_CLOEXEC.cast_unsigned(),
        OnExec::Keep => 0,
    };
    let raw = libc::seccomp_notif_addfd {
        id,
        flags: SECCOMP_ADDFD_FLAG_SEND,
        srcfd: fd.as_fd().as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags,
    };
    // SAFETY: SECCOMP_IOCTL_NOTIF_ADDFD reads one such structure (seccomp_unotify(2)).
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), NOTIF_ADDFD as _, &raw const raw) };
    outcome(done, "SECCOMP_IOCTL_NOTIF_ADDFD")
}

/// What happens to an injected descriptor at execve(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExec {
    /// Closed.
    Close,
    /// Kept.
    Keep,
}

/// Whether a call still waits: asked after its memory was read, because the process number could have been reused.
pub fn is_waiting(listener: impl AsFd, id: u64) -> bool {
    // SAFETY: SECCOMP_IOCTL_NOTIF_ID_VALID reads one number (seccomp_unotify(2)).
    (unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), NOTIF_ID_VALID as _, &raw const id) }) == 0
}

fn outcome(done: libc::c_int, what: &'static str) -> Result<Option<i32>, SysError> {
    if done >= 0 {
        return Ok(Some(done));
    }
    match last_errno() {
        Errno::NOENT => Ok(None),
        errno => Err(errno).at("ioctl", || what.to_owned()),
    }
}

/// `_IOC` of asm-generic/ioctl.h for the type `!` of linux/seccomp.h.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    // A structure of this interface is far below the 14 bits that the size has.
    #[allow(clippy::cast_possible_truncation, reason = "sizes of three small structures, in a constant")]
    let size = size as u32;
    (direction << 30) | (size << 16) | (0x21 << 8) | number
}

const WRITE: u32 = 1;
const READ_WRITE: u32 = 3;
const NOTIF_RECV: u32 = request(READ_WRITE, 0, size_of::<libc::seccomp_notif>());
const NOTIF_SEND: u32 = request(READ_WRITE, 1, size_of::<libc::seccomp_notif_resp>());
const NOTIF_ID_VALID: u32 = request(WRITE, 2, size_of::<u64>());
const NOTIF_ADDFD: u32 = request(WRITE, 3, size_of::<libc::seccomp_notif_addfd>());
