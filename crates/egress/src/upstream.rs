//! The parent proxy, where the policy names one.
//!
//! Names that go through it are resolved by it, so their addresses cannot be vetted here; what the policy says about the
//! name, and about destinations that are addresses, holds all the same.

use crate::proto::escape;
use ipnet::IpNet;
use ringfence_policy::{Destination, Host, HostName, Protocol, UpstreamProxy};
use std::net::IpAddr;

/// One parent proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) host: Host,
    /// On which port.
    pub(crate) port: u16,
    /// The value of Proxy-Authorization; never logged.
    pub(crate) authorization: Option<String>,
}

/// What goes past the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bypass {
    All,
    /// This name and every name below it.
    Name(HostName),
    Network(IpNet),
}

/// The parent proxies of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Upstream {
    /// For tunnels.
    tunnel: Option<Proxy>,
    /// For plain requests.
    plain: Option<Proxy>,
    bypass: Vec<(Bypass, Option<u16>)>,
}

/// Why a parent proxy cannot be used. Nothing is dialled then: going past it could be what its owner forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Not `http://`.
    #[error("the parent proxy {0} is not of the form http://host:port")]
    Scheme(String),
    /// The authority is none.
    #[error("the parent proxy {0} has no valid host and port")]
    Authority(String),
}

impl Upstream {
    /// The proxies that the policy says, in the launcher's environment where it says so.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn of(rule: Option<&UpstreamProxy>, environment: &[(String, String)]) -> Result<Self, UpstreamError> {
        let Some(rule) = rule else { return Ok(Self::default()) };
        if rule.url != "environment" {
            let proxy = proxy(&rule.url)?;
            return Ok(Self { tunnel: Some(proxy.clone()), plain: Some(proxy), bypass: Vec::new() });
        }
        let variable = |names: &[&str]| {
            names.iter().find_map(|name| {
                let found = environment.iter().find(|(key, value)| key == name && !value.is_empty());
                found.map(|(_, value)| value.as_str())
            })
        };
        let all = ["all_proxy", "ALL_PROXY"];
        let tunnel = variable(&["https_proxy", "HTTPS_PROXY"]).or_else(|| variable(&all)).map(proxy).transpose()?;
        let plain = variable(&["http_proxy", "HTTP_PROXY"]).or_else(|| variable(&all)).map(proxy).transpose()?;
        let bypass = variable(&["no_proxy", "NO_PROXY"]).map(bypasses).unwrap_or_default();
        Ok(Self { tunnel, plain, bypass })
    }

    /// The proxy for a destination.
    pub(crate) fn for_destination(&self, destination: &Destination) -> Option<&Proxy> {
        let proxy = match destination.protocol {
            Protocol::Tcp => self.tunnel.as_ref(),
            Protocol::Http => self.plain.as_ref(),
        }?;
        (!self.bypassed(destination)).then_some(proxy)
    }

    fn bypassed(&self, destination: &Destination) -> bool {
        self.bypass.iter().any(|(bypass, port)| {
            port.is_none_or(|port| port == destination.port)
                && match (bypass, &destination.host) {
                    (Bypass::All, _) => true,
                    (Bypass::Name(apex), Host::Name(name)) => name == apex || name.is_below(apex),
                    (Bypass::Network(network), Host::Address(address)) => network.contains(address),
                    (Bypass::Name(_), Host::Address(_)) | (Bypass::Network(_), Host::Name(_)) => false,
                }
        })
    }
}

fn proxy(url: &str) -> Result<Proxy, UpstreamError> {
    let shown = || {
        let host = url.rsplit('@').next().unwrap_or_default();
        escape(host.as_bytes(), 100)
    };
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some(_) => return Err(UpstreamError::Scheme(shown())),
        None => url,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let destination =
        Destination::parse_authority(host, Some(80), Protocol::Tcp).map_err(|_| UpstreamError::Authority(shown()))?;
    let authorization = user.map(|user| format!("Basic {}", base64(&percent_decode(user))));
    Ok(Proxy { host: destination.host, port: destination.port, authorization })
}

/// Reads NO_PROXY: names with or without a leading dot or `*.`, addresses, networks, each with or without a port. What
/// cannot be read covers nothing.
fn bypasses(list: &str) -> Vec<(Bypass, Option<u16>)> {
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).filter_map(bypass).collect()
}

