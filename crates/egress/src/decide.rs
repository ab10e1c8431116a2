//! The one decision behind all doors.
//!
//! ```text
//! bytes -> Destination -> (an address of ours? the name that it stands for) -> may_connect -> resolve -> may_address for
//! every answer -> dial one of exactly these
//! ```
//!
//! Nothing is resolved before a rule allowed the name, and no name is looked up a second time between the check of its
//! addresses and the dialling of them.

use crate::names::{Bucket, Meaning, Names};
use crate::refusal::{Refusal, Status};
use crate::resolve::Resolve;
use crate::upstream::{Upstream, UpstreamError};
use crate::{Config, Tuning};
use ringfence_policy::event::{Door, EventKind};
use ringfence_policy::{Destination, Event, Host, HostName, HostPattern, Origin, Policy, Verdict};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::time::timeout;

/// A destination that a rule allows.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// Whom.
    pub(crate) destination: Destination,
    /// Whose word it is.
    pub(crate) origin: Origin,
    /// The rule, as an index.
    rule: Option<usize>,
    /// The one address that may be dialled, where the client chose it itself.
    pinned: Option<IpAddr>,
}

/// How many names of one wildcard rule are remembered.
const REMEMBERED: usize = 16_384;

/// The names that were seen under one wildcard rule. A name below an allowed one can carry data out in its labels, so
/// new ones are limited in their rate.
#[derive(Debug)]
struct Below {
    seen: HashSet<HostName>,
    fresh: Bucket,
}

/// How many refusals are recorded at once, and how many a second after that.
const DENIALS_BURST: u32 = 2_000;
const DENIALS_PER_SECOND: f64 = 50.0;

/// Keeps the record of refusals bounded.
#[derive(Debug)]
struct Denials {
    rate: Bucket,
    unrecorded: u64,
}

/// Policy, names and sink: all that a door asks.
pub(crate) struct Gate {
    policy: Arc<Policy>,
    sink: Arc<dyn ringfence_policy::EventSink>,
    own: Vec<IpAddr>,
    pub(crate) resolver: Arc<dyn Resolve>,
    names: Mutex<Names>,
    below: Mutex<HashMap<usize, Below>>,
    denials: Mutex<Denials>,
    pub(crate) upstream: Result<Upstream, UpstreamError>,
    pub(crate) tuning: Tuning,
}

impl Gate {
    pub(crate) fn new(config: Config, resolver: Arc<dyn Resolve>, tuning: Tuning) -> Self {
        let upstream = Upstream::of(config.policy.network.upstream.as_ref(), &config.proxy_env);
        Self {
            names: Mutex::new(Names::new(tuning.pool, Instant::now())),
            policy: config.policy,
            sink: config.sink,
            own: config.own_addresses,
            resolver,
            below: Mutex::new(HashMap::new()),
            denials: Mutex::new(Denials {
                rate: Bucket::new(DENIALS_BURST, DENIALS_PER_SECOND, Instant::now()),
                unrecorded: 0,
            }),
            upstream,
            tuning,
        }
    }

