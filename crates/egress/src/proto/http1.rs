//! HTTP/1 heads, read strictly and written anew (RFC 9112).
//!
//! A head that two implementations could read differently is an error, and what is forwarded is built from the parsed
//! value, so a proxy and a server never disagree about where a request ends.

use super::Parsed;
use std::fmt::Write as _;

/// The longest head of a request.
pub(crate) const REQUEST_HEAD_MAX: usize = 32 * 1024;
/// The longest head of a response.
pub(crate) const RESPONSE_HEAD_MAX: usize = 64 * 1024;
/// The most fields in one head.
const FIELDS_MAX: usize = 128;
/// The longest method.
const METHOD_MAX: usize = 32;

/// Why bytes are not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    /// Longer than is taken, or more fields than are taken.
    #[error("the head is too long")]
    TooLong,
    /// A line that ends in a line feed alone, or a carriage return inside a line (RFC 9112 section 2.2).
    #[error("a line does not end in CR LF")]
    LineEnd,
    /// The request line is not three parts with one space between.
    #[error("the request line is malformed")]
    RequestLine,
    /// The status line is malformed.
    #[error("the status line is malformed")]
    StatusLine,
    /// Neither HTTP/1.1 nor HTTP/1.0.
    #[error("the version is neither HTTP/1.1 nor HTTP/1.0")]
    Version,
    /// A field line without a colon, with space before it, or with a name that is no token (RFC 9112 section 5.1).
    #[error("a field name is malformed")]
    FieldName,
    /// A field that is continued on the next line (RFC 9112 section 5.2).
    #[error("a field is folded over lines")]
    Folded,
    /// NUL or another control byte in a field value (RFC 9110 section 5.5).
    #[error("a field value holds a control byte")]
    FieldValue,
    /// Content-Length and Transfer-Encoding together (RFC 9112 section 6.3).
    #[error("Content-Length and Transfer-Encoding together")]
    BothLengths,
    /// More than one Content-Length, or one that is not a number.
    #[error("Content-Length is repeated or no number")]
    Length,
    /// A Transfer-Encoding other than `chunked`, or in HTTP/1.0.
    #[error("Transfer-Encoding is not `chunked`")]
    Encoding,
    /// More than one Host field.
    #[error("Host is repeated")]
    Host,
}

/// The version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body.
    Empty,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Until the connection ends; responses only.
    UntilClose,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Name as it was sent.
    pub(crate) name: String,
    /// Value without the space around it.
    pub(crate) value: Vec<u8>,
}

/// The fields of a head, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Fields(Vec<Field>);

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// Method; a token, compared exactly.
    pub(crate) method: String,
    /// Target as it was sent; no control byte, no space.
    pub(crate) target: Vec<u8>,
    /// Version.
    pub(crate) version: Version,
    /// Fields.
    pub(crate) fields: Fields,
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    /// Version.
    pub(crate) version: Version,
    /// Status, 100 to 599 (999 is tolerated).
    pub(crate) status: u16,
    /// Reason phrase.
    pub(crate) reason: Vec<u8>,
    /// Fields.
    pub(crate) fields: Fields,
}

/// Whether a byte may stand in a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

