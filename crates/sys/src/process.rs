//! One process: what it keeps, who it is, what it becomes, and how its children end.

use crate::{Context, Errno, SysError, failed, last_errno};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
pub use rustix::process::Pid;
use rustix::process::{DumpableBehavior, Signal};
use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Ends the process at once; nothing is flushed, no destructor runs (_exit(2)).
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit(2) does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Whether other processes of the same user may look into this one, and whether it leaves a core file.
///
/// # Errors
/// prctl(2) fails.
pub fn set_undumpable() -> Result<(), SysError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at("prctl", || "PR_SET_DUMPABLE, 0".to_owned())
}

/// Undoes [`set_undumpable`]: a process that may be traced in this user namespace can be looked into by our own
/// process 1 (ptrace(2)); one that may not belongs to the namespace of the program that it is a copy of.
///
/// # Errors
/// prctl(2) fails.
pub fn set_dumpable() -> Result<(), SysError> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
        .at("prctl", || "PR_SET_DUMPABLE, 1".to_owned())
}

/// Dies with the thread that made it (`PR_SET_PDEATHSIG`, `SIGKILL`).
///
/// # Errors
/// prctl(2) fails.
pub fn die_with_parent() -> Result<(), SysError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at("prctl", || "PR_SET_PDEATHSIG".to_owned())
}

/// Neither set-user-id bits nor file capabilities give anything from here on; cannot be taken back.
///
/// # Errors
/// prctl(2) fails.
pub fn no_new_privileges() -> Result<(), SysError> {
    rustix::thread::set_no_new_privs(true).at("prctl", || "PR_SET_NO_NEW_PRIVS".to_owned())
}

/// The name that ps(1) shows.
///
/// # Errors
/// prctl(2) fails.
pub fn set_name(name: &CStr) -> Result<(), SysError> {
    rustix::thread::set_name(name).at("prctl", || "PR_SET_NAME".to_owned())
}

/// Closes every descriptor from `first` upwards (close_range(2)). The caller owns none of them any more, which is why
/// this is for processes that are about to execute or that hold nothing above.
///
/// # Errors
/// close_range(2) fails.
fn close_from(first: u32) -> Result<(), SysError> {
    // SAFETY: close_range(2) touches no memory. Descriptors above are not used again: see the callers.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if done == 0 { Ok(()) } else { Err(failed("close_range", format!("{first}, ~0"))) }
}

/// Keeps the given descriptors, renumbered from 3 upwards in their order, and closes all others but 0, 1 and 2, whoever
/// opened them. All descriptors that other values of this process own are gone afterwards: for a process that has just
/// been forked and that keeps no such value.
///
/// # Errors
/// fcntl(2), dup3(2) or close_range(2) fails.
pub fn keep_only(kept: Vec<OwnedFd>) -> Result<Vec<OwnedFd>, SysError> {
    // First out of the way of the numbers that will be overwritten.
    let base = RawFd::try_from(kept.len()).unwrap_or(RawFd::MAX).saturating_add(3);
    let mut high = Vec::with_capacity(kept.len());
    for fd in kept {
        let moved = rustix::io::fcntl_dupfd_cloexec(&fd, base).at("fcntl", || "F_DUPFD_CLOEXEC".to_owned())?;
        // The old number is closed below with everything else; closing it here would be one call more.
        std::mem::forget(fd);
        high.push(moved);
    }
    let mut out = Vec::with_capacity(high.len());
    let mut number: RawFd = 3;
    for fd in high {
        // SAFETY: dup3(2) touches no memory; whatever had this number is meant to be closed.
        let done = unsafe { libc::dup3(fd.as_raw_fd(), number, libc::O_CLOEXEC) };
        if done < 0 {
            return Err(failed("dup3", number.to_string()));
        }
        std::mem::forget(fd);
        // SAFETY: dup3(2) made this descriptor for us.
        out.push(unsafe { <OwnedFd as rustix::fd::FromRawFd>::from_raw_fd(number) });
        number += 1;
    }
    close_from(number.cast_unsigned())?;
    Ok(out)
}

