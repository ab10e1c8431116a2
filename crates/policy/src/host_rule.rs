//! Rules over hosts: which names, addresses and ports one rule names.
//!
//! A destination is made once; it is matched, dialled and logged in that form, so no second reading of the same bytes
//! can differ from the first.

pub use crate::host::{Destination, Host, HostError, HostName, Protocol};

use crate::host::parse_port;
use crate::index::{Key, Keyed};
use crate::origin::Origin;
use crate::{public_suffix, punycode};
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;

/// Which hosts a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPattern {
    /// Exactly this name.
    Exact(HostName),
    /// One or more labels below this name; never the name itself, never an address. Written `*.example.com`.
    Below(HostName),
    /// These addresses, written as an address or in CIDR notation.
    Network(ipnet::IpNet),
    /// Every name, written `*`, and only where it is forced. An allow of it never covers an address; a deny covers all.
    Any,
}

/// Which ports a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortSet {
    /// No port was written: 443 and 80 for an allow, every port for a deny.
    Default,
    /// Every port, written `:*`.
    All,
    /// These ports.
    List(Vec<u16>),
}

/// The ports of an allow rule that names none.
pub const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

/// Whether a pattern that covers hosts of strangers is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wide {
    /// `*`, `*.com`, `*.github.io`, `0.0.0.0/0` are errors: right for an allow.
    Refused,
    /// They are taken: right for a deny, and for an allow that says so in other words as well.
    Forced,
}

/// Why the text of a host rule is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// The host itself is not one.
    #[error("`{text}`: {error}")]
    Host {
        /// The text.
        text: String,
        /// Why.
        error: HostError,
    },
    /// Not ASCII.
    #[error("`{text}` is not ASCII")]
    NotAscii {
        /// The text.
        text: String,
        /// The same name in A-labels, where it has one.
        ascii: Option<String>,
    },
    /// A URL stands where a host is expected.
    #[error("`{text}` is a URL; a rule names a host")]
    Url {
        /// The text.
        text: String,
        /// The host in it.
        host: String,
    },
    /// A star that is not the whole first label.
    #[error("`{text}`: a star can stand only for the whole first label")]
    Star {
        /// The text.
        text: String,
    },
    /// A leading dot, which some programs read as a wildcard.
    #[error("`{text}` begins with a dot")]
    LeadingDot {
        /// The text.
        text: String,
    },
    /// More than one host.
    #[error("`{text}` names more than one host")]
    List {
        /// The text.
        text: String,
    },
    /// The pattern covers hosts of strangers.
    #[error("`{text}` covers hosts that belong to anybody")]
    TooWide {
        /// The text.
        text: String,
    },
    /// The network is not one.
    #[error("`{text}` is not a network in CIDR notation")]
    Network {
        /// The text.
        text: String,
        /// The network that was probably meant.
        meant: Option<String>,
    },
}

impl HostPatternError {
    /// What to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Host { error: HostError::BadPort, .. } => {
                Some("one port from 1 to 65535 after the colon, or `:*` for all".to_owned())
            }
            Self::Host { error: HostError::BadIpv6, .. } => {
                Some("an IPv6 address stands in brackets when a port follows: `[2001:db8::1]:443`".to_owned())
            }
            Self::Host { .. } => None,
            Self::NotAscii { ascii, .. } => ascii.as_ref().map(|name| format!("write `{name}`")),
            Self::Url { host, .. } => Some(format!("write `{host}`")),
            Self::Star { .. } => Some("`*.example.com` covers every name below example.com".to_owned()),
            Self::LeadingDot { text } => Some(format!("write `*{text}` for the names below it")),
            Self::List { .. } => Some("write one rule for each host".to_owned()),
            Self::TooWide { .. } => Some("name the hosts, or force the rule".to_owned()),
            Self::Network { meant, .. } => meant.as_ref().map(|net| format!("write `{net}`")),
        }
    }
}

impl HostPattern {
    /// Parses the host and the ports of a rule: `host`, `host:port`, `host:*`, `*.example.com`, `10.0.0.0/8`,
    /// `[2001:db8::1]:443`, `[2001:db8::/32]:443`, `*`.
    ///
    /// # Errors
    /// See [`HostPatternError`], whose `hint` says what to write.
    pub fn parse(text: &str, wide: Wide) -> Result<(Self, PortSet), HostPatternError> {
        let owned = || text.to_owned();
        if !text.is_ascii() {
            return Err(HostPatternError::NotAscii { text: owned(), ascii: punycode::host_to_ascii(text) });
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return Err(HostPatternError::Url { text: owned(), host: host.to_owned() });
        }
        if text.contains([',', ' ', ';']) {
            return Err(HostPatternError::List { text: owned() });
        }
        if text.starts_with('.') {
            return Err(HostPatternError::LeadingDot { text: owned() });
        }
        let (host, port) = split_rule(text);
        let ports = match port {
            None => PortSet::Default,
            Some("*") => PortSet::All,
            Some(digits) => match parse_port(digits.as_bytes()) {
                Ok(port) => PortSet::List(vec![port]),
                Err(error) => return Err(HostPatternError::Host { text: owned(), error }),
            },
        };
        Ok((Self::parse_host(text, host, wide)?, ports))
    }