    /// Runs `f` on the table of names.
    pub(crate) fn with_names<T>(&self, f: impl FnOnce(&mut Names) -> T) -> T {
        // A poisoned table is still a table: each entry is written whole.
        f(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rule that opens a port of the host.
    pub(crate) fn host_port(&self, port: u16) -> Option<Origin> {
        self.policy.network.host_ports.iter().find(|rule| rule.port == port).map(|rule| rule.origin.clone())
    }

    /// The rule that publishes a port.
    pub(crate) fn published(&self, port: u16) -> Option<Origin> {
        self.policy.network.publish.iter().find(|rule| rule.port == port).map(|rule| rule.origin.clone())
    }

    /// Replaces an address of ours by the name that it stands for.
    ///
    /// # Errors
    /// It stands for none.
    pub(crate) fn canonical(&self, destination: Destination) -> Result<Destination, Box<Refusal>> {
        let Host::Address(address) = destination.host else { return Ok(destination) };
        match self.with_names(|names| names.meaning(address, Instant::now())) {
            Meaning::Itself => Ok(destination),
            Meaning::Name(name) => Ok(Destination { host: Host::Name(name), ..destination }),
            Meaning::Nothing => {
                let reason = "the address stands for no name; look the name up again";
                Err(Refusal::new(Status::Forbidden, "no_name_for_address", &destination, reason))
            }
        }
    }

    /// May this destination be reached?
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn decide(&self, destination: Destination) -> Result<Grant, Box<Refusal>> {
        let destination = self.canonical(destination)?;
        let decision = self.policy.may_connect(&destination);
        if decision.verdict != Verdict::Allowed {
            let mut refusal = Refusal::denied(&destination, &decision);
            if decision.code == "no_rule" && is_loopback(&destination.host) {
                refusal.code = "own_loopback";
                refusal.reason =
                    "the loopback inside is reached directly, without a proxy; the host's is another one".to_owned();
                refusal.remedy = Some(format!("--host-port {}", destination.port));
            }
            return Err(refusal);
        }
        if let Host::Address(address) = destination.host {
            self.vet(&destination, address, &decision.origin)?;
        }
        Ok(Grant { destination, origin: decision.origin, rule: decision.rule, pinned: None })
    }

    /// A client that reached an address names a host of its own on it (a server name in TLS, a Host field). That is
    /// allowed exactly when the name, having resolved to this address, would be.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn claim(&self, reached: &Destination, name: HostName) -> Result<Grant, Box<Refusal>> {
        let named = Destination { host: Host::Name(name), ..reached.clone() };
        let mut grant = self.decide(named)?;
        if let Host::Address(address) = reached.host {
            self.vet(&grant.destination, address, &grant.origin)?;
            grant.pinned = Some(address);
        }
        Ok(grant)
    }

    /// The addresses that may be dialled for a grant.
    ///
    /// # Errors
    /// The name does not resolve, or one of its addresses may not be reached.
    pub(crate) async fn addresses(&self, grant: &Grant) -> Result<Vec<IpAddr>, Box<Refusal>> {
        if let Some(address) = grant.pinned {
            return Ok(vec![address]);
        }
        let name = match &grant.destination.host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let failed = |status, code, reason: String| Refusal::new(status, code, &grant.destination, reason);
        let answers = match timeout(self.tuning.resolve, self.resolver.resolve(name)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) => {
                return Err(failed(
                    Status::BadGateway,
                    "resolve_failed",
                    format!("the name does not resolve: {error}"),
                ));
            }
            Err(_) => {
                return Err(failed(
                    Status::Timeout,
                    "resolve_timeout",
                    "the resolver did not answer in time".to_owned(),
                ));
            }
        };
        if answers.is_empty() {
            return Err(failed(Status::BadGateway, "resolve_failed", "the name has no address".to_owned()));
        }
        // One bad answer condemns the name: a set of a public and a private address is how rebinding looks.
        for answer in &answers {
            self.vet(&grant.destination, *answer, &grant.origin)?;
        }
        Ok(answers)
    }

    fn vet(&self, destination: &Destination, address: IpAddr, origin: &Origin) -> Result<(), Box<Refusal>> {
        let vetted = self.policy.may_address(destination, address, &self.own);
        if vetted.verdict == Verdict::Allowed {
            return Ok(());
        }
        let reason = match destination.host {
            Host::Name(_) => format!("the name resolves to {address}: {}", vetted.reason),
            Host::Address(_) => vetted.reason,
        };
        let mut refusal = Refusal::new(Status::Forbidden, vetted.code, destination, reason);
        refusal.rule = Some(origin.clone());
        let openable = !matches!(vetted.code, "metadata" | "denied_by_rule" | "ceiling");
        if openable {
            let literal = Destination { host: Host::from_address(address), ..destination.clone() };
            refusal.remedy = Some(format!("--allow-host {literal}"));
        }
        Err(refusal)
    }

