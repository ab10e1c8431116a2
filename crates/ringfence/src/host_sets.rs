//! The sets of hosts that stand for the registries of this machine's own package clients.

use crate::place::Place;
use ringfence_dialect::SetAnswer;
use ringfence_enforce::registries::{self, Ask, Context, Resolved};
use ringfence_enforce::store::Store;
use ringfence_policy::env_rule::EnvSet;
use ringfence_policy::{Fragment, HostPath, Layer, Origin, PortRule, Source};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

/// Asks for sets, each at most once a run, and only those that a policy names.
pub(crate) struct Sets<'a> {
    place: &'a Place,
    env: &'a [(OsString, OsString)],
    cache: HostPath,
    answers: RefCell<BTreeMap<String, Result<Resolved, String>>>,
    /// Sets that a source names which may widen.
    granted: RefCell<BTreeSet<String>>,
}

/// Whether the source that names a set may widen a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// It may.
    Trusted,
    /// It may only deny the set's hosts.
    Untrusted,
}

impl<'a> Sets<'a> {
    pub(crate) fn new(place: &'a Place, store: &Store, env: &'a [(OsString, OsString)]) -> Self {
        Self { place, env, cache: store.registry_cache(), answers: RefCell::default(), granted: RefCell::default() }
    }

    /// The rules of a set, named without its `@`.
    pub(crate) fn resolve(&self, name: &str, by: NamedBy) -> SetAnswer {
        if by == NamedBy::Trusted {
            self.granted.borrow_mut().insert(name.to_owned());
        }
        let mut answers = self.answers.borrow_mut();
        let answer = answers.entry(name.to_owned()).or_insert_with(|| self.ask(name));
        match answer {
            Ok(found) if found.hosts.is_empty() && found.host_ports.is_empty() => Err(found.findings.join("; ")),
            Ok(found) => Ok(found.hosts.clone()),
            Err(why) => Err(why.clone()),
        }
    }

    fn ask(&self, name: &str) -> Result<Resolved, String> {
        let context = Context {
            env: self.env,
            home: &self.place.home,
            untrusted: std::slice::from_ref(&self.place.workspace),
            system: Path::new("/"),
            cache: Some(&self.cache),
            ask: Ask::Clients,
        };
        registries::resolve(&format!("@{name}"), &machine(name), &context).map_err(|error| error.to_string())
    }

    /// What the sets bring beyond hosts: registries on this machine's own loopback, and the variables with which a client
    /// finds its registry although its file in the home is not shown.
    pub(crate) fn fragment(&self) -> Fragment {
        let mut fragment = Fragment::empty(Layer::Builtin);
        let granted = self.granted.borrow();
        for (name, found) in self.answers.borrow().iter().filter(|(name, _)| granted.contains(*name)) {
            let Ok(found) = found else { continue };
            fragment
                .host_ports
                .extend(found.host_ports.iter().map(|port| PortRule { port: *port, origin: machine(name) }));
            fragment.env_set.extend(found.env.iter().map(|(n, v)| EnvSet {
                name: n.clone(),
                value: v.clone(),
                origin: machine(name),
            }));
        }
        fragment
    }

    /// Where the hosts came from and what could not be found out.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, found) in self.answers.borrow().iter() {
            let Ok(found) = found else { continue };
            notes.extend(found.sources.iter().map(|source| format!("@{name} from {source}")));
            notes.extend(found.findings.iter().map(|finding| format!("@{name}: {finding}")));
        }
        notes
    }
}

/// The setup of this machine's own client.
fn machine(name: &str) -> Origin {
    Origin { layer: Layer::Builtin, source: Source::Machine(format!("registry of @{name}")), line: None }
}
