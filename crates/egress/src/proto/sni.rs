//! The server name of a TLS ClientHello, read from the first bytes of a connection.
//!
//! The hello may be spread over records (RFC 8446 section 5.1) and over segments. It is read whole before a byte of it is
//! forwarded; the bytes themselves are forwarded unchanged.

use super::{Cursor, Parsed};

/// The longest hello, over all its records.
pub(crate) const HELLO_MAX: usize = 16 * 1024;
/// The largest fragment that one record may carry (RFC 8446 section 5.1).
const FRAGMENT_MAX: usize = 16 * 1024;

/// What matters of a ClientHello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The name in the server_name extension, as it was sent.
    pub(crate) name: Option<Vec<u8>>,
    /// Whether an encrypted hello rides along. The name is the outer one then.
    pub(crate) encrypted: bool,
}

/// Why bytes are not a ClientHello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelloError {
    /// Not a handshake record of TLS.
    #[error("not a TLS handshake record")]
    Record,
    /// Not a ClientHello, or something follows it before the server has spoken.
    #[error("not a ClientHello alone")]
    NotHello,
    /// Longer than [`HELLO_MAX`].
    #[error("the ClientHello is too long")]
    TooLong,
    /// A length inside does not fit.
    #[error("the ClientHello is malformed")]
    Malformed,
    /// An extension twice, or more than one name.
    #[error("the ClientHello names more than one server")]
    Ambiguous,
}

const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_ENCRYPTED_HELLO: u16 = 0xfe0d;

/// Reads a ClientHello from the start of a connection.
///
/// # Errors
/// The bytes are something else, or ambiguous.
pub(crate) fn client_hello(bytes: &[u8]) -> Result<Parsed<Hello>, HelloError> {
    let mut cursor = Cursor::new(bytes);
    let mut message: Vec<u8> = Vec::new();
    loop {
        if let Some(whole) = message_length(&message)? {
            if message.len() > whole {
                return Err(HelloError::NotHello);
            }
            if message.len() == whole {
                let body = message.get(4..).unwrap_or_default();
                let hello = body_of(body).ok_or(HelloError::Malformed)??;
                return Ok(Parsed::Done { value: hello, used: bytes.len() - cursor.rest().len() });
            }
        }
        // Judged byte by byte, so that what cannot become a hello is not waited for.
        match cursor.rest() {
            [kind, ..] if *kind != 0x16 => return Err(HelloError::Record),
            [_, major, ..] if *major != 3 => return Err(HelloError::Record),
            _ => {}
        }
        let Some(_) = cursor.take(3) else { return Ok(Parsed::Partial) };
        let Some(length) = cursor.u16() else { return Ok(Parsed::Partial) };
        let length = usize::from(length);
        // Handshake fragments of no length are forbidden (RFC 8446 section 5.1).
        if length == 0 || length > FRAGMENT_MAX {
            return Err(HelloError::Record);
        }
        match cursor.take(length) {
            Some(fragment) => message.extend_from_slice(fragment),
            None => {
                message.extend_from_slice(cursor.rest());
                message_length(&message)?;
                return Ok(Parsed::Partial);
            }
        }
    }
}

/// The length of the whole message with its header, once the header is there.
fn message_length(message: &[u8]) -> Result<Option<usize>, HelloError> {
    let mut cursor = Cursor::new(message);
    let Some(kind) = cursor.u8() else { return Ok(None) };
    if kind != 1 {
        return Err(HelloError::NotHello);
    }
    let Some(length) = cursor.u24() else { return Ok(None) };
    if length > HELLO_MAX { Err(HelloError::TooLong) } else { Ok(Some(length + 4)) }
}

/// Reads the body. The outer `None`: a length does not fit.
fn body_of(body: &[u8]) -> Option<Result<Hello, HelloError>> {
    let mut cursor = Cursor::new(body);
    cursor.take(2 + 32)?;
    let session = cursor.short_vector()?;
    let suites = cursor.vector()?;
    let compressions = cursor.short_vector()?;
    if session.len() > 32 || suites.len() < 2 || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    let mut hello = Hello { name: None, encrypted: false };
    if cursor.is_empty() {
        return Some(Ok(hello));
    }
    let mut extensions = Cursor::new(cursor.vector()?);
    if !cursor.is_empty() {
        return None;
    }
    let mut named = false;
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let data = extensions.vector()?;
        match kind {
            EXTENSION_SERVER_NAME => {
                if named {
                    return Some(Err(HelloError::Ambiguous));
                }
                named = true;
                match server_name(data)? {
                    Ok(name) => hello.name = Some(name),
                    Err(error) => return Some(Err(error)),
                }
            }
            EXTENSION_ENCRYPTED_HELLO => hello.encrypted = true,
            _ => {}
        }
    }
    Some(Ok(hello))
}

