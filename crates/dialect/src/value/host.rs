//! Hosts, ports, networks and proxies.

use super::{Fault, shown};
use crate::codes;
use crate::context::{HOST_SETS, ParseContext};
use crate::suggest::nearest;
use ringfence_policy::host_rule::{HostError, HostPatternError, Wide};
use ringfence_policy::{HostPattern, HostRule, HostVerb, Origin, PortSet};

/// The host and the ports of a rule.
pub(crate) fn rule(text: &str, wide: Wide) -> Result<(HostPattern, PortSet), Fault> {
    HostPattern::parse(text, wide).map_err(|error| {
        let (code, label) = match &error {
            HostPatternError::TooWide { .. } => (codes::HOST_TOO_WIDE, "anybody can own a host that this covers"),
            HostPatternError::Host { error: HostError::BadPort, .. } => (codes::PORT, "the port is impossible"),
            HostPatternError::Host { error, .. } => {
                return fault(codes::HOST, text, &error.to_string(), error_hint(text));
            }
            HostPatternError::Url { .. } => (codes::HOST, "this is a URL"),
            HostPatternError::NotAscii { .. } => (codes::HOST, "not ASCII"),
            HostPatternError::Star { .. } => (codes::HOST, "a star stands only for the whole first label"),
            HostPatternError::LeadingDot { .. } => (codes::HOST, "it begins with a dot"),
            HostPatternError::List { .. } => (codes::HOST, "more than one host"),
            HostPatternError::Network { .. } => (codes::HOST, "no network in CIDR notation"),
            _ => (codes::HOST, "no host"),
        };
        let hint = match &error {
            HostPatternError::TooWide { .. } => Some(format!(
                "name the hosts, or write `{{ rule = \"{}\", force = true }}` in a policy file",
                shown(text)
            )),
            _ => error.hint(),
        };
        fault(code, text, label, hint)
    })
}

fn error_hint(text: &str) -> Option<String> {
    text.contains('/').then(|| "a rule names a host, not a path in it".to_owned())
}

fn fault(code: codes::Code, text: &str, label: &str, hint: Option<String>) -> Fault {
    let message = match code {
        codes::HOST_TOO_WIDE => format!("`{}` is too wide", shown(text)),
        codes::PORT => format!("`{}` names an impossible port", shown(text)),
        _ => format!("`{}` is no host that a rule can name", shown(text)),
    };
    Fault { hint, ..Fault::new(code, message).label(label) }
}

/// The rules that a text of an allow or deny list stands for: one, or those of a set.
pub(crate) enum Meaning {
    /// Rules.
    Rules(Vec<HostRule>),
    /// A set that stands for nothing here, and why.
    Nothing(String),
}

/// Reads an entry of an allow or deny list.
pub(crate) fn meaning(
    text: &str,
    verb: HostVerb,
    wide: Wide,
    origin: &Origin,
    why: Option<&str>,
    context: &ParseContext<'_>,
) -> Result<Meaning, Fault> {
    let Some(set) = text.strip_prefix('@') else {
        let (host, ports) = rule(text, wide)?;
        let (origin, why) = (origin.clone(), why.map(str::to_owned));
        return Ok(Meaning::Rules(vec![HostRule { host, ports, verb, addresses: Vec::new(), origin, why }]));
    };
    if !HOST_SETS.contains(&set) {
        let known = HOST_SETS.iter().map(|s| format!("`@{s}`")).collect::<Vec<_>>().join(", ");
        let near = set.split(':').next().and_then(|set| nearest(set, HOST_SETS));
        let label = near.map_or("no such set".to_owned(), |near| format!("did you mean `@{near}`?"));
        let fault = Fault::new(codes::SET_UNKNOWN, format!("unknown set of hosts `{}`", shown(text))).label(label);
        return Err(fault.hint(format!("sets: {known}")));
    }
    Ok(match (context.resolve_set)(set) {
        Err(why) => Meaning::Nothing(why),
        Ok(rules) if rules.is_empty() => Meaning::Nothing("its client names no registry".to_owned()),
        Ok(rules) => Meaning::Rules(
            rules
                .into_iter()
                .map(|rule| HostRule {
                    verb,
                    // Whose word it is, is whoever wrote `@npm`; what the machine's client said is the reason.
                    origin: origin.clone(),
                    why: rule
                        .why
                        .or_else(|| why.map(str::to_owned))
                        .or_else(|| Some(format!("@{set} on this machine"))),
                    ..rule
                })
                .collect(),
        ),
    })
}

