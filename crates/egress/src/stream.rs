//! Sockets with the bytes that were read ahead of them.
//!
//! The two directions of a socket are used by two halves of one task, so everything takes `&TcpStream`. Bytes are read
//! into one buffer of the thread, and only what stays unread is kept by the connection: an idle connection holds none.

use crate::proto::Parsed;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How much is read at once. With tokio's own 8 KiB a tunnel is three times slower.
pub(crate) const SCRATCH: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// Runs `f` on the thread's buffer. `f` must not await, which its type ensures.
pub(crate) fn with_scratch<T>(f: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| f(buffer))
}

/// When a message that was not whole is worth another look. A client that sends byte by byte must not cost more than it
/// sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// After every read.
    Always,
    /// When a line ended, or when there is too much.
    AtLines,
}

impl Look {
    fn again(self, fresh: &[u8], total: usize) -> bool {
        match self {
            Self::Always => true,
            Self::AtLines => fresh.contains(&b'\n') || total >= crate::proto::http1::REQUEST_HEAD_MAX,
        }
    }
}

/// Bytes that were read and not used yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError<E> {
    /// The peer ended the connection before the first byte of a message.
    #[error("the connection ended")]
    End,
    /// The peer ended the connection within a message.
    #[error("the connection ended within a message")]
    Cut,
    /// It took too long.
    #[error("it took too long")]
    Late,
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What arrived is no message.
    #[error("{0}")]
    Malformed(E),
}

impl Inbox {
    /// What was read and not used yet.
    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Takes bytes from the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            self.bytes.shrink_to(16 * 1024);
        }
    }

    /// Takes everything and lets go of the memory.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let rest = self.unread().to_vec();
        *self = Self::default();
        rest
    }

    /// Puts bytes at the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads more, at most `limit` bytes. `Ok(0)`: the peer ended its direction.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) async fn fill(&mut self, stream: &TcpStream, limit: usize) -> io::Result<usize> {
        loop {
            stream.readable().await?;
            let read = with_scratch(|buffer| {
                let limit = limit.min(buffer.len());
                let buffer = buffer.get_mut(..limit).unwrap_or_default();
                let count = stream.try_read(buffer)?;
                self.push(buffer.get(..count).unwrap_or_default());
                Ok::<usize, io::Error>(count)
            });
            match read {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Reads one message with a parser; its bytes are consumed. The whole message must be there within `limit`.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub(crate) async fn message<T, E>(
        &mut self,
        stream: &TcpStream,
        limit: Duration,
        look: Look,
        parse: impl Fn(&[u8]) -> Result<Parsed<T>, E>,
    ) -> Result<T, ReadError<E>> {
        let reading = async {
            let mut seen = 0usize;
            loop {
                let unread = self.unread();
                if !unread.is_empty() && look.again(unread.get(seen..).unwrap_or_default(), unread.len()) {
                    match parse(self.unread()).map_err(ReadError::Malformed)? {
                        Parsed::Done { value, used } => {
                            self.consume(used);
                            return Ok(value);
                        }
                        Parsed::Partial => {}
                    }
                }
                seen = self.unread().len();
                if self.fill(stream, 16 * 1024).await? == 0 {
                    return Err(if self.unread().is_empty() { ReadError::End } else { ReadError::Cut });
                }
            }
        };
        timeout(limit, reading).await.unwrap_or(Err(ReadError::Late))
    }
}

/// Writes all bytes.
///
/// # Errors
/// The socket failed.
pub(crate) async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Ends our direction; the peer may still send.
pub(crate) fn end(stream: &TcpStream) {
    // ENOTCONN: the peer is gone already, which is all the same here.
    let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
}

/// Closes with a reset, as a host does on which nothing listens.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Sends last words and closes. A socket that is closed while unread bytes wait sends a reset, and the reset throws away
/// what the peer has not read yet; so the peer's bytes are read until it closes, for a moment and a bounded amount.
pub(crate) async fn last_words(stream: &TcpStream, words: &[u8]) {
    let parting = async {
        write_all(stream, words).await?;
        end(stream);
        let mut left = 1usize << 20;
        let mut inbox = Inbox::default();
        while left > 0 {
            let count = inbox.fill(stream, SCRATCH).await?;
            if count == 0 {
                break;
            }
            inbox.consume(count);
            left = left.saturating_sub(count);
        }
        Ok::<(), io::Error>(())
    };
    // Nothing is left to tell the peer if this fails.
    let _ = timeout(Duration::from_secs(1), parting).await;
}

/// A future with a limit; running late is an error of kind `TimedOut`.
///
/// # Errors
/// The future's own, or it ran late.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, future).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
