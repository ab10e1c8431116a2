//! Hosts, ports and destinations, in one canonical form.
//!
//! A destination is made once; it is matched, dialled and logged in that form, so no second reading of the same bytes
//! can differ from the first.

use crate::origin::Origin;
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;

/// A host name in canonical form: A-labels, lower case, no trailing dot, no empty or over-long label (RFC 1035 section
/// 2.3.4: 63 bytes a label, 253 in all), only letters, digits, `-` and `_`; its last label is not numeric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HostName(pub(crate) String);

impl HostName {
    /// The canonical text.
    pub fn as_text(&self) -> &str {
        &self.0
    }
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address; an IPv4 address that came embedded in IPv6 is unwrapped.
    Address(IpAddr),
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

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Which hosts a rule names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPattern {
    /// Exactly this name.
    Exact(HostName),
    /// One or more labels below this name; never the name itself, never an address. Written `*.example.com`.
    Below(HostName),
    /// These addresses, written as an address or in CIDR notation.
    Network(ipnet::IpNet),
    /// Every name; never an address. Written `*`, and only where it is forced.
    Any,
}

/// Which ports a rule names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortSet {
    /// No port was written: 443 and 80 for an allow, every port for a deny.
    Default,
    /// Every port, written `:*`.
    All,
    /// These ports.
    List(Vec<u16>),
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostVerb {
    /// May be reached.
    Allow,
    /// May not be reached; beats every allow.
    Deny,
}

/// One rule over hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which ports.
    pub ports: PortSet,
    /// Allow or deny.
    pub verb: HostVerb,
    /// Private, loopback or link-local networks to which the names of this rule may resolve; metadata services are
    /// never opened by it.
    pub addresses: Vec<ipnet::IpNet>,
    /// Whose word it is.
    pub origin: Origin,
    /// Why, in a few words.
    pub why: Option<String>,
}

/// A port that is carried through the wall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortRule {
    /// The port, the same on both sides.
    pub port: u16,
    /// Whose word it is.
    pub origin: Origin,
}
