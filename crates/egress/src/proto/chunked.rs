//! The chunked transfer coding (RFC 9112 section 7.1), read strictly. Chunk extensions and trailers are checked and
//! dropped: what is forwarded is written anew.

use super::http1::{HeadError, check_trailer};

/// The longest line with a chunk's size and its extensions.
const SIZE_LINE_MAX: usize = 512;
/// The longest trailer section.
const TRAILER_MAX: usize = 8 * 1024;

/// Why bytes are not chunks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkError {
    /// The size is missing, not hexadecimal, or above 2^60.
    #[error("a chunk size is malformed")]
    Size,
    /// An extension holds a control byte or is too long.
    #[error("a chunk extension is malformed")]
    Extension,
    /// A line or the data of a chunk does not end in CR LF.
    #[error("a chunk does not end in CR LF")]
    LineEnd,
    /// A trailer field is malformed.
    #[error("a trailer is malformed: {0}")]
    Trailer(#[from] HeadError),
    /// The trailers are too long.
    #[error("the trailers are too long")]
    TrailerTooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    Trailer,
    TrailerEnd,
    Done,
}

/// One step of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// All input was taken; more is needed.
    More,
    /// Content.
    Data(&'a [u8]),
    /// The last chunk and the trailers were read.
    End,
}

/// A decoder; feed it the bytes in any pieces.
#[derive(Debug)]
pub(crate) struct Chunked {
    step: Step,
    left: u64,
    digits: u32,
    line: usize,
    trailer: Vec<u8>,
    trailers: usize,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { step: Step::Size, left: 0, digits: 0, line: 0, trailer: Vec::new(), trailers: 0 }
    }

    /// Decodes from the front of `input`. Answers how many bytes were taken and what they were.
    ///
    /// # Errors
    /// The bytes are not chunks.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), ChunkError> {
        let mut used = 0usize;
        while let Some(byte) = input.get(used).copied() {
            match self.step {
                Step::Data => {
                    let rest = input.get(used..).unwrap_or_default();
                    let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                    let data = rest.get(..take).unwrap_or_default();
                    self.left -= u64::try_from(take).unwrap_or(self.left);
                    if self.left == 0 {
                        self.step = Step::DataReturn;
                    }
                    return Ok((used + take, Piece::Data(data)));
                }
                Step::Done => return Ok((used, Piece::End)),
                _ => self.byte(byte)?,
            }
            used += 1;
            if self.step == Step::Done {
                return Ok((used, Piece::End));
            }
        }
        Ok((used, Piece::More))
    }

    fn byte(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.line += 1;
        self.step = match (self.step, byte) {
            (Step::Size, digit) if digit.is_ascii_hexdigit() => {
                let value = char::from(digit).to_digit(16).ok_or(ChunkError::Size)?;
                self.digits += 1;
                if self.digits > 15 {
                    return Err(ChunkError::Size);
                }
                self.left = self.left * 16 + u64::from(value);
                Step::Size
            }
            (Step::Size, _) if self.digits == 0 => return Err(ChunkError::Size),
            (Step::Size | Step::Extension, b'\r') => Step::SizeEnd,
            (Step::Size, b';') => Step::Extension,
            (Step::Size, _) => return Err(ChunkError::Size),
            (Step::Extension, b'\t' | 0x20..=0x7e) if self.line <= SIZE_LINE_MAX => Step::Extension,
            (Step::Extension, _) => return Err(ChunkError::Extension),
            (Step::SizeEnd, b'\n') => {
                self.digits = 0;
                self.line = 0;
                if self.left == 0 { Step::Trailer } else { Step::Data }
            }
            (Step::DataReturn, b'\r') => Step::DataEnd,
            (Step::DataEnd, b'\n') => {
                self.line = 0;
                Step::Size
            }
            (Step::Trailer, b'\r') => Step::TrailerEnd,
            (Step::Trailer, b'\n') => return Err(ChunkError::LineEnd),
            (Step::Trailer, byte) => {
                self.trailers += 1;
                if self.trailers > TRAILER_MAX {
                    return Err(ChunkError::TrailerTooLong);
                }
                self.trailer.push(byte);
                Step::Trailer
            }
            (Step::TrailerEnd, b'\n') => {
                if self.trailer.is_empty() {
                    Step::Done
                } else {
                    check_trailer(&self.trailer)?;
                    self.trailer.clear();
                    Step::Trailer
                }
            }
            (Step::SizeEnd | Step::DataReturn | Step::DataEnd | Step::TrailerEnd, _) => {
                return Err(ChunkError::LineEnd);
            }
            (step @ (Step::Data | Step::Done), _) => step,
        };
        Ok(())
    }
}

/// Writes one chunk's first line.
pub(crate) fn chunk_line(length: usize) -> String {
    format!("{length:x}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), ChunkError> {
        let mut decoder = Chunked::new();
        let mut out = Vec::new();
        let mut at = 0;
        let mut seen = 0;
        while seen < bytes.len() || at < seen {
            seen = (seen + step).min(bytes.len());
            loop {
                let (used, piece) = decoder.next(&bytes[at..seen])?;
                at += used;
                match piece {
                    Piece::Data(data) => out.extend_from_slice(data),
                    Piece::End => return Ok((out, at, true)),
                    Piece::More => break,
                }
            }
            if seen == bytes.len() {
                break;
            }
        }
        Ok((out, at, false))
    }

    #[test]
    fn the_same_in_any_pieces() {
        let body = b"4;name=\"v\"\r\nWiki\r\n5\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nX-T: v\r\n\r\nNEXT";
        for step in 1..body.len() {
            let (out, used, end) = decode(body, step).unwrap();
            assert_eq!(out, b"Wikipedia in\r\n\r\nchunks.");
            assert_eq!(&body[used..], b"NEXT");
            assert!(end);
        }
    }

    #[test]
    fn malformed_chunks() {
        for bad in [
            &b"\r\n"[..],
            b"g\r\n",
            b"0x4\r\n",
            b"+4\r\nWiki\r\n",
            b" 4\r\nWiki\r\n",
            b"4 \r\nWiki\r\n",
            b"4\nWiki\n0\n\n",
            b"4\r\nWikiX\r\n",
            b"4\r\nWiki\n0\r\n\r\n",
            b"4;a\nb\r\nWiki\r\n",
            b"4;\0\r\nWiki\r\n",
            b"4\r\rWiki",
            b"1000000000000000\r\n",
            b"0\r\nX\n\r\n",
            b"0\r\nX y: z\r\n\r\n",
            b"0\r\n folded\r\n\r\n",
            b"0\r\nX: a\0\r\n\r\n",
            b"-1\r\n",
            b"4,4\r\nWiki\r\n",
        ] {
            assert!(decode(bad, bad.len()).is_err(), "{}", crate::proto::escape(bad, 60));
        }
        let mut long = b"1;".to_vec();
        long.resize(SIZE_LINE_MAX + 2, b'a');
        assert_eq!(decode(&long, long.len()), Err(ChunkError::Extension));
        let mut long = b"0\r\nX: ".to_vec();
        long.resize(TRAILER_MAX + 20, b'a');
        assert_eq!(decode(&long, long.len()), Err(ChunkError::TrailerTooLong));
    }
}