/// Puts a descriptor in the place of standard input, output or error.
///
/// # Errors
/// dup2(2) fails.
pub fn set_stdio(number: Stdio, fd: impl AsFd) -> Result<(), SysError> {
    let fd = fd.as_fd();
    match number {
        Stdio::Input => rustix::stdio::dup2_stdin(fd),
        Stdio::Output => rustix::stdio::dup2_stdout(fd),
        Stdio::Error => rustix::stdio::dup2_stderr(fd),
    }
    .at("dup2", || format!("{number:?}"))
}

/// A standard descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// 0.
    Input,
    /// 1.
    Output,
    /// 2.
    Error,
}

impl Stdio {
    /// All three, in order.
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Error];

    /// The descriptor, if it is open.
    pub fn borrow(self) -> Option<BorrowedFd<'static>> {
        let number = match self {
            Self::Input => 0,
            Self::Output => 1,
            Self::Error => 2,
        };
        // SAFETY: the standard descriptors are never owned by a value that closes them; one that is not open is found
        // out by the call below.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_getfd(fd).is_ok().then_some(fd)
    }
}

/// Opens `/dev/null` for each standard descriptor that is not open, so that no other file gets its number.
///
/// # Errors
/// `/dev/null` cannot be opened.
pub fn fill_stdio() -> Result<(), SysError> {
    for number in Stdio::ALL {
        if number.borrow().is_none() {
            let null = crate::file::open_device(std::path::Path::new("/dev/null"), crate::file::Blocking::Yes)?;
            if null.as_raw_fd() <= 2 {
                // It took the free number itself; it stays, and is passed on.
                rustix::io::fcntl_setfd(&null, rustix::io::FdFlags::empty()).at("fcntl", || "F_SETFD".to_owned())?;
                std::mem::forget(null);
            } else {
                set_stdio(number, &null)?;
            }
        }
    }
    Ok(())
}

/// A new session keyring that holds nothing, so that keys of the user's session are out of reach (keyctl(2)). `Ok(false)`
/// when the kernel has no keyrings.
///
/// # Errors
/// keyctl(2) fails.
pub fn fresh_keyring() -> Result<bool, SysError> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: with a null name an anonymous keyring is made; no memory is read.
    let id = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    if id >= 0 {
        return Ok(true);
    }
    match last_errno() {
        Errno::NOSYS => Ok(false),
        errno => Err(errno).at("keyctl", || "KEYCTL_JOIN_SESSION_KEYRING".to_owned()),
    }
}

/// A new session with this process as its leader.
///
/// # Errors
/// It leads a group already.
pub fn new_session() -> Result<(), SysError> {
    rustix::process::setsid().map(drop).at("setsid", String::new)
}

/// Puts a process into a new group of its own; `None` is this one.
///
/// # Errors
/// setpgid(2) fails.
pub fn new_group(pid: Option<Pid>) -> Result<(), SysError> {
    rustix::process::setpgid(pid, None).at("setpgid", String::new)
}

/// The number of this process, in its own process namespace.
pub fn own_pid() -> Pid {
    rustix::process::getpid()
}

/// The arguments and the environment of a program, ready for execve(2).
#[derive(Debug)]
pub struct Image {
    args: Vec<CString>,
    env: Vec<CString>,
}