impl Fields {
    /// All values of a field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value.as_slice())
    }

    /// The value of a field that occurs once at most.
    ///
    /// # Errors
    /// It occurs more than once.
    pub(crate) fn single<'a>(&'a self, name: &'a str, error: HeadError) -> Result<Option<&'a [u8]>, HeadError> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() { Err(error) } else { Ok(first) }
    }

    /// The members of a list field, lower case.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        self.all(name)
            .flat_map(|v| v.split(|b| *b == b','))
            .map(|m| String::from_utf8_lossy(m.trim_ascii()).to_ascii_lowercase())
            .filter(|m| !m.is_empty())
            .collect()
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push(Field { name: name.to_owned(), value: value.to_vec() });
    }

    /// Adds a field before all others.
    pub(crate) fn push_front(&mut self, name: &str, value: &[u8]) {
        self.0.insert(0, Field { name: name.to_owned(), value: value.to_vec() });
    }

    /// Removes every field that is meant for this hop alone: the known ones, and each that Connection names (RFC 9110
    /// section 7.6.1). Host and Content-Length are written by the caller, so that a Connection field which names them
    /// cannot make them disappear.
    pub(crate) fn strip_hop(&mut self) {
        const HOP: [&str; 13] = [
            "connection",
            "proxy-connection",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-authentication-info",
            "http2-settings",
            "content-length",
            "host",
        ];
        let named = self.list("connection");
        self.0.retain(|f| {
            let name = f.name.to_ascii_lowercase();
            !HOP.contains(&name.as_str()) && !named.contains(&name)
        });
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|f| !f.name.eq_ignore_ascii_case(name));
    }

    fn write(&self, out: &mut Vec<u8>) {
        for field in &self.0 {
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(&field.value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    fn lengths(&self, version: Version) -> Result<Option<Framing>, HeadError> {
        let length = self.single("content-length", HeadError::Length)?;
        let encoding = self.single("transfer-encoding", HeadError::Encoding)?;
        match (length, encoding) {
            (Some(_), Some(_)) => Err(HeadError::BothLengths),
            (None, Some(value)) if value.eq_ignore_ascii_case(b"chunked") && version == Version::Http11 => {
                Ok(Some(Framing::Chunked))
            }
            (None, Some(_)) => Err(HeadError::Encoding),
            (Some(value), None) => Ok(Some(Framing::Length(decimal(value).ok_or(HeadError::Length)?))),
            (None, None) => Ok(None),
        }
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0u64, |sum, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

impl Request {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// Anything ambiguous or over-long.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed<Self>, HeadError> {
        let mut lines = Lines::new(bytes, REQUEST_HEAD_MAX);
        let Some(line) = lines.next()? else { return Ok(Parsed::Partial) };
        let mut parts = line.split(|b| *b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(HeadError::RequestLine);
        };
        if method.is_empty() || method.len() > METHOD_MAX || !method.iter().all(|b| is_token_byte(*b)) {
            return Err(HeadError::RequestLine);
        }
        if target.is_empty() || target.iter().any(|b| *b <= 0x20 || *b == 0x7f) {
            return Err(HeadError::RequestLine);
        }
        let version = version_of(version)?;
        let method = String::from_utf8_lossy(method).into_owned();
        let target = target.to_vec();
        let Some(fields) = lines.fields()? else { return Ok(Parsed::Partial) };
        fields.single("host", HeadError::Host)?;
        let head = Self { method, target, version, fields };
        head.framing()?;
        Ok(Parsed::Done { value: head, used: lines.used })
    }

    /// How the end of the body is found.
    ///
    /// # Errors
    /// Anything ambiguous.
    pub(crate) fn framing(&self) -> Result<Framing, HeadError> {
        Ok(match self.fields.lengths(self.version)? {
            None | Some(Framing::Length(0)) => Framing::Empty,
            Some(framing) => framing,
        })
    }

    /// Writes the head. Its length fields are made from `framing`.
    pub(crate) fn write(&self, framing: Framing, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&self.target);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        write_framing(framing, matches!(self.method.as_str(), "POST" | "PUT" | "PATCH"), out);
        self.fields.write(out);
    }
}

impl Response {
    /// Reads the head of a response.
    ///
    /// # Errors
    /// Anything ambiguous or over-long.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed<Self>, HeadError> {
        let mut lines = Lines::new(bytes, RESPONSE_HEAD_MAX);
        let Some(line) = lines.next()? else { return Ok(Parsed::Partial) };
        let (version, rest) = line.split_at_checked(8).ok_or(HeadError::StatusLine)?;
        let version = version_of(version)?;
        let (status, reason) = match rest {
            [b' ', a, b, c] => ([*a, *b, *c], &[][..]),
            [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
            _ => return Err(HeadError::StatusLine),
        };
        let status =
            decimal(&status).and_then(|s| u16::try_from(s).ok()).filter(|s| *s >= 100).ok_or(HeadError::StatusLine)?;
        if reason.iter().any(|b| is_control(*b)) {
            return Err(HeadError::StatusLine);
        }
        let reason = reason.to_vec();
        let Some(fields) = lines.fields()? else { return Ok(Parsed::Partial) };
        let head = Self { version, status, reason, fields };
        head.fields.lengths(version)?;
        Ok(Parsed::Done { value: head, used: lines.used })
    }

    /// How the end of the body is found, given the method that was asked (RFC 9112 section 6.3).
    ///
    /// # Errors
    /// Anything ambiguous.
    pub(crate) fn framing(&self, method: &str) -> Result<Framing, HeadError> {
        if method == "HEAD" || self.status < 200 || self.status == 204 || self.status == 304 {
            return Ok(Framing::Empty);
        }
        Ok(self.fields.lengths(self.version)?.unwrap_or(Framing::UntilClose))
    }

    /// Writes the head. Its length fields are made from `framing`.
    pub(crate) fn write(&self, framing: Framing, out: &mut Vec<u8>) {
        let mut line = String::new();
        // Writing to a String cannot fail.
        let _ = write!(line, "HTTP/1.1 {:03} ", self.status);
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(&self.reason);
        out.extend_from_slice(b"\r\n");
        write_framing(framing, false, out);
        self.fields.write(out);
    }
}

fn write_framing(framing: Framing, say_empty: bool, out: &mut Vec<u8>) {
    match framing {
        Framing::Length(length) => out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        // A server may answer 411 to a POST that says nothing about its length (RFC 9110 section 8.6).
        Framing::Empty if say_empty => out.extend_from_slice(b"Content-Length: 0\r\n"),
        Framing::Empty | Framing::UntilClose => {}
    }
}

fn version_of(bytes: &[u8]) -> Result<Version, HeadError> {
    match bytes {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        _ => Err(HeadError::Version),
    }
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// The lines of a head.
struct Lines<'a> {
    bytes: &'a [u8],
    used: usize,
    limit: usize,
}

impl<'a> Lines<'a> {
    fn new(bytes: &'a [u8], limit: usize) -> Self {
        Self { bytes, used: 0, limit }
    }

    /// The next line without its end; `None`: not there yet.
    fn next(&mut self) -> Result<Option<&'a [u8]>, HeadError> {
        let rest = self.bytes.get(self.used..).unwrap_or_default();
        let Some(end) = rest.iter().position(|b| *b == b'\n') else {
            return if self.bytes.len() >= self.limit { Err(HeadError::TooLong) } else { Ok(None) };
        };
        let line = rest.get(..end).and_then(|l| l.strip_suffix(b"\r")).ok_or(HeadError::LineEnd)?;
        if line.contains(&b'\r') {
            return Err(HeadError::LineEnd);
        }
        self.used += end + 1;
        if self.used > self.limit { Err(HeadError::TooLong) } else { Ok(Some(line)) }
    }

    fn fields(&mut self) -> Result<Option<Fields>, HeadError> {
        let mut fields = Vec::new();
        loop {
            let Some(line) = self.next()? else { return Ok(None) };
            if line.is_empty() {
                return Ok(Some(Fields(fields)));
            }
            if fields.len() >= FIELDS_MAX {
                return Err(HeadError::TooLong);
            }
            fields.push(field(line)?);
        }
    }
}

/// Reads one field line.
fn field(line: &[u8]) -> Result<Field, HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::Folded);
    }
    let colon = line.iter().position(|b| *b == b':').ok_or(HeadError::FieldName)?;
    let (name, rest) = line.split_at_checked(colon).ok_or(HeadError::FieldName)?;
    if name.is_empty() || !name.iter().all(|b| is_token_byte(*b)) {
        return Err(HeadError::FieldName);
    }
    let value = trim(rest.get(1..).unwrap_or_default());
    if value.iter().any(|b| is_control(*b)) {
        return Err(HeadError::FieldValue);
    }
    Ok(Field { name: String::from_utf8_lossy(name).into_owned(), value: value.to_vec() })
}

