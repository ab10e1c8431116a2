//! The policy as its callers see it: tables for each promise, and laws that hold for every policy.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod files;
mod hosts;
mod laws;
mod layers;
mod lints;
mod threats;

use ringfence_policy::*;

fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

fn base() -> Base {
    Base { home: path("/home/u"), workspace: path("/home/u/w"), git_dirs: vec![], uid: 1000 }
}

fn origin(layer: Layer, line: u32) -> Origin {
    let source = match layer {
        Layer::Managed => Source::File("/etc/ringfence/policy.toml".into()),
        Layer::CommandLine => Source::Flag("--flag".into()),
        Layer::User => Source::File("/home/u/.config/ringfence/policy.toml".into()),
        Layer::Project => Source::File("/home/u/w/ringfence.toml".into()),
        Layer::Preset => Source::Preset("test".into()),
        Layer::Builtin => Source::Builtin("test".into()),
    };
    Origin { layer, source, line: Some(line) }
}

/// `+r`, `+w`, `-r`, `-w` and a pattern.
fn path_rule(layer: Layer, text: &str) -> PathRule {
    let (verb, pattern) = text.split_once(' ').unwrap();
    let verb = match verb {
        "+r" => PathVerb::AllowRead,
        "+w" => PathVerb::AllowWrite,
        "-r" => PathVerb::DenyRead,
        "-w" => PathVerb::DenyWrite,
        other => panic!("no verb {other}"),
    };
    PathRule { pattern: PathPattern::parse(pattern).unwrap(), verb, origin: origin(layer, 1), why: None }
}

/// `+` or `-`, and a host rule.
fn host_rule(layer: Layer, text: &str) -> HostRule {
    let (verb, pattern) = text.split_once(' ').unwrap();
    let verb = if verb == "+" { HostVerb::Allow } else { HostVerb::Deny };
    let (host, ports) = HostPattern::parse(pattern, Wide::Forced).unwrap();
    HostRule { host, ports, verb, addresses: vec![], origin: origin(layer, 1), why: None }
}

fn fragment(layer: Layer, paths: &[&str], hosts: &[&str]) -> Fragment {
    let mut fragment = Fragment::empty(layer);
    fragment.paths = paths.iter().map(|text| path_rule(layer, text)).collect();
    fragment.hosts = hosts.iter().map(|text| host_rule(layer, text)).collect();
    fragment
}

fn policy(fragments: Vec<Fragment>) -> Policy {
    merge(&base(), fragments).0
}

fn with_paths(layer: Layer, paths: &[&str]) -> Policy {
    policy(vec![fragment(layer, paths, &[])])
}

fn with_hosts(hosts: &[&str]) -> Policy {
    policy(vec![fragment(Layer::CommandLine, &[], hosts)])
}

fn to(text: &str) -> Destination {
    Destination::parse_authority(text, Some(443), Protocol::Tcp).unwrap()
}