impl Image {
    /// From arguments, the first of which is the program's name, and variables. One that holds a NUL byte cannot be passed
    /// on.
    ///
    /// # Errors
    /// `EINVAL`: a NUL byte.
    pub fn new<'a, A, E>(args: A, env: E) -> Result<Self, SysError>
    where
        A: IntoIterator<Item = &'a OsStr>,
        E: IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    {
        let nul = |what: &str| SysError::new("execve", format!("NUL byte in {what}"), Errno::INVAL);
        let args = args.into_iter().map(|a| CString::new(a.as_bytes()).map_err(|_| nul("an argument")));
        let env = env.into_iter().map(|(name, value)| {
            let mut pair = Vec::with_capacity(name.len() + value.len() + 1);
            pair.extend_from_slice(name.as_bytes());
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            CString::new(pair).map_err(|_| nul("a variable"))
        });
        Ok(Self { args: args.collect::<Result<_, _>>()?, env: env.collect::<Result<_, _>>()? })
    }

    /// Becomes the program at `path`; returns only when that fails.
    ///
    /// # Errors
    /// execve(2) fails.
    pub fn execute(&self, path: &OsStr) -> Result<Infallible, SysError> {
        self.execute_with(path, None)
    }

    /// Becomes the shell with `script` as its first argument, as execvp(3) does with a file that the kernel cannot run.
    ///
    /// # Errors
    /// execve(2) fails.
    pub fn execute_script(&self, shell: &OsStr, script: &OsStr) -> Result<Infallible, SysError> {
        self.execute_with(shell, Some(script))
    }

    fn execute_with(&self, path: &OsStr, script: Option<&OsStr>) -> Result<Infallible, SysError> {
        let invalid = || SysError::new("execve", format!("{path:?}"), Errno::INVAL);
        let c_path = CString::new(path.as_bytes()).map_err(|_| invalid())?;
        let c_script = script.map(|s| CString::new(s.as_bytes())).transpose().map_err(|_| invalid())?;
        let mut argv: Vec<*const libc::c_char> = Vec::with_capacity(self.args.len() + 2);
        if let Some(script) = &c_script {
            argv.push(c_path.as_ptr());
            argv.push(script.as_ptr());
            argv.extend(self.args.iter().skip(1).map(|a| a.as_ptr()));
        } else {
            argv.extend(self.args.iter().map(|a| a.as_ptr()));
        }
        argv.push(std::ptr::null());
        let mut envp: Vec<*const libc::c_char> = self.env.iter().map(|e| e.as_ptr()).collect();
        envp.push(std::ptr::null());
        // SAFETY: both arrays end with a null pointer and their strings outlive the call (execve(2)).
        unsafe { libc::execve(c_path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
        Err(failed("execve", format!("{path:?}")))
    }
}

/// What a child did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It ended with this status.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
    /// It was stopped by this signal.
    Stopped(i32),
    /// It runs again.
    Continued,
}

/// Takes one change of any child; `None` when there is none now, or no child at all.
///
/// # Errors
/// wait4(2) fails.
pub fn take_change() -> Result<Option<(Pid, Change)>, SysError> {
    let mut status: libc::c_int = 0;
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: wait4(2) writes one number; usage is not asked for.
    let pid = unsafe { libc::wait4(-1, &raw mut status, options, std::ptr::null_mut()) };
    if pid < 0 {
        return match last_errno() {
            Errno::CHILD | Errno::INTR => Ok(None),
            errno => Err(errno).at("wait4", || "-1".to_owned()),
        };
    }
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    let change = if libc::WIFEXITED(status) {
        Change::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Signaled(libc::WTERMSIG(status))
    } else if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else {
        Change::Continued
    };
    Ok(Some((pid, change)))
}

/// Waits for the end of any child and collects it; `Ok(false)`: there is none.
///
/// # Errors
/// wait4(2) fails.
pub fn wait_any() -> Result<bool, SysError> {
    loop {
        // SAFETY: wait4(2) writes nothing when both pointers are null.
        let pid = unsafe { libc::wait4(-1, std::ptr::null_mut(), 0, std::ptr::null_mut()) };
        if pid > 0 {
            return Ok(true);
        }
        match last_errno() {
            Errno::INTR => {}
            Errno::CHILD => return Ok(false),
            errno => return Err(errno).at("wait4", || "-1".to_owned()),
        }
    }
}