/// Checks one trailer line; trailers are read and dropped (RFC 9110 section 6.5.1 allows that).
pub(crate) fn check_trailer(line: &[u8]) -> Result<(), HeadError> {
    field(line).map(drop)
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: &[u8]) -> Result<Parsed<Request>, HeadError> {
        Request::parse(bytes)
    }

    fn good(bytes: &[u8]) -> Request {
        match request(bytes) {
            Ok(Parsed::Done { value, used }) => {
                assert_eq!(used, bytes.len());
                value
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_read_and_written_anew() {
        let mut head = good(b"POST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, X-Drop\r\nX-Drop: 1\r\nKeep: \t v \r\nContent-Length: 3\r\n\r\n");
        assert_eq!(head.framing(), Ok(Framing::Length(3)));
        head.fields.strip_hop();
        head.target = b"/x?y".to_vec();
        let mut out = Vec::new();
        head.write(Framing::Length(3), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "POST /x?y HTTP/1.1\r\nContent-Length: 3\r\nKeep: v\r\n\r\n");
    }

    #[test]
    fn every_prefix_is_partial() {
        let whole = b"GET / HTTP/1.1\r\nHost: a.test\r\nA: b\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(request(&whole[..end]), Ok(Parsed::Partial), "{end}");
        }
        assert!(matches!(request(whole), Ok(Parsed::Done { .. })));
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        let rows: &[(&[u8], HeadError)] = &[
            (b"GET / HTTP/1.1\nHost: a\n\n", HeadError::LineEnd),
            (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", HeadError::LineEnd),
            (b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", HeadError::LineEnd),
            (b"\r\nGET / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET  / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET /\tHTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET / x HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET /\r\n\r\n", HeadError::RequestLine),
            (b"GE(T / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET /\0 HTTP/1.1\r\n\r\n", HeadError::RequestLine),
            (b"GET / HTTP/2.0\r\n\r\n", HeadError::Version),
            (b"GET / HTTP/1.10\r\n\r\n", HeadError::Version),
            (b"GET / http/1.1\r\n\r\n", HeadError::Version),
            (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", HeadError::FieldName),
            (b"GET / HTTP/1.1\r\nHo st: a\r\n\r\n", HeadError::FieldName),
            (b"GET / HTTP/1.1\r\n: a\r\n\r\n", HeadError::FieldName),
            (b"GET / HTTP/1.1\r\nHost\r\n\r\n", HeadError::FieldName),
            (b"GET / HTTP/1.1\r\nX\0: a\r\n\r\n", HeadError::FieldName),
            (b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", HeadError::Folded),
            (b"GET / HTTP/1.1\r\n X: a\r\n\r\n", HeadError::Folded),
            (b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", HeadError::FieldValue),
            (b"GET / HTTP/1.1\r\nX: a\x7fb\r\n\r\n", HeadError::FieldValue),
            (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", HeadError::Host),
            (b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", HeadError::Host),
            (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", HeadError::Length),
            (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", HeadError::BothLengths),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", HeadError::BothLengths),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", HeadError::Encoding),
            (
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                HeadError::Encoding,
            ),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n", HeadError::Encoding),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", HeadError::Encoding),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", HeadError::FieldValue),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", HeadError::FieldName),
            (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HeadError::Encoding),
        ];
        for (bytes, want) in rows {
            assert_eq!(request(bytes), Err(*want), "{}", crate::proto::escape(bytes, 120));
        }
        let mut long = b"GET /".to_vec();
        long.resize(REQUEST_HEAD_MAX + 1, b'a');
        assert_eq!(request(&long), Err(HeadError::TooLong));
        let mut many = b"GET / HTTP/1.1\r\n".to_vec();
        for _ in 0..=FIELDS_MAX {
            many.extend_from_slice(b"a: b\r\n");
        }
        assert_eq!(request(&many), Err(HeadError::TooLong));
    }

    #[test]
    fn a_connection_field_cannot_remove_host_or_length() {
        let mut head = good(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, authorization\r\nAuthorization: x\r\nContent-Length: 1\r\n\r\n");
        head.fields.strip_hop();
        assert_eq!(head.fields, Fields::default());
    }

    #[test]
    fn responses() {
        let Ok(Parsed::Done { value, .. }) = Response::parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n") else {
            panic!()
        };
        assert_eq!(value.framing("GET"), Ok(Framing::Length(2)));
        assert_eq!(value.framing("HEAD"), Ok(Framing::Empty));
        let Ok(Parsed::Done { value, .. }) = Response::parse(b"HTTP/1.0 200\r\n\r\n") else { panic!() };
        assert_eq!(value.framing("GET"), Ok(Framing::UntilClose));
        for bad in [
            &b"HTTP/1.1 20 OK\r\n\r\n"[..],
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1  200 OK\r\n\r\n",
            b"ICY 200 OK\r\n\r\n",
            b"HTTP/1.1 200 O\0K\r\n\r\n",
            b"HTTP/1.1 200 OK\nX: y\n\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        ] {
            assert!(Response::parse(bad).is_err(), "{}", crate::proto::escape(bad, 80));
        }
    }
}