fn bypass(entry: &str) -> Option<(Bypass, Option<u16>)> {
    if entry == "*" {
        return Some((Bypass::All, None));
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return Some((Bypass::Network(network), None));
    }
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Some((Bypass::Network(address.into()), None));
    }
    let entry = entry.trim_start_matches("*.").trim_start_matches('.');
    let with_port = Destination::parse_authority(entry, None, Protocol::Tcp).ok();
    let (host, port) = match with_port {
        Some(destination) => (destination.host, Some(destination.port)),
        None => (Host::parse(entry).ok()?, None),
    };
    match host {
        Host::Name(name) => Some((Bypass::Name(name), port)),
        Host::Address(address) => Some((Bypass::Network(address.into()), port)),
    }
}

fn percent_decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let decoded = (byte == b'%').then(|| {
            let mut ahead = bytes.clone();
            let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
            let value = digit(ahead.next())? * 16 + digit(ahead.next())?;
            bytes = ahead;
            u8::try_from(value).ok()
        });
        out.push(decoded.flatten().unwrap_or(byte));
    }
    out
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    let digit = |value: u32| -> char {
        match u8::try_from(value & 63).unwrap_or(0) {
            v @ 0..=25 => char::from(b'A' + v),
            v @ 26..=51 => char::from(b'a' + (v - 26)),
            v @ 52..=61 => char::from(b'0' + (v - 52)),
            62 => '+',
            _ => '/',
        }
    };
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        out.push(digit(group >> 18));
        out.push(digit(group >> 12));
        out.push(if chunk.len() > 1 { digit(group >> 6) } else { '=' });
        out.push(if chunk.len() > 2 { digit(group) } else { '=' });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::Origin;

    fn of(url: &str, environment: &[(&str, &str)]) -> Result<Upstream, UpstreamError> {
        let rule = UpstreamProxy { url: url.to_owned(), origin: Origin::flag("--policy") };
        let environment: Vec<_> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Upstream::of(Some(&rule), &environment)
    }

    fn destination(text: &str, protocol: Protocol) -> Destination {
        Destination::parse_authority(text, None, protocol).unwrap()
    }

    #[test]
    fn the_environment_counts_only_when_the_policy_says_so() {
        let environment = [("HTTPS_PROXY".to_owned(), "http://proxy.test:8080".to_owned())];
        assert_eq!(Upstream::of(None, &environment), Ok(Upstream::default()));
    }

    #[test]
    fn environment() {
        let upstream = of(
            "environment",
            &[
                ("HTTPS_PROXY", "http://us%65r:p%40ss@proxy.test:8080/"),
                ("http_proxy", "plain.test"),
                ("NO_PROXY", "internal.test, .corp.test,*.lan.test,10.0.0.0/8,only.test:8443,192.168.1.1"),
            ],
        )
        .unwrap();
        let proxy = upstream.for_destination(&destination("api.test:443", Protocol::Tcp)).unwrap();
        assert_eq!((proxy.host.to_string().as_str(), proxy.port), ("proxy.test", 8080));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        let plain = upstream.for_destination(&destination("api.test:80", Protocol::Http)).unwrap();
        assert_eq!((plain.host.to_string().as_str(), plain.port), ("plain.test", 80));
        for bypassed in [
            "internal.test:443",
            "a.internal.test:443",
            "corp.test:1",
            "x.lan.test:2",
            "10.1.2.3:443",
            "only.test:8443",
            "192.168.1.1:1",
        ] {
            assert_eq!(upstream.for_destination(&destination(bypassed, Protocol::Tcp)), None, "{bypassed}");
        }
        for proxied in ["notinternal.test:443", "internal.test.evil.test:443", "11.0.0.1:443", "only.test:443"] {
            assert!(upstream.for_destination(&destination(proxied, Protocol::Tcp)).is_some(), "{proxied}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_an_error_without_its_password() {
        for url in ["https://user:secret@proxy.test:1", "socks5://user:secret@proxy.test:1"] {
            let error = of(url, &[]).unwrap_err();
            assert_eq!(error, UpstreamError::Scheme("proxy.test:1".to_owned()));
        }
        assert!(of("http://user:secret@pro xy:1", &[]).is_err());
        assert!(of("environment", &[("ALL_PROXY", "socks5h://proxy.test:1080")]).is_err());
    }

    #[test]
    fn base64_vectors() {
        for (plain, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
