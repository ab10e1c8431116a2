//! Hosts and destinations in one canonical form, made once from the bytes that a door or a rule received.
//!
//! The parser follows the WHATWG URL standard's host parser where programs do (trailing dot, case, IPv4 spellings), and
//! refuses where it would repair: a byte that no host may hold, percent-encoding, a zone.

use crate::address::unmapped;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host name in canonical form: A-labels, lower case, no trailing dot, no empty or over-long label (RFC 1035 section
/// 2.3.4: 63 bytes a label, 253 in all), only letters, digits, `-` and `_`; its last label is not numeric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HostName(pub(crate) String);

impl HostName {
    /// Parses a name.
    ///
    /// # Errors
    /// As [`Host::parse`]; an address is [`HostError::IsAddress`].
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, HostError> {
        match Host::parse(bytes)? {
            Host::Name(name) => Ok(name),
            Host::Address(_) => Err(HostError::IsAddress),
        }
    }

    /// The canonical text.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// The labels, leftmost first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether this name has one or more labels in front of `apex`; a name is not below itself.
    pub fn is_below(&self, apex: &HostName) -> bool {
        self.0.strip_suffix(apex.0.as_str()).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address; an IPv4 address that came mapped into IPv6 (`::ffff:a.b.c.d`) is unwrapped.
    Address(IpAddr),
}

impl Host {
    /// Parses a host as it came over the wire: a name, an IPv4 address in any spelling that browsers read
    /// (`127.1`, `0x7f.1`, `0177.0.0.1`, `2130706433`), or an IPv6 address with or without brackets.
    ///
    /// # Errors
    /// See [`HostError`]. Bytes that are not a host are never repaired.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, HostError> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return Err(HostError::Empty);
        }
        if bytes.first() == Some(&b'[') || bytes.contains(&b':') {
            return parse_v6(bytes).map(|v6| Self::from_address(IpAddr::V6(v6)));
        }
        let text = name_text(bytes)?;
        let last = text.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return parse_v4(&text).map(|v4| Self::Address(IpAddr::V4(v4)));
        }
        Ok(Self::Name(HostName(text)))
    }

    /// The host of an address, with a mapped IPv4 address unwrapped.
    pub fn from_address(address: IpAddr) -> Self {
        Self::Address(unmapped(address))
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::from_address(address)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&name.0),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// Why bytes are not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing there.
    #[error("the host is empty")]
    Empty,
    /// A byte that no host may hold: NUL, control, space, `%`, `@`, `\`, `#`, `?`, `/`.
    #[error("the host holds the byte 0x{0:02x}, which no host name may hold")]
    ForbiddenByte(u8),
    /// Not ASCII: an A-label is expected.
    #[error("the host is not ASCII; write it as an A-label (xn--...)")]
    NotAscii,
    /// `..`, a leading dot, or a label above 63 bytes.
    #[error("the host has an empty or over-long label")]
    Label,
    /// More than 253 bytes.
    #[error("the host is longer than 253 bytes")]
    TooLong,
    /// The last label is numeric, but the whole is no IPv4 address (WHATWG URL, "ends in a number").
    #[error("the host ends in a number but is no IPv4 address")]
    BadAddress,
    /// An IPv6 address with a zone, or malformed.
    #[error("the IPv6 address is malformed or has a zone")]
    BadIpv6,
    /// An address where only a name may stand.
    #[error("an address stands where a name is expected")]
    IsAddress,
    /// The port is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    BadPort,
    /// No port, where there is no default.
    #[error("the port is missing")]
    NoPort,
}

/// What is spoken to a destination, as far as the door knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// An opaque tunnel: CONNECT, SOCKS5 or a transparent connection.
    Tcp,
    /// A plain HTTP request that the proxy forwards.
    Http,
}

/// A canonical destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Destination {
    /// Whom.
    pub host: Host,
    /// Port, never 0.
    pub port: u16,
    /// How.
    pub protocol: Protocol,
}

impl Destination {
    /// A destination in canonical form.
    ///
    /// # Errors
    /// The port is 0.
    pub fn new(host: Host, port: u16, protocol: Protocol) -> Result<Self, HostError> {
        if port == 0 {
            return Err(HostError::BadPort);
        }
        let host = match host {
            Host::Address(address) => Host::from_address(address),
            name @ Host::Name(_) => name,
        };
        Ok(Self { host, port, protocol })
    }

