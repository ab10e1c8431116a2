//! What a client speaks, from its first bytes.

/// The longest token that is taken for an HTTP method.
const METHOD_MAX: usize = 64;
/// The longest request line that is waited for.
const LINE_MAX: usize = 16 * 1024;

/// What the first bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// Not enough to tell.
    Partial,
    /// A TLS handshake record.
    Tls,
    /// A request line of HTTP/1.
    Http,
    /// The connection preface of HTTP/2 without TLS (RFC 9113 section 3.4).
    Http2,
    /// Something else.
    Other,
}

/// Tells what a client speaks.
///
/// A client must not be able to get an HTTP request past the check of its Host field by sending it in small pieces, so
/// bytes that may still become a request line are `Partial`, however few they are.
pub(crate) fn classify(bytes: &[u8]) -> First {
    match bytes.first() {
        None => return First::Partial,
        Some(0x16) => return First::Tls,
        Some(_) => {}
    }
    // Servers skip empty lines before a request line (RFC 9112 section 2.2); so they do not hide one.
    let start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n'));
    let Some(bytes) = start.and_then(|at| bytes.get(at..)) else {
        return if bytes.len() > LINE_MAX { First::Other } else { First::Partial };
    };
    let mut token = 0usize;
    for byte in bytes {
        match byte {
            b' ' | b'\t' => break,
            byte if super::http1::is_token_byte(*byte) => token += 1,
            _ => return First::Other,
        }
        if token > METHOD_MAX {
            return First::Other;
        }
    }
    if token == 0 {
        return First::Other;
    }
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return if bytes.len() > LINE_MAX { First::Http } else { First::Partial };
    };
    let line = bytes.get(..end).unwrap_or_default();
    let line = line.trim_ascii_end();
    if line == b"PRI * HTTP/2.0" {
        return First::Http2;
    }
    let version = line.iter().rposition(|b| matches!(b, b' ' | b'\t')).and_then(|at| line.get(at + 1..));
    match version {
        Some(version) if version.get(..5).is_some_and(|v| v.eq_ignore_ascii_case(b"HTTP/")) => First::Http,
        _ => First::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let rows: &[(&[u8], First)] = &[
            (b"", First::Partial),
            (b"\x16", First::Tls),
            (b"\x16\x03\x01", First::Tls),
            (b"G", First::Partial),
            (b"GET", First::Partial),
            (b"GET /", First::Partial),
            (b"GET / HTTP/1.1\r", First::Partial),
            (b"GET / HTTP/1.1\r\n", First::Http),
            (b"GET / HTTP/1.1\n", First::Http),
            (b"GET / http/1.1\r\n", First::Http),
            (b"BREW /pot HTTP/1.0\r\n", First::Http),
            (b"\r\nGET / HTTP/1.1\r\n", First::Http),
            (b"\r\n", First::Partial),
            (b"PRI * HTTP/2.0\r\n", First::Http2),
            (b"SSH-2.0-OpenSSH_9.2\r\n", First::Other),
            (b"SSH-2.0-OpenSSH_9.2 Debian\r\n", First::Other),
            (b"GET key\r\n", First::Other),
            (b"*1\r\n$4\r\nPING\r\n", First::Other),
            (b"\x00\x00\x00\x08", First::Other),
            (b"\x80\x2e\x01", First::Other),
            (b" GET / HTTP/1.1\r\n", First::Other),
        ];
        for (bytes, want) in rows {
            assert_eq!(classify(bytes), *want, "{}", crate::proto::escape(bytes, 80));
        }
        assert_eq!(classify(&[b'A'; 70]), First::Other);
    }
}
