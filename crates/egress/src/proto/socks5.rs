//! SOCKS5 (RFC 1928), the server's side: no authentication, CONNECT only.

use super::{Cursor, Parsed};
use ringfence_policy::Host;
use ringfence_policy::host::HostError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why bytes are not a message of a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocksError {
    /// SOCKS4, which has no way to carry a refusal that a client prints.
    #[error("SOCKS4 is not spoken here; use SOCKS5")]
    Version4,
    /// Not SOCKS.
    #[error("not SOCKS5")]
    Version,
    /// The client does not offer to go without authentication.
    #[error("the client wants to authenticate; this proxy takes no password")]
    Method,
    /// BIND or UDP ASSOCIATE.
    #[error("only CONNECT is supported")]
    Command,
    /// An address of an unknown kind.
    #[error("the address is of an unknown kind")]
    AddressKind,
    /// The name is no host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Port 0.
    #[error("the port is 0")]
    Port,
}

/// What a reply says (RFC 1928 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The connection stands.
    Succeeded,
    /// Something else went wrong.
    Failure,
    /// The policy does not allow it.
    NotAllowed,
    /// The name did not resolve, or no address answered.
    HostUnreachable,
    /// The host refused.
    Refused,
    /// Not CONNECT.
    CommandNotSupported,
    /// An address of an unknown kind.
    AddressNotSupported,
}

