//! Protocols as pure functions on byte slices: no input or output, no clock, bounded, and never a panic.
//!
//! Every parser answers one of three: the message with the bytes it took, "not all there yet", or an error. None of them
//! reads leniently: what two readers could understand differently is an error.

pub(crate) mod chunked;
pub(crate) mod connect;
pub(crate) mod dns;
pub(crate) mod first;
pub(crate) mod http1;
pub(crate) mod sni;
pub(crate) mod socks5;
pub(crate) mod ssh;

/// What a parser made of the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parsed<T> {
    /// The message is not all there yet.
    Partial,
    /// The message, and how many bytes it took.
    Done {
        /// The message.
        value: T,
        /// Bytes taken from the front.
        used: usize,
    },
}

/// Reads big-endian fields from the front of a slice. `None`: not enough bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, tail) = self.rest.split_first()?;
        self.rest = tail;
        Some(*first)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let (head, tail) = self.rest.split_first_chunk::<2>()?;
        self.rest = tail;
        Some(u16::from_be_bytes(*head))
    }

    pub(crate) fn u24(&mut self) -> Option<usize> {
        let (head, tail) = self.rest.split_first_chunk::<3>()?;
        self.rest = tail;
        let [a, b, c] = *head;
        Some(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }

    /// A field with a length of one byte before it.
    pub(crate) fn short_vector(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(usize::from(length))
    }

    /// A field with a length of two bytes before it.
    pub(crate) fn vector(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

/// Renders bytes that came from inside for a log line or a message: printable ASCII as it is, the rest as `\xNN`, cut at
/// `limit` bytes. What is printed can neither end a line nor move a terminal's cursor.
pub(crate) fn escape(bytes: &[u8], limit: usize) -> String {
    let mut text = String::with_capacity(bytes.len().min(limit));
    for byte in bytes.iter().take(limit) {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if bytes.len() > limit {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_keeps_one_line_and_a_bound() {
        assert_eq!(escape(b"a\n{\"action\":\"allow\"}\x1b[2J\x00", 100), "a\\x0a{\"action\":\"allow\"}\\x1b[2J\\x00");
        assert_eq!(escape(&[b'a'; 300], 4), "aaaa...");
        assert_eq!(escape("ü\\".as_bytes(), 10), "\\xc3\\xbc\\\\");
    }

    #[test]
    fn a_cursor_never_reads_past_the_end() {
        let mut cursor = Cursor::new(&[0, 3, 1, 2]);
        assert_eq!(cursor.vector(), None);
        let mut cursor = Cursor::new(&[0, 2, 1, 2, 9]);
        assert_eq!(cursor.vector(), Some(&[1u8, 2][..]));
        assert_eq!(cursor.u16(), None);
        assert_eq!(cursor.u24(), None);
        assert_eq!(cursor.u8(), Some(9));
        assert!(cursor.is_empty());
    }
}
