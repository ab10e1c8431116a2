//! Signals: masks, dispositions, and signals as messages.

use crate::{Context, Errno, SysError, failed};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::process::Pid;
pub use rustix::process::Signal;
use std::mem::MaybeUninit;

/// A set of signals.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignalSet")
    }
}

impl SignalSet {
    /// No signal.
    pub fn empty() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset(3) initialises the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: initialised by the call above, which cannot fail for a valid pointer.
        Self(unsafe { set.assume_init() })
    }

    /// Every signal that can be blocked.
    pub fn all() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset(3) initialises the set.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: initialised by the call above, which cannot fail for a valid pointer.
        Self(unsafe { set.assume_init() })
    }

    /// These signals.
    pub fn of(signals: &[Signal]) -> Self {
        let mut set = Self::empty();
        for signal in signals {
            // SAFETY: the set is initialised; a number that is no signal is refused with EINVAL.
            unsafe { libc::sigaddset(&raw mut set.0, signal.as_raw()) };
        }
        set
    }
}

/// What is done with a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Block these too.
    Block,
    /// Block these no longer.
    Unblock,
    /// Block exactly these.
    Set,
}

/// Changes the signal mask of the calling thread; the old one is returned.
///
/// # Errors
/// pthread_sigmask(3) fails.
pub fn change_mask(how: Mask, set: &SignalSet) -> Result<SignalSet, SysError> {
    let how = match how {
        Mask::Block => libc::SIG_BLOCK,
        Mask::Unblock => libc::SIG_UNBLOCK,
        Mask::Set => libc::SIG_SETMASK,
    };
    let mut old = SignalSet::empty();
    // SAFETY: both sets are initialised and outlive the call (pthread_sigmask(3)).
    let errno = unsafe { libc::pthread_sigmask(how, &raw const set.0, &raw mut old.0) };
    if errno == 0 { Ok(old) } else { Err(SysError::new("sigprocmask", "", Errno::from_raw_os_error(errno))) }
}

/// Gives a signal its default disposition.
///
/// # Errors
/// sigaction(2) fails.
pub fn reset(signal: Signal) -> Result<(), SysError> {
    // SAFETY: SIG_DFL installs no code of ours (signal(2)).
    let old = unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
    if old == libc::SIG_ERR { Err(failed("signal", format!("{}, SIG_DFL", signal.as_raw()))) } else { Ok(()) }
}

/// A descriptor from which blocked signals of the set are read (signalfd(2)); non-blocking.
///
/// # Errors
/// signalfd(2) fails.
pub fn descriptor(set: &SignalSet) -> Result<OwnedFd, SysError> {
    // SAFETY: the set is initialised and outlives the call (signalfd(2)).
    let fd = unsafe { libc::signalfd(-1, &raw const set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(failed("signalfd", ""));
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Who made a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The kernel, such as a terminal on Ctrl-C, which means a whole process group.
    Kernel,
    /// A process, which means the process that it named.
    Process,
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Who made it.
    pub sender: Sender,
}

/// Takes one signal from a descriptor of [`descriptor`]; `None` when there is none.
///
/// # Errors
/// read(2) fails.
pub fn take(fd: impl AsFd) -> Result<Option<Arrived>, SysError> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    // SAFETY: read(2) writes at most the given number of bytes into the buffer.
    let n =
        unsafe { libc::read(fd.as_fd().as_raw_fd(), info.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>()) };
    if n < 0 {
        return match crate::last_errno() {
            Errno::AGAIN | Errno::INTR => Ok(None),
            errno => Err(errno).at("read", || "signalfd".to_owned()),
        };
    }
    // SAFETY: plain numbers, zeroed before and filled by the kernel.
    let info = unsafe { info.assume_init() };
    let sender = if info.ssi_code > 0 { Sender::Kernel } else { Sender::Process };
    Ok(Some(Arrived { signal: info.ssi_signo.cast_signed(), sender }))
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One process.
    Process(Pid),
    /// A process group.
    Group(Pid),
    /// This process's own group.
    OwnGroup,
    /// Every process that can be signalled but this one and process 1 (kill(2)).
    Everyone,
}

/// Sends a signal; 0 only checks. Nobody there is no error.
///
/// # Errors
/// kill(2) fails.
pub fn send(target: Target, signal: i32) -> Result<(), SysError> {
    let pid = match target {
        Target::Process(pid) => pid.as_raw_nonzero().get(),
        Target::Group(pid) => -pid.as_raw_nonzero().get(),
        Target::OwnGroup => 0,
        Target::Everyone => -1,
    };
    // SAFETY: kill(2) touches no memory.
    if unsafe { libc::kill(pid, signal) } == 0 {
        return Ok(());
    }
    match crate::last_errno() {
        Errno::SRCH => Ok(()),
        errno => Err(errno).at("kill", || format!("{pid}, {signal}")),
    }
}