    /// Parses `host[:port]` as it stands in a request line or a Host header. An IPv6 address must have brackets, since
    /// without them its last group cannot be told from a port (RFC 3986 section 3.2.2).
    ///
    /// # Errors
    /// As [`Host::parse`]; no port while `default_port` is `None`; a port that is no number from 1 to 65535. User
    /// information (`user@host`) is a forbidden byte.
    pub fn parse_authority(
        bytes: impl AsRef<[u8]>,
        default_port: Option<u16>,
        protocol: Protocol,
    ) -> Result<Self, HostError> {
        let (host, port) = split_port(bytes.as_ref())?;
        let host = Host::parse(host)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => default_port.ok_or(HostError::NoPort)?,
        };
        Self::new(host, port, protocol)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits the port off. The host keeps its brackets.
fn split_port(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), HostError> {
    if bytes.first() == Some(&b'[') {
        let close = bytes.iter().position(|&b| b == b']').ok_or(HostError::BadIpv6)?;
        let (host, rest) = bytes.split_at(close + 1);
        return match rest.split_first() {
            None => Ok((host, None)),
            Some((b':', digits)) => Ok((host, Some(digits))),
            Some(_) => Err(HostError::BadIpv6),
        };
    }
    let mut parts = bytes.splitn(2, |&b| b == b':');
    let host = parts.next().unwrap_or_default();
    match parts.next() {
        Some(digits) if digits.contains(&b':') => Err(HostError::BadIpv6),
        digits => Ok((host, digits)),
    }
}

/// A port in decimal digits, at most five, so that no second reader sees another number.
pub(crate) fn parse_port(digits: &[u8]) -> Result<u16, HostError> {
    if digits.is_empty() || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(HostError::BadPort);
    }
    let port = digits.iter().fold(0_u32, |n, d| n * 10 + u32::from(d - b'0'));
    u16::try_from(port).ok().filter(|&p| p != 0).ok_or(HostError::BadPort)
}

fn parse_v6(bytes: &[u8]) -> Result<Ipv6Addr, HostError> {
    let inner = match bytes.strip_prefix(b"[") {
        Some(rest) => rest.strip_suffix(b"]").ok_or(HostError::BadIpv6)?,
        None => bytes,
    };
    // The standard library's parser takes no zone, no brackets and no white space.
    std::str::from_utf8(inner).ok().and_then(|text| text.parse().ok()).ok_or(HostError::BadIpv6)
}

/// Checks bytes and labels, drops one trailing dot, and lower-cases.
fn name_text(bytes: &[u8]) -> Result<String, HostError> {
    // The order of the checks decides only which error is reported; a byte that cannot be there says most.
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {}
            0x80.. => return Err(HostError::NotAscii),
            _ => return Err(HostError::ForbiddenByte(byte)),
        }
    }
    let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
    if bytes.is_empty() {
        return Err(HostError::Empty);
    }
    if bytes.len() > 253 {
        return Err(HostError::TooLong);
    }
    if bytes.split(|&b| b == b'.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(HostError::Label);
    }
    String::from_utf8(bytes.to_ascii_lowercase()).map_err(|_| HostError::NotAscii)
}

/// WHATWG URL, "ends in a number": decimal digits, or `0x` and hexadecimal digits (none is zero).
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || (!label.is_empty() && label.bytes().all(|b| b.is_ascii_digit()))
}

/// WHATWG URL, "IPv4 parser": one to four numbers, the last of which fills the remaining bytes.
fn parse_v4(text: &str) -> Result<Ipv4Addr, HostError> {
    let mut numbers = text.split('.').map(v4_number).collect::<Option<Vec<u64>>>().ok_or(HostError::BadAddress)?;
    let last = numbers.pop().ok_or(HostError::BadAddress)?;
    if numbers.len() > 3 || numbers.iter().any(|&n| n > 255) {
        return Err(HostError::BadAddress);
    }
    let front = numbers.iter().fold(0_u64, |address, n| (address << 8) | n);
    let free_bits = 32 - 8 * numbers.len();
    if last >> free_bits != 0 {
        return Err(HostError::BadAddress);
    }
    u32::try_from((front << free_bits) | last).map(Ipv4Addr::from).map_err(|_| HostError::BadAddress)
}

