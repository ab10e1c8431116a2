//! Processes by descriptor: a number cannot be reused under us.

use crate::{Context, Errno, SysError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

/// Opens a process that exists; readable when it ends (pidfd_open(2)).
///
/// # Errors
/// There is none with this number.
pub fn open(pid: Pid) -> Result<OwnedFd, SysError> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).at("pidfd_open", || pid.as_raw_nonzero().to_string())
}

/// Sends a signal. A process that has ended is no error.
///
/// # Errors
/// pidfd_send_signal(2) fails.
pub fn signal(fd: impl AsFd, signal: Signal) -> Result<(), SysError> {
    match rustix::process::pidfd_send_signal(fd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno).at("pidfd_send_signal", || signal.as_raw().to_string()),
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

/// Collects a child that has ended; `None` when it has not.
///
/// # Errors
/// It is not a child of this process.
pub fn collect(fd: impl AsFd, blocking: crate::file::Blocking) -> Result<Option<Ended>, SysError> {
    let mut options = WaitIdOptions::EXITED;
    if blocking == crate::file::Blocking::No {
        options |= WaitIdOptions::NOHANG;
    }
    let fd = fd.as_fd();
    let status = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(fd), options))
        .at("waitid", || "P_PIDFD".to_owned())?;
    Ok(status.map(|s| match (s.exit_status(), s.terminating_signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
    }))
}