/// A port.
pub(crate) fn port(number: Option<u64>) -> Result<u16, Fault> {
    match number.and_then(|n| u16::try_from(n).ok()) {
        Some(port) if port != 0 => Ok(port),
        _ => Err(Fault::new(codes::PORT, "the port is impossible").label("ports go from 1 to 65535")),
    }
}

/// A host without a port.
pub(crate) fn host_only(text: &str, wide: Wide) -> Result<HostPattern, Fault> {
    match rule(text, wide)? {
        (host, PortSet::Default) => Ok(host),
        (_, PortSet::All | PortSet::List(_)) => {
            Err(fault(codes::HOST, text, "a host without a port is needed here", None))
        }
    }
}

/// The parent proxy: `environment` or `http://host:port`.
pub(crate) fn upstream(text: &str) -> Result<String, Fault> {
    if text == "environment" {
        return Ok(text.to_owned());
    }
    let malformed = |label: &str| {
        Fault::new(codes::UPSTREAM, format!("`{}` is no parent proxy", shown(text.rsplit('@').next().unwrap_or(""))))
            .label(label)
            .hint("write `http://host:port`, or `environment` for the launcher's own proxy variables")
    };
    let Some(rest) = text.strip_prefix("http://") else {
        return Err(malformed("only `http://` proxies can be spoken to"));
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains('@') {
        return Err(malformed("no name or password here"));
    }
    match HostPattern::parse(rest, Wide::Refused) {
        Ok((host @ (HostPattern::Exact(_) | HostPattern::Network(_)), PortSet::List(ports))) => {
            match ports.as_slice() {
                [port] if !rest.contains('/') => Ok(match (&host, rest.starts_with('[')) {
                    (HostPattern::Network(_), true) => format!("http://[{host}]:{port}"),
                    _ => format!("http://{host}:{port}"),
                }),
                _ => Err(malformed("one host and one port")),
            }
        }
        Ok(_) => Err(malformed("a host and a port, `proxy.example.com:3128`")),
        Err(error) => Err(malformed(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_hosts_have_codes_and_hints() {
        for (text, code) in [
            ("https://api.example.com/v1", codes::HOST),
            ("", codes::HOST),
            ("a..b", codes::HOST),
            (".example.com", codes::HOST),
            ("a*.example.com", codes::HOST),
            ("a.example.com,b.example.com", codes::HOST),
            ("api.example.com/v1", codes::HOST),
            ("10.0.0.1/8", codes::HOST),
            ("exämple.com", codes::HOST),
            ("a\0.com", codes::HOST),
            ("example.com:0", codes::PORT),
            ("example.com:65536", codes::PORT),
            ("example.com:x", codes::PORT),
            ("*", codes::HOST_TOO_WIDE),
            ("*.com", codes::HOST_TOO_WIDE),
            ("0.0.0.0/0", codes::HOST_TOO_WIDE),
        ] {
            let fault = rule(text, Wide::Refused).unwrap_err();
            assert_eq!(fault.code, code, "{text}: {fault:?}");
            assert!(!fault.label.is_empty(), "{text}");
        }
        assert!(rule("*", Wide::Forced).is_ok());
        assert_eq!(host_only("a.example.com:443", Wide::Refused).unwrap_err().code, codes::HOST);
    }

    #[test]
    fn parent_proxies() {
        for (text, url) in [
            ("environment", "environment"),
            ("http://Proxy.Example.com:3128", "http://proxy.example.com:3128"),
            ("http://10.1.2.3:8080/", "http://10.1.2.3:8080"),
        ] {
            assert_eq!(upstream(text).as_deref(), Ok(url), "{text}");
        }
        for text in [
            "",
            "proxy:3128",
            "https://proxy:3128",
            "socks5://proxy:1080",
            "http://proxy",
            "http://u:p@proxy:3128",
            "http://proxy:3128/path",
            "http://*.example.com:3128",
            "http://10.0.0.0/8:3128",
            "http://proxy:*",
        ] {
            assert_eq!(upstream(text).unwrap_err().code, codes::UPSTREAM, "{text}");
        }
        assert!(!upstream("http://u:secret@proxy:3128").unwrap_err().message.contains("secret"));
    }

    #[test]
    fn ports() {
        assert_eq!(port(Some(65535)).unwrap(), 65535);
        for bad in [None, Some(0), Some(65536), Some(u64::MAX)] {
            assert_eq!(port(bad).unwrap_err().code, codes::PORT);
        }
    }
}