    fn parse_host(text: &str, host: &str, wide: Wide) -> Result<Self, HostPatternError> {
        let owned = || text.to_owned();
        let too_wide = |is_wide: bool, pattern: Self| match wide {
            Wide::Refused if is_wide => Err(HostPatternError::TooWide { text: owned() }),
            Wide::Refused | Wide::Forced => Ok(pattern),
        };
        if host == "*" {
            return too_wide(true, Self::Any);
        }
        if let Some((address, length)) = host.split_once('/') {
            let network = parse_network(text, address, length)?;
            return too_wide(network.prefix_len() == 0, Self::Network(network));
        }
        let (star, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host),
        };
        if name.contains('*') {
            return Err(HostPatternError::Star { text: owned() });
        }
        match Host::parse(name) {
            Ok(Host::Name(name)) if star => {
                too_wide(public_suffix::is_public_suffix(name.as_text()), Self::Below(name))
            }
            Ok(Host::Name(name)) => Ok(Self::Exact(name)),
            Ok(Host::Address(_)) if star => Err(HostPatternError::Host { text: owned(), error: HostError::IsAddress }),
            Ok(Host::Address(address)) => Ok(Self::Network(ipnet::IpNet::from(address))),
            Err(error) => Err(HostPatternError::Host { text: owned(), error }),
        }
    }

    /// Whether this pattern of a rule with `verb` names the host. An address is compared as an address: no name pattern
    /// covers it, but for a deny of everything.
    pub fn matches(&self, host: &Host, verb: HostVerb) -> bool {
        match (self, host) {
            (Self::Exact(name), Host::Name(host)) => name == host,
            (Self::Below(apex), Host::Name(host)) => host.is_below(apex),
            (Self::Network(network), Host::Address(address)) => network.contains(address),
            (Self::Any, Host::Name(_)) => true,
            (Self::Any, Host::Address(_)) => verb == HostVerb::Deny,
            (Self::Exact(_) | Self::Below(_), Host::Address(_)) | (Self::Network(_), Host::Name(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Below(apex) => write!(f, "*.{apex}"),
            Self::Any => f.write_str("*"),
            Self::Network(network) => {
                let single = network.prefix_len() == network.max_prefix_len();
                match (network.addr(), single) {
                    (IpAddr::V4(v4), true) => v4.fmt(f),
                    (IpAddr::V4(_), false) => network.fmt(f),
                    (IpAddr::V6(v6), true) => write!(f, "[{v6}]"),
                    (IpAddr::V6(_), false) => write!(f, "[{network}]"),
                }
            }
        }
    }
}

impl PortSet {
    /// Whether a rule with `verb` covers the port.
    pub fn covers(&self, port: u16, verb: HostVerb) -> bool {
        match self {
            Self::All => true,
            Self::List(ports) => ports.contains(&port),
            Self::Default => verb == HostVerb::Deny || DEFAULT_PORTS.contains(&port),
        }
    }
}

impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::All => f.write_str(":*"),
            Self::List(ports) => {
                for (i, port) in ports.iter().enumerate() {
                    write!(f, "{}{port}", if i == 0 { ':' } else { ',' })?;
                }
                Ok(())
            }
        }
    }
}

impl HostRule {
    /// Whether the rule names this destination, port included.
    pub fn covers(&self, destination: &Destination) -> bool {
        self.host.matches(&destination.host, self.verb) && self.ports.covers(destination.port, self.verb)
    }
}

impl Keyed for HostRule {
    fn key(&self) -> Option<Key> {
        match &self.host {
            HostPattern::Exact(name) | HostPattern::Below(name) => Some(Key::of_name(name)),
            HostPattern::Network(_) | HostPattern::Any => None,
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.host, self.ports)
    }
}

/// Splits `host[:port]`. More than one colon outside of brackets is an IPv6 address or network without a port.
fn split_rule(text: &str) -> (&str, Option<&str>) {
    if let Some(rest) = text.strip_prefix('[')
        && let Some((inner, tail)) = rest.split_once(']')
    {
        // `[address/length]` is ours; the host parser knows only `[address]`.
        let bracketed = text.strip_suffix(tail).unwrap_or(text);
        let host = if inner.contains('/') { inner } else { bracketed };
        return match tail.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if tail.is_empty() => (host, None),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Parses a network. Bits behind the prefix are an error: `10.1.2.3/8` may mean the network or the one address.
pub(crate) fn parse_network(text: &str, address: &str, length: &str) -> Result<ipnet::IpNet, HostPatternError> {
    let malformed = |meant: Option<String>| HostPatternError::Network { text: text.to_owned(), meant };
    let address: IpAddr = address.parse().map_err(|_| malformed(None))?;
    // The length is a number of one to three digits; a sign or a net mask is something else.
    if length.is_empty() || length.len() > 3 || !length.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed(None));
    }
    let length: u8 = length.parse().map_err(|_| malformed(None))?;
    let network = ipnet::IpNet::new(address, length).map_err(|_| malformed(None))?;
    if network.addr() != network.network() {
        return Err(malformed(Some(network.trunc().to_string())));
    }
    Ok(unmapped_network(network))
}

