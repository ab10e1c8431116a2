//! Authorities: `host[:port]`, as CONNECT, an absolute URI and the Host field carry them.
//!
//! RFC 3986 allows more in an authority than any client of a proxy sends: userinfo, percent-encoding, an empty port. All
//! of it has been read differently by different parsers, so all of it is an error here.

use super::escape;
use ringfence_policy::host::HostError;
use ringfence_policy::{Destination, Protocol};

/// Reads `host:port`, the target of CONNECT, which must name the port (RFC 9110 section 9.3.6).
///
/// # Errors
/// Anything that is not exactly that.
pub(crate) fn connect_target(bytes: &[u8]) -> Result<Destination, HostError> {
    Destination::parse_authority(bytes, None, Protocol::Tcp)
}

/// Why a target is not in the absolute form that a proxy takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TargetError {
    /// No `scheme://` at its start.
    #[error("a proxy takes CONNECT, or a target of the form http://host/path")]
    NotAbsolute,
    /// Another scheme: `https` belongs into a tunnel, where the proxy does not read it.
    #[error("only http:// is forwarded; other schemes go through CONNECT")]
    Scheme,
    /// The authority is none.
    #[error(transparent)]
    Authority(#[from] HostError),
    /// A fragment, which is never sent (RFC 9112 section 3.2).
    #[error("the target holds a fragment")]
    Fragment,
}

/// Reads `http://host[:port][/path][?query]` and answers the destination and what a server is asked for.
///
/// # Errors
/// Anything that is not exactly that.
pub(crate) fn absolute(target: &[u8]) -> Result<(Destination, &[u8]), TargetError> {
    let separator = target.windows(3).position(|w| w == b"://").ok_or(TargetError::NotAbsolute)?;
    let (scheme, rest) = target.split_at_checked(separator).ok_or(TargetError::NotAbsolute)?;
    if scheme.is_empty() || !scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)) {
        return Err(TargetError::NotAbsolute);
    }
    if !scheme.eq_ignore_ascii_case(b"http") {
        return Err(TargetError::Scheme);
    }
    let rest = rest.get(3..).unwrap_or_default();
    if rest.contains(&b'#') {
        return Err(TargetError::Fragment);
    }
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).ok_or(TargetError::NotAbsolute)?;
    Ok((Destination::parse_authority(authority, Some(80), Protocol::Http)?, path))
}

/// Renders a target that could not be read, for the audit line: without a query, without a password.
pub(crate) fn redact(target: &[u8]) -> String {
    let scheme_end = target.windows(3).position(|w| w == b"://").map_or(0, |at| at + 3);
    let rest = target.get(scheme_end..).unwrap_or_default();
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let host = authority.iter().rposition(|b| *b == b'@').and_then(|at| authority.get(at + 1..)).unwrap_or(authority);
    escape(host, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_targets() {
        let text = |bytes: &[u8]| connect_target(bytes).unwrap().to_string();
        assert_eq!(text(b"API.good.test.:443"), "api.good.test:443");
        assert_eq!(text(b"[::1]:8080"), "[::1]:8080");
        // WHATWG spellings become the address that they mean.
        assert_eq!(text(b"0x7f.1:80"), "127.0.0.1:80");
        let (destination, path) = absolute(b"HTTP://Good.test:8080/a?b").unwrap();
        assert_eq!((destination.to_string().as_str(), path), ("good.test:8080", &b"/a?b"[..]));
        let (destination, path) = absolute(b"http://good.test?b").unwrap();
        assert_eq!((destination.to_string().as_str(), path), ("good.test:80", &b"?b"[..]));
    }

    #[test]
    fn everything_else_is_refused() {
        let bad: &[&[u8]] = &[
            b"",
            b":443",
            b"good.test",
            b"good.test:",
            b"good.test:0",
            b"good.test:65536",
            b"good.test:+80",
            b"good.test: 80",
            b"good.test:80 ",
            b"good.test:80:80",
            b"good.test:080000",
            b"user@good.test:443",
            b"user:pw@good.test:443",
            b"good.test@evil.test:443",
            b"a@b@good.test:443",
            b"good.test\\@evil.test:443",
            b"good.test\\.evil.test:443",
            b"good.test#.evil.test:443",
            b"good.test?.evil.test:443",
            b"good.test/.evil.test:443",
            b"good.test\0.evil.test:443",
            b"good.test%00:443",
            b"%67ood.test:443",
            b"good .test:443",
            b"good\t.test:443",
            b"good\r\n.test:443",
            b"good..test:443",
            b".good.test:443",
            b"good.test..:443",
            b"[::1:443",
            b"[::1]443",
            b"[::1%25lo]:443",
            b"[::1%lo]:443",
            b"::1:443",
            b"[good.test]:443",
            b"[127.0.0.1]:443",
            b"[]:443",
            b"http://good.test:443",
            b"good.test:https",
            b"\xff\xfe:443",
            b"\xd0\xb0pi.good.test:443",
            b"1.2.3.4.5:443",
            b"999.1.1.1:443",
            b"good.test,evil.test:443",
            b"*:443",
        ];
        for bytes in bad {
            assert!(connect_target(bytes).is_err(), "{} was read as {:?}", escape(bytes, 80), connect_target(bytes));
        }
    }

    #[test]
    fn absolute_targets_of_another_form_are_refused() {
        for bytes in [
            &b"/path"[..],
            b"*",
            b"good.test:80",
            b"https://good.test/",
            b"ftp://good.test/",
            b"://good.test/",
            b"ht tp://good.test/",
            b"http:///path",
            b"http://@good.test/",
            b"http://good.test@evil.test/",
            b"http://good.test\\@evil.test/",
            b"http://good.test#@evil.test/",
            b"http://good.test/#x",
            b"http://good.test:/",
            b"http://good.test:0/",
            b"http:/good.test/",
            b"http://good.test%2f.evil.test/",
            b"javascript:http://good.test/",
        ] {
            assert!(absolute(bytes).is_err(), "{} was read as {:?}", escape(bytes, 80), absolute(bytes));
        }
    }

    #[test]
    fn a_redacted_target_has_no_password_and_no_query() {
        assert_eq!(redact(b"http://user:secret@evil.test/path?token=x"), "evil.test");
        assert_eq!(redact(b"user:secret@evil.test:443"), "evil.test:443");
        assert_eq!(redact(b"evil.test?key=1"), "evil.test");
        assert_eq!(redact(b"ev\nil"), "ev\\x0ail");
    }
}