/// Reads the extension's list, which may hold one name of each kind (RFC 6066 section 3); only one kind exists.
fn server_name(data: &[u8]) -> Option<Result<Vec<u8>, HelloError>> {
    let mut cursor = Cursor::new(data);
    let mut list = Cursor::new(cursor.vector()?);
    if !cursor.is_empty() {
        return None;
    }
    let kind = list.u8()?;
    let name = list.vector()?;
    if kind != 0 || name.is_empty() {
        return None;
    }
    if !list.is_empty() {
        return Some(Err(HelloError::Ambiguous));
    }
    Some(Ok(name.to_vec()))
}

/// A fatal `access_denied` alert in clear: the answer to a ClientHello that a policy refuses (RFC 8446 section 6.2).
pub(crate) const ACCESS_DENIED: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 49];

/// Makes hellos.
#[cfg(test)]
pub(crate) mod make {
    /// A hello with these extensions, in one record.
    pub(crate) fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.push(0);
        body.extend_from_slice(&[0, 2, 0x13, 1, 1, 0]);
        let mut list = Vec::new();
        for (kind, data) in extensions {
            list.extend_from_slice(&kind.to_be_bytes());
            list.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
            list.extend_from_slice(data);
        }
        body.extend_from_slice(&u16::try_from(list.len()).unwrap_or(0).to_be_bytes());
        body.extend_from_slice(&list);
        let mut message = vec![1, 0];
        message.extend_from_slice(&u16::try_from(body.len()).unwrap_or(0).to_be_bytes());
        message.extend_from_slice(&body);
        records(&message, message.len())
    }

    /// A message in records of at most `size` bytes.
    pub(crate) fn records(message: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for fragment in message.chunks(size.max(1)) {
            out.extend_from_slice(&[0x16, 3, 1]);
            out.extend_from_slice(&u16::try_from(fragment.len()).unwrap_or(0).to_be_bytes());
            out.extend_from_slice(fragment);
        }
        out
    }

    /// The server_name extension.
    pub(crate) fn name(name: &[u8]) -> (u16, Vec<u8>) {
        let length = u16::try_from(name.len()).unwrap_or(0);
        let mut data = Vec::from((length + 3).to_be_bytes());
        data.push(0);
        data.extend_from_slice(&length.to_be_bytes());
        data.extend_from_slice(name);
        (0, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(bytes: &[u8]) -> Hello {
        match client_hello(bytes) {
            Ok(Parsed::Done { value, used }) => {
                assert_eq!(used, bytes.len());
                value
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_in_any_fragmentation() {
        let whole = make::hello(&[(10, vec![0, 0]), make::name(b"api.good.test"), (0xfe0d, vec![0; 40])]);
        let want = Hello { name: Some(b"api.good.test".to_vec()), encrypted: true };
        assert_eq!(done(&whole), want);
        for size in 1..whole.len() {
            assert_eq!(done(&make::records(&whole[5..], size)), want, "{size}");
        }
        for end in 0..whole.len() {
            assert_eq!(client_hello(&whole[..end]), Ok(Parsed::Partial), "{end}");
        }
    }

    #[test]
    fn no_name() {
        assert_eq!(done(&make::hello(&[])).name, None);
        assert_eq!(done(&make::hello(&[(10, vec![0, 0])])), Hello { name: None, encrypted: false });
    }

    #[test]
    fn ambiguous_and_malformed_hellos() {
        let twice = make::hello(&[make::name(b"a.test"), make::name(b"b.test")]);
        assert_eq!(client_hello(&twice), Err(HelloError::Ambiguous));
        let (kind, mut list) = make::name(b"a.test");
        list.extend_from_slice(&[0, 0, 1, b'b']);
        list[1] += 4;
        assert_eq!(client_hello(&make::hello(&[(kind, list)])), Err(HelloError::Ambiguous));
        assert_eq!(client_hello(&make::hello(&[(0, vec![0, 9, 0])])), Err(HelloError::Malformed));
        assert_eq!(client_hello(&make::hello(&[(0, vec![])])), Err(HelloError::Malformed));
        let good = make::hello(&[make::name(b"a.test")]);
        let mut longer = good[5..].to_vec();
        longer.extend_from_slice(&[1, 0, 0, 0]);
        assert_eq!(client_hello(&make::records(&longer, longer.len())), Err(HelloError::NotHello));
        assert_eq!(client_hello(b"\x16\x03\x01\x00\x01\x02"), Err(HelloError::NotHello));
        assert_eq!(client_hello(b"\x16\x03\x01\x00\x00"), Err(HelloError::Record));
        assert_eq!(client_hello(b"\x16\x02"), Err(HelloError::Record));
        assert_eq!(client_hello(b"GET"), Err(HelloError::Record));
        assert_eq!(client_hello(b"\x16\x03\x01\x00\x04\x01\xff\xff\xff"), Err(HelloError::TooLong));
        // A record of another kind in the middle.
        let mut broken = make::records(&good[5..], 20);
        broken[25] = 0x17;
        assert_eq!(client_hello(&broken), Err(HelloError::Record));
    }
}