/// A network inside `::ffff:0:0/96` as the IPv4 network that it is, because destinations are unwrapped, too.
fn unmapped_network(network: ipnet::IpNet) -> ipnet::IpNet {
    let ipnet::IpNet::V6(v6) = network else { return network };
    let short = v6.prefix_len().checked_sub(96).zip(v6.addr().to_ipv4_mapped());
    short.and_then(|(length, v4)| ipnet::Ipv4Net::new(v4, length).ok()).map_or(network, ipnet::IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> String {
        let (host, ports) = HostPattern::parse(text, Wide::Refused).unwrap();
        format!("{host}{ports}")
    }

    fn matches(pattern: &str, host: &str) -> bool {
        HostPattern::parse(pattern, Wide::Forced).unwrap().0.matches(&Host::parse(host).unwrap(), HostVerb::Allow)
    }

    #[test]
    fn rules_become_canonical() {
        for (text, canonical) in [
            ("Example.COM.", "example.com"),
            ("example.com:22", "example.com:22"),
            ("example.com:*", "example.com:*"),
            ("*.Example.com", "*.example.com"),
            ("*.example.com:8443", "*.example.com:8443"),
            ("127.1:80", "127.0.0.1:80"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("2001:db8::/32", "[2001:db8::/32]"),
            ("[2001:db8::/32]:*", "[2001:db8::/32]:*"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("[::ffff:10.0.0.1]:1", "10.0.0.1:1"),
        ] {
            assert_eq!(rule(text), canonical, "{text}");
            assert_eq!(rule(canonical), canonical, "{text}");
        }
    }

    #[test]
    fn wildcards_stop_at_labels() {
        assert!(matches("*.github.com", "api.github.com"));
        assert!(matches("*.github.com", "a.b.github.com"));
        for host in ["github.com", "evilgithub.com", "github.com.evil.test", "xgithub.com", "127.0.0.1"] {
            assert!(!matches("*.github.com", host), "{host}");
        }
        assert!(matches("*", "a.test"));
        assert!(!matches("*", "8.8.8.8"));
        assert!(!matches("*", "[2001:db8::1]"));
        let any = HostPattern::Any;
        assert!(any.matches(&Host::parse("8.8.8.8").unwrap(), HostVerb::Deny));
    }

    #[test]
    fn patterns_of_strangers_need_force() {
        for text in
            ["*", "*:443", "*.com", "*.co.uk", "*.github.io", "*.s3.amazonaws.com", "0.0.0.0/0", "::/0", "*.localhost"]
        {
            assert!(matches!(HostPattern::parse(text, Wide::Refused), Err(HostPatternError::TooWide { .. })), "{text}");
            assert!(HostPattern::parse(text, Wide::Forced).is_ok(), "{text}");
        }
        assert!(HostPattern::parse("*.example.co.uk", Wide::Refused).is_ok());
        assert!(HostPattern::parse("user.github.io", Wide::Refused).is_ok());
    }

    #[test]
    fn what_is_no_rule_says_what_to_write() {
        for (text, hint) in [
            ("https://example.com/path", Some("write `example.com`")),
            ("b\u{fc}cher.example", Some("write `xn--bcher-kva.example`")),
            ("a.example,b.example", Some("write one rule for each host")),
            (".example.com", Some("write `*.example.com` for the names below it")),
            ("**.example.com", Some("`*.example.com` covers every name below example.com")),
            ("a.*.example.com", Some("`*.example.com` covers every name below example.com")),
            ("api*.example.com", Some("`*.example.com` covers every name below example.com")),
            ("10.1.2.3/8", Some("write `10.0.0.0/8`")),
            ("example.com:0", Some("one port from 1 to 65535 after the colon, or `:*` for all")),
            ("example.com:", Some("one port from 1 to 65535 after the colon, or `:*` for all")),
            ("example.com:80-90", Some("one port from 1 to 65535 after the colon, or `:*` for all")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/+8", None),
            ("example.com/path", None),
            ("*.127.0.0.1", None),
            ("user@example.com", None),
            ("", None),
        ] {
            let error = HostPattern::parse(text, Wide::Refused).unwrap_err();
            assert_eq!(error.hint().as_deref(), hint, "{text}: {error}");
        }
    }

    #[test]
    fn ports() {
        assert!(PortSet::Default.covers(443, HostVerb::Allow) && PortSet::Default.covers(80, HostVerb::Allow));
        for port in [22, 25, 6379] {
            assert!(!PortSet::Default.covers(port, HostVerb::Allow), "{port}");
            assert!(PortSet::Default.covers(port, HostVerb::Deny), "{port}");
            assert!(PortSet::All.covers(port, HostVerb::Allow), "{port}");
        }
        assert!(!PortSet::List(vec![22]).covers(443, HostVerb::Allow));
        assert!(!PortSet::List(vec![22]).covers(443, HostVerb::Deny));
    }
}
