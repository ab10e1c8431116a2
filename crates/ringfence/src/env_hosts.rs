//! Hosts that the launcher's environment names: a preset says which variables, such as `ANTHROPIC_BASE_URL`, and their
//! value is the user's own word on where the tool shall connect.

use ringfence_dialect::{Diagnostic, codes};
use ringfence_policy::host_rule::Wide;
use ringfence_policy::{Fragment, HostPattern, HostRule, HostVerb, Layer, Origin, PortRule, PortSet, Source};
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What the variables that the fragments name add; nothing is looked at that no fragment names.
pub(crate) fn read(fragments: &[Fragment], env: &[(OsString, OsString)]) -> (Fragment, Vec<Diagnostic>) {
    let mut found = Fragment::empty(Layer::CommandLine);
    let mut warnings = Vec::new();
    let mut names: Vec<&str> = fragments
        .iter()
        .filter(|fragment| fragment.layer != Layer::Project || fragment.trusted)
        .flat_map(|fragment| fragment.allow_from_env.iter().map(|variable| variable.name.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        // The last of several with one name counts, as in a shell.
        let Some((_, value)) = env.iter().rev().find(|(n, _)| n == name) else { continue };
        if value.is_empty() {
            continue;
        }
        match value.to_str().and_then(authority) {
            Some((host, port)) => add(&mut found, name, host, port, &mut warnings),
            None => warnings.push(Diagnostic::warning(
                codes::HOST,
                format!("the variable {name} is no URL with a host, so it opens none"),
            )),
        }
    }
    (found, warnings)
}

fn add(found: &mut Fragment, name: &str, host: &str, port: u16, warnings: &mut Vec<Diagnostic>) {
    let origin = Origin { layer: Layer::CommandLine, source: Source::Machine(name.to_owned()), line: None };
    if is_loopback(host) {
        found.host_ports.push(PortRule { port, origin });
        return;
    }
    match HostPattern::parse(host, Wide::Refused) {
        // A variable names one host, never a family of them.
        Ok((host @ (HostPattern::Exact(_) | HostPattern::Network(_)), PortSet::Default)) => {
            found.hosts.push(HostRule {
                host,
                ports: PortSet::List(vec![port]),
                verb: HostVerb::Allow,
                addresses: Vec::new(),
                origin,
                why: Some("where the tool is told to connect".to_owned()),
            })
        }
        Ok(_) => warnings.push(Diagnostic::warning(codes::HOST, format!("the variable {name} names no single host"))),
        Err(error) => warnings.push(Diagnostic::warning(codes::HOST, format!("the variable {name}: {error}"))),
    }
}

/// Whether the host is this machine, where its own servers listen: inside, that is a port of the host.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse() == Ok(Ipv4Addr::LOCALHOST)
        || bare.parse() == Ok(Ipv6Addr::LOCALHOST)
}

/// Host and port of `http://` and `https://` URLs (RFC 3986 section 3.2). User information is refused: it is a secret
/// that the tool would send, and a way to make one host look like another.
fn authority(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let default = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    if authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.rsplit_once(':') {
        // The colons inside of brackets belong to the address.
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok().filter(|port| *port != 0)?),
        _ => (authority, default),
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::fragment::EnvHost;

    fn asked(names: &[&str]) -> Vec<Fragment> {
        let mut preset = Fragment::empty(Layer::Preset);
        let origin = Origin { layer: Layer::Preset, source: Source::Preset("p".to_owned()), line: None };
        preset.allow_from_env =
            names.iter().map(|n| EnvHost { name: (*n).to_owned(), origin: origin.clone() }).collect();
        vec![preset]
    }

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(n, v)| (n.into(), v.into())).collect()
    }

    #[test]
    fn authorities() {
        for (url, wanted) in [
            ("https://api.test", Some(("api.test", 443))),
            ("http://api.test/v1?x=1", Some(("api.test", 80))),
            ("HTTPS://api.test:8443/", Some(("api.test", 8443))),
            ("http://[::1]:9/", Some(("[::1]", 9))),
            ("http://[::1]/", Some(("[::1]", 80))),
            ("https://good.test\\@evil.test/", Some(("good.test", 443))),
            ("https://user:key@evil.test/", None),
            ("https://a.test:0", None),
            ("https://a.test:99999", None),
            ("https:///path", None),
            ("ftp://a.test", None),
            ("api.test", None),
            ("", None),
        ] {
            assert_eq!(authority(url), wanted, "{url}");
        }
    }

    #[test]
    fn only_named_variables_count() {
        let env = env(&[("A_URL", "https://a.test"), ("B_URL", "https://b.test:8443")]);
        let (found, warnings) = read(&asked(&["B_URL"]), &env);
        assert!(warnings.is_empty());
        assert_eq!(found.hosts.len(), 1);
        assert_eq!(found.hosts[0].ports, PortSet::List(vec![8443]));
        assert_eq!(found.hosts[0].origin.source, Source::Machine("B_URL".to_owned()));
    }

    #[test]
    fn this_machine_is_a_host_port() {
        for url in ["http://127.0.0.1:8080/v1", "http://localhost:8080", "http://[::1]:8080"] {
            let (found, _) = read(&asked(&["A_URL"]), &env(&[("A_URL", url)]));
            assert_eq!(found.host_ports.iter().map(|p| p.port).collect::<Vec<_>>(), [8080], "{url}");
            assert!(found.hosts.is_empty());
        }
    }

    #[test]
    fn a_variable_opens_one_host_or_none() {
        for url in ["https://*", "https://*.com", "https://*.a.test", "https://10.0.0.0%2f8/", "no url", "https://"] {
            let (found, warnings) = read(&asked(&["A_URL"]), &env(&[("A_URL", url)]));
            assert!(found.hosts.is_empty() && found.host_ports.is_empty(), "{url}: {found:?}");
            assert_eq!(warnings.len(), 1, "{url}");
        }
    }

    #[test]
    fn a_project_that_is_not_trusted_opens_nothing() {
        let mut project = asked(&["A_URL"]).remove(0);
        project.layer = Layer::Project;
        project.trusted = false;
        let (found, _) = read(&[project], &env(&[("A_URL", "https://a.test")]));
        assert!(found.hosts.is_empty());
    }
}
