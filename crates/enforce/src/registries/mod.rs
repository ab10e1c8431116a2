//! `@npm`, `@pypi`, `@crates`, `@debian`, `@go` and `@maven`: the registries that this machine's own clients are set up for.
//!
//! They are read from the clients' environment and configuration, and where that says nothing the client itself is asked;
//! no registry's name stands in this program. Everything happens outside of the sandbox, only when a policy names a set, and
//! the answer is kept on disk with the files and variables that it came from, so that a later launch only compares them.
//!
//! Configuration inside the workspace is never read, and a client is never started from a folder that the command may write:
//! a repository could otherwise add hosts, or run its own program outside.

mod cache;
mod crates_set;
mod debian;
mod go;
mod ini;
mod look;
mod maven;
mod npm;
mod program;
mod pypi;
mod url;
mod xml;

use look::Look;
use ringfence_policy::{Host, HostPath, HostPattern, HostRule, HostVerb, Origin, PortSet, Source};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The sets that exist.
pub const SETS: [&str; 6] = ["@npm", "@pypi", "@crates", "@debian", "@go", "@maven"];

/// Whether clients may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Where their configuration says nothing.
    Clients,
    /// Never: only files and variables count.
    Nobody,
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The launcher's environment.
    pub env: &'a [(OsString, OsString)],
    /// The real home folder.
    pub home: &'a HostPath,
    /// The workspace and every other folder that the command may write: nothing there is read or started.
    pub untrusted: &'a [HostPath],
    /// The folder that holds `etc` and `usr`; `/`.
    pub system: &'a Path,
    /// Where answers are kept ([`crate::store::Store::registry_cache`]); `None`: nowhere.
    pub cache: Option<&'a HostPath>,
    /// Whether clients may be started.
    pub ask: Ask,
}

/// What a set stands for on this machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resolved {
    /// One allow rule for each host. Empty where no client is installed or none gave an answer.
    pub hosts: Vec<HostRule>,
    /// Registries on this machine's own loopback, to be opened into the sandbox as host ports.
    pub host_ports: Vec<u16>,
    /// Variables with which the client inside finds the same registry although its file in the home is not shown.
    pub env: Vec<(String, String)>,
    /// Where the hosts came from, for `explain`.
    pub sources: Vec<String>,
    /// What could not be found out, and what to do.
    pub findings: Vec<String>,
}

/// Why a set cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// There is no set of this name.
    #[error("there is no set of hosts `{set}`; there are {}", SETS.join(", "))]
    UnknownSet {
        /// The name.
        set: String,
    },
}

/// A host that some client is set up for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    host: String,
    port: u16,
    /// `npm: registry of ~/.npmrc`.
    why: String,
    told: Told,
}

/// Who named a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Told {
    /// The machine's configuration. Such a mirror is often inside the company's network.
    Configuration,
    /// The client, which has it built in.
    Client,
}

/// What one client said; this is what the cache keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Answer {
    places: Vec<Place>,
    env: Vec<(String, String)>,
    sources: Vec<String>,
    findings: Vec<String>,
    /// A client gave no answer in time: not to be kept.
    unsettled: bool,
}

impl Answer {
    /// Adds the host of a URL; `false` when it is none that a rule can name.
    fn add(&mut self, url: &str, why: &str, told: Told) -> bool {
        match url::place(url) {
            Ok(Some((host, port))) => {
                let place = Place { host, port, why: why.to_owned(), told };
                if !self.places.iter().any(|p| p.host == place.host && p.port == place.port) {
                    self.places.push(place);
                }
                self.source(why);
                true
            }
            Ok(None) => false,
            Err(problem) => {
                self.findings.push(format!("{why}: {problem}"));
                false
            }
        }
    }

    fn source(&mut self, why: &str) {
        if !self.sources.iter().any(|s| s == why) {
            self.sources.push(why.to_owned());
        }
    }

    fn gap(&mut self, text: impl Into<String>) {
        self.findings.push(text.into());
    }
}

/// How long a client may think.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resolves a set. `named_by` is the rule that names it: the rules of the set are as strong as that.
///
/// # Errors
/// There is no such set. That a client is missing or silent is no error: the set is empty then, with a finding.
pub fn resolve(set: &str, named_by: &Origin, context: &Context<'_>) -> Result<Resolved, RegistryError> {
    let name = set.strip_prefix('@').unwrap_or(set);
    let client: fn(&mut Look<'_>, &mut Answer) = match name {
        "npm" => npm::find,
        "pypi" => pypi::find,
        "crates" => crates_set::find,
        "debian" => debian::find,
        "go" => go::find,
        "maven" => maven::find,
        _ => return Err(RegistryError::UnknownSet { set: set.to_owned() }),
    };
    let answer = cache::load(name, context).unwrap_or_else(|| {
        let mut look = Look::new(context);
        let mut answer = Answer::default();
        client(&mut look, &mut answer);
        if !answer.unsettled {
            cache::save(name, context, &look, &answer);
        }
        answer
    });
    Ok(rules(name, named_by, answer))
}

fn rules(set: &str, named_by: &Origin, answer: Answer) -> Resolved {
    let mut resolved =
        Resolved { env: answer.env, sources: answer.sources, findings: answer.findings, ..Resolved::default() };
    for place in answer.places {
        let Ok(host) = Host::parse(&place.host) else { continue };
        if is_loopback(&host) {
            if !resolved.host_ports.contains(&place.port) {
                resolved.host_ports.push(place.port);
            }
            continue;
        }
        let named = match host {
            Host::Name(name) => HostPattern::Exact(name),
            Host::Address(address) => HostPattern::Network(address.into()),
        };
        resolved.hosts.push(HostRule {
            host: named,
            // What is fetched by plain HTTP is often redirected to HTTPS.
            ports: if place.port == 80 { PortSet::Default } else { PortSet::List(vec![place.port]) },
            verb: HostVerb::Allow,
            addresses: match place.told {
                Told::Configuration => networks(&[MIRRORS, SHARED]),
                Told::Client => networks(&[MIRRORS]),
            },
            origin: Origin { layer: named_by.layer, source: Source::Machine(place.why.clone()), line: None },
            why: Some(format!("@{set}: {}", place.why)),
        });
    }
    if resolved.hosts.is_empty() && resolved.host_ports.is_empty() && resolved.findings.is_empty() {
        resolved.findings.push(format!("@{set} stands for no host: no client of it is set up on this machine"));
    }
    resolved
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Name(name) => name.as_text() == "localhost" || name.as_text().ends_with(".localhost"),
        Host::Address(address) => address.is_loopback(),
    }
}

/// Where a mirror lives: the networks of RFC 1918 and RFC 4193, and those of RFC 5737 and RFC 3849, which closed networks
/// use because nobody has them. A resolver of such a network leads the registry's own name to its mirror, too. Loopback and
/// link-local addresses, and with them the metadata services, are not among them.
const MIRRORS: &[&str] = &[
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
    "192.0.2.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001:db8::/32",
];
/// The shared network of RFC 6598, in which overlay networks number their hosts: for a mirror that somebody set up.
const SHARED: &[&str] = &["100.64.0.0/10"];

fn networks(lists: &[&[&str]]) -> Vec<ipnet::IpNet> {
    lists.iter().copied().flatten().filter_map(|network| network.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