    /// Limits the rate of new names below a wildcard: the resolver of a name, or the parent proxy, sees its labels.
    ///
    /// # Errors
    /// Too many are new.
    pub(crate) fn meter(&self, grant: &Grant) -> Result<(), Box<Refusal>> {
        let (Some(index), Host::Name(name)) = (grant.rule, &grant.destination.host) else { return Ok(()) };
        let Some(HostPattern::Below(apex)) = self.policy.network.rules.get(index).map(|rule| &rule.host) else {
            return Ok(());
        };
        let now = Instant::now();
        let mut below = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = below.entry(index).or_insert_with(|| Below {
            seen: HashSet::new(),
            fresh: Bucket::new(self.tuning.wildcard_burst, f64::from(self.tuning.wildcard_per_minute) / 60.0, now),
        });
        if entry.seen.contains(name) {
            return Ok(());
        }
        if !entry.fresh.take(now) {
            let reason = format!("too many new names below {apex} in a short time");
            let mut refusal = Refusal::new(Status::TooMany, "name_rate", &grant.destination, reason);
            refusal.rule = Some(grant.origin.clone());
            return Err(refusal);
        }
        if entry.seen.len() >= REMEMBERED {
            entry.seen.clear();
        }
        entry.seen.insert(name.clone());
        Ok(())
    }

    /// Records a refusal. A program that is refused in a loop must not fill the disk with it: beyond a rate, refusals are
    /// only counted, and the next line says how many there were.
    pub(crate) fn refused(&self, door: Door, refusal: &Refusal) {
        let unrecorded = {
            let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
            if !denials.rate.take(Instant::now()) {
                denials.unrecorded += 1;
                return;
            }
            std::mem::take(&mut denials.unrecorded)
        };
        let mut reason = refusal.reason.clone();
        if unrecorded > 0 {
            reason.push_str(&format!(" ({unrecorded} refusals before this one were not recorded)"));
        }
        self.sink.record(&Event::now(EventKind::Denied {
            door,
            destination: refusal.destination.clone(),
            code: refusal.code.to_owned(),
            reason,
            rule: refusal.rule.clone(),
            remedy: refusal.remedy.clone(),
        }));
    }

    /// Records that a granted destination was not reached: refused after all, for its addresses, or not there.
    pub(crate) fn failed(&self, door: Door, grant: &Grant, refusal: &Refusal) {
        match refusal.status {
            Status::Forbidden | Status::TooMany => self.refused(door, refusal),
            _ => self.opened(door, grant, None, None).close(Some(refusal.reason.clone())),
        }
    }

    /// Records that a connection or a request goes on, and answers what records its end.
    pub(crate) fn opened(
        &self,
        door: Door,
        grant: &Grant,
        request: Option<(&str, String)>,
        address: Option<&str>,
    ) -> Opened {
        let (method, path) = request.map(|(method, path)| (method.to_owned(), path)).unzip();
        self.sink.record(&Event::now(EventKind::Allowed {
            door,
            destination: grant.destination.clone(),
            rule: grant.origin.clone(),
            method,
            path,
            address: address.map(ToOwned::to_owned),
        }));
        Opened {
            sink: Arc::clone(&self.sink),
            door,
            destination: grant.destination.clone(),
            since: Instant::now(),
            sent: 0,
            received: 0,
            error: Some("ended by ringfence".to_owned()),
        }
    }

    /// A grant for a port that is carried through the wall, whose rule is not a host rule.
    pub(crate) fn carried(destination: Destination, origin: Origin) -> Grant {
        Grant { destination, origin, rule: None, pinned: None }
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Address(address) => address.is_loopback() || address.is_unspecified(),
        Host::Name(name) => is_localhost(name),
    }
}

/// Whether a name means the loopback (RFC 6761 section 6.3).
pub(crate) fn is_localhost(name: &HostName) -> bool {
    name.as_text() == "localhost" || name.as_text().ends_with(".localhost")
}

/// An open connection or request. Records its end when it is dropped, whatever ended it, so that no task that is
/// cancelled leaves an `allowed` without a `closed`.
pub(crate) struct Opened {
    sink: Arc<dyn ringfence_policy::EventSink>,
    door: Door,
    destination: Destination,
    since: Instant,
    /// Bytes from the sandbox.
    pub(crate) sent: u64,
    /// Bytes to the sandbox.
    pub(crate) received: u64,
    error: Option<String>,
}

impl Opened {
    /// Ends it with what went wrong, if anything.
    pub(crate) fn close(mut self, error: Option<String>) {
        self.error = error;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.sink.record(&Event::now(EventKind::Closed {
            door: self.door,
            destination: self.destination.clone(),
            sent: self.sent,
            received: self.received,
            millis: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            error: self.error.take(),
        }));
    }
}
