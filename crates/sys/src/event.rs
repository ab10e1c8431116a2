//! Waiting for several descriptors.

use crate::{Context, Errno, SysError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::time::Duration;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or the other end is gone.
    Read,
    /// Room to write, or the other end is gone.
    Write,
}

/// Waits until one of the descriptors is ready, or the time is over; says which are.
///
/// # Errors
/// poll(2) fails; `EINTR` counts as "none is".
pub fn wait(on: &[(BorrowedFd<'_>, Interest)], limit: Option<Duration>) -> Result<Vec<bool>, SysError> {
    let mut fds: Vec<PollFd<'_>> = on
        .iter()
        .map(|(fd, interest)| {
            let flags = match interest {
                Interest::Read => PollFlags::IN,
                Interest::Write => PollFlags::OUT,
            };
            PollFd::from_borrowed_fd(*fd, flags)
        })
        .collect();
    let limit = limit.map(|d| Timespec {
        tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(d.subsec_nanos()),
    });
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(errno) => Err(errno).at("poll", || format!("{} descriptors", on.len())),
    }
}