fn v4_number(label: &str) -> Option<u64> {
    let (digits, radix) = match label.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(hex) => (hex, 16),
        None if label.len() > 1 && label.starts_with('0') => (label, 8),
        None => (label, 10),
    };
    // `from_str_radix` would take a sign.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> String {
        Host::parse(text).unwrap().to_string()
    }

    #[test]
    fn names_become_canonical() {
        assert_eq!(host("API.Good.TEST."), "api.good.test");
        assert_eq!(host("a_b-c.example"), "a_b-c.example");
        assert_eq!(host("localhost"), "localhost");
        assert_eq!(host("1.example1"), "1.example1");
        assert_eq!(host("0xg.0xz"), "0xg.0xz");
    }

    #[test]
    fn every_ipv4_spelling_is_one_address() {
        for text in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0X7F.0x0.1",
            "0177.0.0.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
        ] {
            assert_eq!(host(text), "127.0.0.1", "{text}");
        }
        assert_eq!(host("0x"), "0.0.0.0");
        assert_eq!(host("0"), "0.0.0.0");
    }

    #[test]
    fn what_ends_in_a_number_is_an_address_or_nothing() {
        for text in [
            "256.0.0.1",
            "1.2.3.4.5",
            "a.b.1",
            "a.0x1",
            "09",
            "1.2.3.08",
            "4294967296",
            "1.16777216",
            "a.09",
            "1.2.3.0xfff",
        ] {
            assert_eq!(Host::parse(text), Err(HostError::BadAddress), "{text}");
        }
    }

    #[test]
    fn bytes_that_no_host_may_hold_are_named() {
        for byte in (0_u8..0x21).chain(*b"%@\\#?/<>^|`{}~!$&'()*+,;=\"").chain([0x7f]) {
            let bytes = [b"api.good.test".as_slice(), &[byte], b".evil"].concat();
            assert_eq!(Host::parse(bytes), Err(HostError::ForbiddenByte(byte)), "{byte:#x}");
        }
        assert_eq!(Host::parse("\u{430}pi.good.test"), Err(HostError::NotAscii));
        assert_eq!(Host::parse("\u{ff11}27.0.0.1"), Err(HostError::NotAscii));
    }

    #[test]
    fn lengths_and_labels() {
        assert_eq!(Host::parse(""), Err(HostError::Empty));
        assert_eq!(Host::parse("."), Err(HostError::Empty));
        for text in ["a..b", ".a", "a..", ".."] {
            assert_eq!(Host::parse(text), Err(HostError::Label), "{text}");
        }
        assert_eq!(Host::parse(format!("{}.a", "x".repeat(64))), Err(HostError::Label));
        assert!(Host::parse(format!("{}.a", "x".repeat(63))).is_ok());
        let long = format!("{}.{}.{}.{}", "x".repeat(63), "x".repeat(63), "x".repeat(63), "x".repeat(61));
        assert_eq!(long.len(), 253);
        assert!(Host::parse(&long).is_ok());
        assert!(Host::parse(format!("{long}.")).is_ok());
        assert_eq!(Host::parse(format!("{long}x")), Err(HostError::TooLong));
    }

    #[test]
    fn ipv6_with_and_without_brackets_but_no_zone() {
        assert_eq!(host("[2001:DB8::1]"), "[2001:db8::1]");
        assert_eq!(host("2001:db8:0:0::1"), "[2001:db8::1]");
        for text in [
            "[::1%25lo]",
            "[::1%lo]",
            "::1%lo",
            "[::1",
            "[]",
            "[::1]x",
            "[a]",
            "1::2::3",
            "[::1]]",
            "[[::1]]",
            "[::1\0]",
            "[ ::1]",
            "[127.0.0.1]",
            "a:b",
        ] {
            assert_eq!(Host::parse(text), Err(HostError::BadIpv6), "{text}");
        }
    }

    #[test]
    fn authorities() {
        let parse = |text: &str| Destination::parse_authority(text, Some(80), Protocol::Http).map(|d| d.to_string());
        assert_eq!(parse("Good.Test"), Ok("good.test:80".into()));
        assert_eq!(parse("good.test.:8080"), Ok("good.test:8080".into()));
        assert_eq!(parse("[::1]:1"), Ok("[::1]:1".into()));
        assert_eq!(parse("[::1]"), Ok("[::1]:80".into()));
        assert_eq!(parse("127.1:65535"), Ok("127.0.0.1:65535".into()));
        for text in ["a:", "a:0", "a:65536", "a:+1", "a:-1", "a: 1", "a:1 ", "a:000080", "a:0x50", "[::1]:"] {
            assert_eq!(parse(text), Err(HostError::BadPort), "{text}");
        }
        for text in ["::1", "::1:80", "a:1:2", "[::1]80", "[::1"] {
            assert_eq!(parse(text), Err(HostError::BadIpv6), "{text}");
        }
        assert_eq!(parse("user@good.test"), Err(HostError::ForbiddenByte(b'@')));
        assert_eq!(parse("user:pw@evil.test"), Err(HostError::BadPort));
        assert_eq!(Destination::parse_authority("a", None, Protocol::Tcp), Err(HostError::NoPort));
    }
}
