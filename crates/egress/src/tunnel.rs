//! Bytes between two sockets.
//!
//! A direction begins with read(2) and write(2) through one buffer of the thread, so that an idle tunnel holds no memory
//! and no descriptors beyond its two sockets. A direction that moves much gets a pipe and goes on with splice(2), which
//! moves pages and copies nothing; the pipe goes back when the direction falls silent.

use crate::pipe::{After, Pipe, PipeError};
use crate::stream::{end, reset, with_scratch, write_all};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// So many full reads in a row make a direction use splice(2).
const FULL_READS: u32 = 4;
/// How long a peer may leave a full pipe unread, before the watch over the whole tunnel decides.
const FOREVER: Duration = Duration::from_secs(u64::MAX >> 32);

/// Bytes that a tunnel moved.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// From the sandbox.
    pub(crate) sent: AtomicU64,
    /// To the sandbox.
    pub(crate) received: AtomicU64,
}

impl Moved {
    fn total(&self) -> u64 {
        self.sent.load(Ordering::Relaxed).wrapping_add(self.received.load(Ordering::Relaxed))
    }
}

/// Moves bytes both ways until both directions ended, one fails, or nothing moves for `idle`.
///
/// # Errors
/// A socket failed, or nothing moved for too long; both sockets are reset then, so that neither peer takes a cut for an
/// end.
pub(crate) async fn run(
    inside: &mut TcpStream,
    outside: &mut TcpStream,
    idle: Duration,
    moved: &Moved,
) -> io::Result<()> {
    let result = {
        let (from_inside, to_inside) = inside.split();
        let (from_outside, to_outside) = outside.split();
        let both = async {
            tokio::try_join!(
                pump(from_inside, to_outside.as_ref(), &moved.sent),
                pump(from_outside, to_inside.as_ref(), &moved.received)
            )
            .map(|_| ())
        };
        let silence = async {
            let mut before = moved.total();
            loop {
                tokio::time::sleep(idle).await;
                let now = moved.total();
                if now == before {
                    return io::Error::from(io::ErrorKind::TimedOut);
                }
                before = now;
            }
        };
        tokio::select! {
            result = both => result,
            error = silence => Err(error),
        }
    };
    if result.is_err() {
        reset(inside);
        reset(outside);
    }
    result
}

/// One read and the write of what was read.
struct Step {
    /// How much was read; 0 is the end.
    read: usize,
    /// How much of it the peer took at once.
    written: usize,
    /// What the peer did not take. Only this is kept, by this direction alone.
    rest: Vec<u8>,
    /// Whether the buffer was full.
    full: bool,
}

/// Reads once and writes what was read. `poll_read` knows that a read which did not fill the buffer has emptied the
/// socket, and spares the next one that would only say so.
async fn step(from: &mut ReadHalf<'_>, to: &TcpStream) -> io::Result<Step> {
    poll_fn(|cx| {
        with_scratch(|buffer| {
            let size = buffer.len();
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *from).poll_read(cx, &mut buffer))?;
            let bytes = buffer.filled();
            let written = match to.try_write(bytes) {
                Ok(written) => written,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
                Err(e) => return Poll::Ready(Err(e)),
            };
            let rest = bytes.get(written..).unwrap_or_default().to_vec();
            Poll::Ready(Ok(Step { read: bytes.len(), written, rest, full: bytes.len() == size }))
        })
    })
    .await
}

/// Moves bytes one way until `from` ends, then ends that direction of `to`.
async fn pump(mut from: ReadHalf<'_>, to: &TcpStream, moved: &AtomicU64) -> io::Result<()> {
    let mut full = 0u32;
    loop {
        let step = step(&mut from, to).await?;
        if step.read == 0 {
            break;
        }
        add(moved, step.written);
        if !step.rest.is_empty() {
            write_all(to, &step.rest).await?;
            add(moved, step.rest.len());
        }
        full = if step.full { full + 1 } else { 0 };
        if full >= FULL_READS {
            full = 0;
            if let Some(mut pipe) = Pipe::take() {
                match pipe.pump(from.as_ref(), to, u64::MAX, FOREVER, moved).await.map_err(PipeError::into_io)? {
                    After::End => break,
                    After::Silence | After::Enough => {}
                }
            }
        }
    }
    end(to);
    Ok(())
}

fn add(moved: &AtomicU64, count: usize) {
    moved.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
}
