//! What a source may say: a project file that is not trusted only narrows, and some words are not for everybody.

use super::Finding;
use crate::HostVerb;
use crate::fragment::{EnvHost, Fragment};
use crate::origin::{Layer, Origin};
use std::cmp::Ordering;

/// Splits a fragment into what is merged as it is, and what counts only where it is stricter than everybody else's word
/// (nothing, for a source that may widen).
pub(super) fn split(mut fragment: Fragment, findings: &mut Vec<Finding>) -> (Fragment, Option<Fragment>) {
    if fragment.layer != Layer::Managed
        && let Some(ceiling) = fragment.ceiling.take()
    {
        findings.push(Finding {
            code: "RF0302",
            message: "a ceiling counts only in a managed policy".to_owned(),
            origin: ceiling.origin,
            hint: Some("move it to /etc/ringfence/policy.toml".to_owned()),
        });
    }
    if matches!(fragment.layer, Layer::Project | Layer::Preset | Layer::Builtin) {
        for (pattern, origin) in std::mem::take(&mut fragment.unprotect) {
            findings.push(Finding {
                code: "RF0303",
                message: format!("`unprotect` of `{pattern}` counts only in the user's or a managed policy"),
                origin,
                hint: Some("move it to ~/.config/ringfence/policy.toml".to_owned()),
            });
        }
    }
    if fragment.layer != Layer::Project || fragment.trusted {
        return (fragment, None);
    }
    let mut narrows = Fragment::empty(Layer::Project);
    narrows.home = fragment.home.take();
    narrows.limits = std::mem::take(&mut fragment.limits);
    (without_grants(fragment, findings), Some(narrows))
}

/// Keeps denials, protected names and rules over requests, all of which only take away.
fn without_grants(fragment: Fragment, findings: &mut Vec<Finding>) -> Fragment {
    let mut kept = Fragment { trusted: false, ..Fragment::empty(fragment.layer) };
    let mut drop = |what: &str, origin: &Origin| findings.push(dropped(what, origin));
    for rule in fragment.paths {
        if rule.verb.is_deny() {
            kept.paths.push(rule);
        } else {
            drop(&format!("path `{}`", rule.pattern), &rule.origin);
        }
    }
    for rule in fragment.hosts {
        match rule.verb {
            HostVerb::Deny => kept.hosts.push(rule),
            HostVerb::Allow => drop(&format!("host `{rule}`"), &rule.origin),
        }
    }
    for host in &fragment.allow_from_env {
        drop(&format!("host in variable `{}`", host.name), &host.origin);
    }
    kept.protected = fragment.protected;
    kept.requests = fragment.requests;
    kept.env_deny = fragment.env_deny;
    for (name, origin) in &fragment.presets {
        drop(&format!("preset `{name}`"), origin);
    }
    for variable in &fragment.allow_from_env {
        drop(&format!("host in the variable `{}`", variable.name), &variable.origin);
    }
    for copy in &fragment.copies {
        drop(&format!("copy of `{}`", copy.path), &copy.origin);
    }
    for (what, ports) in [("published port", &fragment.publish), ("host port", &fragment.host_ports)] {
        for rule in ports {
            drop(&format!("{what} {}", rule.port), &rule.origin);
        }
    }
    if let Some(upstream) = &fragment.upstream {
        drop("upstream proxy", &upstream.origin);
    }
    for credential in &fragment.credentials {
        drop(&format!("credential `{}`", credential.name), &credential.origin);
    }
    for rule in &fragment.unix {
        drop(&format!("socket `{}`", rule.path), &rule.origin);
    }
    for rule in &fragment.env_pass {
        drop(&format!("variable `{}`", rule.pattern), &rule.origin);
    }
    for entry in &fragment.env_set {
        drop(&format!("variable `{}`", entry.name), &entry.origin);
    }
    for (what, origin) in [("allow_weaker", &fragment.allow_weaker), ("skipping the proof", &fragment.skip_proof)] {
        if let Some(origin) = origin {
            drop(what, origin);
        }
    }
    kept
}

/// The finding about a grant that an untrusted project does not get.
pub(super) fn dropped(what: &str, origin: &Origin) -> Finding {
    Finding {
        code: "RF0301",
        message: format!("{what}: not granted, because this project's policy is not trusted"),
        origin: origin.clone(),
        hint: Some("ringfence trust".to_owned()),
    }
}

/// Every origin in a fragment.
pub(super) fn origins(fragment: &Fragment) -> impl Iterator<Item = &Origin> {
    let paths = fragment.paths.iter().map(|r| &r.origin);
    let hosts = fragment.hosts.iter().map(|r| &r.origin);
    let from_env = fragment.allow_from_env.iter().map(|h| &h.origin);
    let named = fragment.presets.iter().chain(&fragment.unprotect).map(|(_, origin)| origin);
    let home = fragment.home.iter().map(|(_, origin)| origin);
    let protected = fragment.protected.iter().map(|n| &n.origin);
    let env = fragment.env_deny.iter().chain(&fragment.env_pass).map(|r| &r.origin);
    let set = fragment.env_set.iter().map(|s| &s.origin);
    let ports = fragment.publish.iter().chain(&fragment.host_ports).map(|p| &p.origin);
    let other = fragment.unix.iter().map(|u| &u.origin).chain(fragment.ceiling.iter().map(|c| &c.origin));
    paths
        .chain(hosts)
        .chain(from_env)
        .chain(named)
        .chain(home)
        .chain(protected)
        .chain(env)
        .chain(set)
        .chain(ports)
        .chain(other)
}

/// Strongest layer first. Between sources of one layer their names and their contents decide, and not where they stood
/// in the list.
pub(super) fn order(a: &Fragment, b: &Fragment) -> Ordering {
    let by_origin = || origins(a).min().cmp(&origins(b).min());
    // The text is made only for sources that nothing else tells apart.
    let by_text = || format!("{a:?}").cmp(&format!("{b:?}"));
    a.layer.cmp(&b.layer).then_with(by_origin).then_with(by_text)
}

impl Fragment {
    /// The presets that this source names and may have: none for a project that is not trusted.
    pub fn granted_presets(&self) -> &[(String, Origin)] {
        match (self.layer, self.trusted) {
            (Layer::Project, false) => &[],
            _ => &self.presets,
        }
    }

    /// The variables whose values may be made into rules: none for a project that is not trusted.
    pub fn granted_env_hosts(&self) -> &[EnvHost] {
        match (self.layer, self.trusted) {
            (Layer::Project, false) => &[],
            _ => &self.allow_from_env,
        }
    }
}
