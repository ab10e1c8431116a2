//! Waiting for several descriptors.

use crate::{Context, Errno, SysError};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// What a descriptor in a [`Poller`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Something to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Wants {
    /// Something to read.
    pub const READ: Self = Self { read: true, write: false };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        if self.read {
            flags |= epoll::EventFlags::IN;
        }
        if self.write {
            flags |= epoll::EventFlags::OUT;
        }
        flags
    }
}

/// What a descriptor in a [`Poller`] is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The number that it was added with.
    pub token: u64,
    /// Something to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// The other end is gone, or there is an error; reported whether wanted or not.
    pub closed: bool,
}

/// Many descriptors behind one (epoll(7)), which is itself readable when one of them is ready. Level-triggered.
#[derive(Debug)]
pub struct Poller(OwnedFd);

impl Poller {
    /// An empty one.
    ///
    /// # Errors
    /// epoll_create1(2) fails.
    pub fn new() -> Result<Self, SysError> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self).at("epoll_create1", String::new)
    }

    /// Adds a descriptor.
    ///
    /// # Errors
    /// epoll_ctl(2) fails; `EPERM`: a regular file, which is always ready.
    pub fn add(&self, fd: impl AsFd, token: u64, wants: Wants) -> Result<(), SysError> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(token), wants.flags())
            .at("epoll_ctl", || format!("EPOLL_CTL_ADD, {token}"))
    }

    /// Changes what is waited for.
    ///
    /// # Errors
    /// epoll_ctl(2) fails.
    pub fn change(&self, fd: impl AsFd, token: u64, wants: Wants) -> Result<(), SysError> {
        epoll::modify(&self.0, fd, epoll::EventData::new_u64(token), wants.flags())
            .at("epoll_ctl", || format!("EPOLL_CTL_MOD, {token}"))
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// epoll_ctl(2) fails.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), SysError> {
        epoll::delete(&self.0, fd).at("epoll_ctl", || "EPOLL_CTL_DEL".to_owned())
    }

    /// What is ready now, without waiting.
    ///
    /// # Errors
    /// epoll_wait(2) fails.
    pub fn ready(&self) -> Result<Vec<Ready>, SysError> {
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 8];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let n = match epoll::wait(&self.0, &mut events[..], Some(&now)) {
            Ok(n) => n,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(errno).at("epoll_wait", String::new),
        };
        let ready = |event: &epoll::Event| {
            let flags = event.flags;
            Ready {
                token: event.data.u64(),
                read: flags.contains(epoll::EventFlags::IN),
                write: flags.contains(epoll::EventFlags::OUT),
                closed: flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR),
            }
        };
        Ok(events.iter().take(n).map(ready).collect())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