impl Reply {
    /// The reply's bytes. The bound address is of no use to a client and says nothing.
    pub(crate) fn bytes(self) -> [u8; 10] {
        let code = match self {
            Self::Succeeded => 0,
            Self::Failure => 1,
            Self::NotAllowed => 2,
            Self::HostUnreachable => 4,
            Self::Refused => 5,
            Self::CommandNotSupported => 7,
            Self::AddressNotSupported => 8,
        };
        [5, code, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// The answer to a greeting: no authentication.
pub(crate) const METHOD_NONE: [u8; 2] = [5, 0];
/// The answer to a greeting: no method is acceptable.
pub(crate) const METHOD_REFUSED: [u8; 2] = [5, 0xff];
/// The refusal of SOCKS4.
pub(crate) const VERSION4_REFUSED: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

/// Reads the greeting.
///
/// # Errors
/// Another version, or no acceptable method.
pub(crate) fn greeting(bytes: &[u8]) -> Result<Parsed<()>, SocksError> {
    let mut cursor = Cursor::new(bytes);
    match cursor.u8() {
        None => return Ok(Parsed::Partial),
        Some(5) => {}
        Some(4) => return Err(SocksError::Version4),
        Some(_) => return Err(SocksError::Version),
    }
    let Some(methods) = cursor.short_vector() else { return Ok(Parsed::Partial) };
    if !methods.contains(&0) {
        return Err(SocksError::Method);
    }
    Ok(Parsed::Done { value: (), used: 2 + methods.len() })
}

/// Reads the request.
///
/// # Errors
/// Another command, kind of address, or a name that is no host.
pub(crate) fn request(bytes: &[u8]) -> Result<Parsed<(Host, u16)>, SocksError> {
    let mut cursor = Cursor::new(bytes);
    match cursor.u8() {
        None => return Ok(Parsed::Partial),
        Some(5) => {}
        Some(_) => return Err(SocksError::Version),
    }
    match cursor.u8() {
        None => return Ok(Parsed::Partial),
        Some(1) => {}
        Some(_) => return Err(SocksError::Command),
    }
    let Some(_reserved) = cursor.u8() else { return Ok(Parsed::Partial) };
    let Some(kind) = cursor.u8() else { return Ok(Parsed::Partial) };
    let host = match kind {
        1 => match cursor.take(4).and_then(|b| <[u8; 4]>::try_from(b).ok()) {
            Some(octets) => Host::from_address(IpAddr::V4(Ipv4Addr::from(octets))),
            None => return Ok(Parsed::Partial),
        },
        4 => match cursor.take(16).and_then(|b| <[u8; 16]>::try_from(b).ok()) {
            Some(octets) => Host::from_address(IpAddr::V6(Ipv6Addr::from(octets))),
            None => return Ok(Parsed::Partial),
        },
        3 => match cursor.short_vector() {
            // Read only when the port is there as well, so that the error does not depend on how the bytes arrive.
            Some(name) if cursor.rest().len() >= 2 => Host::parse(name)?,
            _ => return Ok(Parsed::Partial),
        },
        _ => return Err(SocksError::AddressKind),
    };
    let Some(port) = cursor.u16() else { return Ok(Parsed::Partial) };
    if port == 0 {
        return Err(SocksError::Port);
    }
    Ok(Parsed::Done { value: (host, port), used: bytes.len() - cursor.rest().len() })
}

/// The name in a request whose name is no host, for the audit line.
pub(crate) fn requested(bytes: &[u8]) -> &[u8] {
    let mut cursor = Cursor::new(bytes);
    match (cursor.take(3), cursor.u8()) {
        (Some(_), Some(3)) => cursor.short_vector().unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &[u8], port: u16) -> Vec<u8> {
        let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&port.to_be_bytes());
        bytes
    }

    #[test]
    fn greetings() {
        assert_eq!(greeting(&[5]), Ok(Parsed::Partial));
        assert_eq!(greeting(&[5, 2, 2]), Ok(Parsed::Partial));
        assert_eq!(greeting(&[5, 2, 2, 0]), Ok(Parsed::Done { value: (), used: 4 }));
        assert_eq!(greeting(&[5, 1, 2]), Err(SocksError::Method));
        assert_eq!(greeting(&[5, 0]), Err(SocksError::Method));
        assert_eq!(greeting(&[4, 1]), Err(SocksError::Version4));
        assert_eq!(greeting(b"GET"), Err(SocksError::Version));
    }

    #[test]
    fn requests() {
        let good = domain(b"API.Good.test", 443);
        let Ok(Parsed::Done { value: (host, port), used }) = request(&good) else { panic!() };
        assert_eq!((host.to_string().as_str(), port, used), ("api.good.test", 443, good.len()));
        for end in 0..good.len() {
            assert_eq!(request(&good[..end]), Ok(Parsed::Partial), "{end}");
        }
        let Ok(Parsed::Done { value: (host, port), .. }) = request(&[5, 1, 0, 1, 10, 9, 9, 9, 0, 80]) else { panic!() };
        assert_eq!((host.to_string().as_str(), port), ("10.9.9.9", 80));
        // An embedded address is the address that it embeds.
        let mut mapped = vec![5, 1, 0, 4];
        mapped.extend_from_slice(&"::ffff:169.254.169.254".parse::<Ipv6Addr>().unwrap().octets());
        mapped.extend_from_slice(&[0, 80]);
        let Ok(Parsed::Done { value: (host, _), .. }) = request(&mapped) else { panic!() };
        assert_eq!(host.to_string(), "169.254.169.254");
    }

    #[test]
    fn refused_requests() {
        assert_eq!(request(&[5, 2, 0, 1, 1, 1, 1, 1, 0, 80]), Err(SocksError::Command));
        assert_eq!(request(&[5, 3, 0, 1, 1, 1, 1, 1, 0, 80]), Err(SocksError::Command));
        assert_eq!(request(&[5, 1, 0, 9, 1, 1, 1, 1, 0, 80]), Err(SocksError::AddressKind));
        assert_eq!(request(&domain(b"good.test", 0)), Err(SocksError::Port));
        for name in
            [&b"good.test\0.evil.test"[..], b"", b"good test", b"a@b.test", b"good.test%00", b"\xff.test", b"a..b"]
        {
            assert!(
                matches!(request(&domain(name, 443)), Err(SocksError::Host(_))),
                "{}",
                crate::proto::escape(name, 60)
            );
        }
    }
}
