//! Bytes from socket to socket through a pipe, with splice(2): pages move, and nothing is copied.

use crate::stream::within;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a pipe is asked to hold; the most that an ordinary user may have (pipe(7), pipe-max-size).
const PIPE_SIZE: usize = 1 << 20;
/// How many pipes there are at once. An ordinary user may have 16,384 pages in pipes before new ones become small
/// (pipe(7), pipe-user-pages-soft), and every pipe takes two descriptors.
const PIPES_MAX: usize = 24;
/// After so many turns without waiting, others get theirs.
const TURNS: u32 = 16;
/// A source that sends nothing for so long does not need a pipe.
const SILENCE: Duration = Duration::from_secs(1);

static PIPES: AtomicUsize = AtomicUsize::new(0);

/// Why a pipe stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The source ended.
    End,
    /// Nothing came for a while.
    Silence,
    /// As much was moved as was wanted.
    Enough,
}

/// Which side failed.
#[derive(Debug)]
pub(crate) enum PipeError {
    /// The one that is read.
    Source(io::Error),
    /// The one that is written.
    Sink(io::Error),
}

impl PipeError {
    /// The error alone.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Source(error) | Self::Sink(error) => error,
        }
    }
}

/// A pipe between two sockets.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    size: usize,
}

impl Pipe {
    /// Makes a pipe, unless there are many already or the system has none left.
    pub(crate) fn take() -> Option<Self> {
        let taken = PIPES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < PIPES_MAX).then_some(n + 1));
        if taken.is_err() {
            return None;
        }
        let Ok((read, write)) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else {
            PIPES.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        // EPERM above the user's limit: the pipe keeps the size that it has.
        let size = fcntl_setpipe_size(&write, PIPE_SIZE).unwrap_or(16 * 4096);
        Some(Self { read, write, size })
    }

    /// Moves at most `limit` bytes, until the source ends or falls silent. The pipe is empty then. What `to` does not take
    /// within `idle` is an error.
    ///
    /// # Errors
    /// A socket failed, or `to` took nothing.
    pub(crate) async fn pump(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        limit: u64,
        idle: Duration,
        moved: &AtomicU64,
    ) -> Result<After, PipeError> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let mut turns = 0u32;
        let mut left = limit;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.size);
            // The pipe is empty here, so EAGAIN can only mean that the socket has nothing.
            let filled = from.try_io(Interest::READABLE, || {
                splice(from, None, &self.write, None, most, flags).map_err(io::Error::from)
            });
            let mut held = match filled {
                Ok(0) => return Ok(After::End),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    turns = 0;
                    match tokio::time::timeout(SILENCE, from.readable()).await {
                        Ok(ready) => ready.map_err(PipeError::Source)?,
                        Err(_) => return Ok(After::Silence),
                    }
                    continue;
                }
                Err(e) => return Err(PipeError::Source(e)),
            };
            left = left.saturating_sub(u64::try_from(held).unwrap_or(left));
            while held > 0 {
                // Without SPLICE_F_MORE, which would hold back the last part of a message (splice(2)).
                let emptied = to.try_io(Interest::WRITABLE, || {
                    splice(&self.read, None, to, None, held, flags).map_err(io::Error::from)
                });
                match emptied {
                    Ok(0) => return Err(PipeError::Sink(io::ErrorKind::WriteZero.into())),
                    Ok(count) => {
                        held = held.saturating_sub(count);
                        moved.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        within(idle, to.writable()).await.map_err(PipeError::Sink)?;
                    }
                    Err(e) => return Err(PipeError::Sink(e)),
                }
            }
            turns += 1;
            if turns >= TURNS {
                turns = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(After::Enough)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        PIPES.fetch_sub(1, Ordering::Relaxed);
    }
}
