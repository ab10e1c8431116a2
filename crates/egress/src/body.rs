//! Bodies: read by their framing, counted, and written in the framing that the other side was told.

use crate::pipe::{After, Pipe, PipeError};
use crate::proto::chunked::{ChunkError, Chunked, Piece, chunk_line};
use crate::proto::http1::Framing;
use crate::stream::{Inbox, SCRATCH, within, write_all};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// A body of which so much is to come is moved and not read.
const BULK: u64 = 256 * 1024;

/// Why a body did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The reading side failed or fell silent.
    #[error("the body: {0}")]
    Source(io::Error),
    /// The reading side ended in the middle.
    #[error("the body ended early")]
    Cut,
    /// The body is not chunks.
    #[error("{0}")]
    Malformed(#[from] ChunkError),
    /// The writing side failed or took nothing.
    #[error("the body cannot be delivered: {0}")]
    Sink(io::Error),
}

/// Relays one body.
///
/// # Errors
/// See [`BodyError`].
pub(crate) async fn relay(
    from: &TcpStream,
    inbox: &mut Inbox,
    to: &TcpStream,
    framing: Framing,
    outgoing: Framing,
    idle: Duration,
    moved: &AtomicU64,
) -> Result<(), BodyError> {
    let put = |bytes: &[u8]| moved.fetch_add(u64::try_from(bytes.len()).unwrap_or(0), Ordering::Relaxed);
    match framing {
        Framing::Empty => {}
        Framing::Length(mut left) => {
            while left > 0 {
                if inbox.unread().is_empty() && left >= BULK {
                    let before = moved.load(Ordering::Relaxed);
                    let after = bulk(from, to, left, idle, moved).await?;
                    left = left.saturating_sub(moved.load(Ordering::Relaxed).wrapping_sub(before));
                    match after {
                        After::End => return Err(BodyError::Cut),
                        After::Enough => break,
                        After::Silence => {}
                    }
                }
                more(from, inbox, idle).await?;
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                let bytes = inbox.unread();
                let bytes = bytes.get(..most.min(bytes.len())).unwrap_or_default();
                within(idle, write_all(to, bytes)).await.map_err(BodyError::Sink)?;
                put(bytes);
                let count = bytes.len();
                left = left.saturating_sub(u64::try_from(count).unwrap_or(left));
                inbox.consume(count);
            }
        }
        Framing::Chunked => {
            let mut decoder = Chunked::new();
            loop {
                let mut out = Vec::new();
                let mut over = false;
                // All that is there becomes one write; one chunk each would be one packet each.
                loop {
                    let (used, piece) = decoder.next(inbox.unread())?;
                    match piece {
                        Piece::More => {}
                        Piece::Data(data) if outgoing == Framing::Chunked => {
                            out.extend_from_slice(chunk_line(data.len()).as_bytes());
                            out.extend_from_slice(data);
                            out.extend_from_slice(b"\r\n");
                        }
                        Piece::Data(data) => out.extend_from_slice(data),
                        Piece::End => over = true,
                    }
                    let more = matches!(piece, Piece::Data(_));
                    inbox.consume(used);
                    if !more {
                        break;
                    }
                }
                if over && outgoing == Framing::Chunked {
                    out.extend_from_slice(b"0\r\n\r\n");
                }
                within(idle, write_all(to, &out)).await.map_err(BodyError::Sink)?;
                put(&out);
                if over {
                    break;
                }
                more(from, inbox, idle).await?;
            }
        }
        Framing::UntilClose => loop {
            if inbox.unread().is_empty() && bulk(from, to, u64::MAX, idle, moved).await? == After::End {
                break;
            }
            match more(from, inbox, idle).await {
                Ok(()) => {}
                Err(BodyError::Cut) => break,
                Err(error) => return Err(error),
            }
            within(idle, write_all(to, inbox.unread())).await.map_err(BodyError::Sink)?;
            let count = inbox.unread().len();
            put(inbox.unread());
            inbox.consume(count);
        },
    }
    Ok(())
}

/// Moves content without reading it, while it comes. `Silence` without a byte where there is no pipe left.
async fn bulk(
    from: &TcpStream,
    to: &TcpStream,
    limit: u64,
    idle: Duration,
    moved: &AtomicU64,
) -> Result<After, BodyError> {
    let Some(mut pipe) = Pipe::take() else { return Ok(After::Silence) };
    pipe.pump(from, to, limit, idle, moved).await.map_err(|error| match error {
        PipeError::Source(error) => BodyError::Source(error),
        PipeError::Sink(error) => BodyError::Sink(error),
    })
}

/// Reads on when nothing is left. The end of the connection is an error.
async fn more(from: &TcpStream, inbox: &mut Inbox, idle: Duration) -> Result<(), BodyError> {
    if !inbox.unread().is_empty() {
        return Ok(());
    }
    match within(idle, inbox.fill(from, SCRATCH)).await {
        Ok(0) => Err(BodyError::Cut),
        Ok(_) => Ok(()),
        Err(error) => Err(BodyError::Source(error)),
    }
}
