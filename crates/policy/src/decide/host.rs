//! May this destination be reached, and may its name stand for this address?

use super::{AddressDecision, HostDecision, Verdict};
use crate::address::{AddressClass, classify, embedded_v4, is_metadata_name, metadata_why, unmapped};
use crate::host_rule::{DEFAULT_PORTS, Destination, Host, HostPattern, HostRule, HostVerb};
use crate::index::Key;
use crate::origin::Origin;
use crate::{NetworkPolicy, Policy};
use std::net::IpAddr;

impl Policy {
    /// May this destination be reached? Ceilings are applied here as well. For a destination that is an address, the
    /// address is vetted, too, but for this host's own addresses, which only [`Policy::may_address`] is told.
    pub fn may_connect(&self, destination: &Destination) -> HostDecision {
        let canonical;
        let destination = match destination.host {
            Host::Address(address) => {
                canonical = Destination { host: Host::from_address(address), ..destination.clone() };
                &canonical
            }
            Host::Name(_) => destination,
        };
        if let Some(why) = metadata(&destination.host) {
            return refused(
                "metadata",
                format!("{why}: never opened by a host rule"),
                Origin::builtin("metadata services"),
            );
        }
        if self.network_is_off() {
            let origin = Origin::builtin("default deny");
            let remedy = self.under_ceilings(destination).is_none().then(|| flag(destination));
            return HostDecision { remedy, ..refused("no_network", "no host is allowed".to_owned(), origin) };
        }
        if let Some((index, rule)) = self.network.denying(destination) {
            let decision = refused("denied_by_rule", because(rule, "denied"), rule.origin.clone());
            return HostDecision { rule: Some(index), ..decision };
        }
        if let Some(origin) = self.under_ceilings(destination) {
            return refused("ceiling", format!("above the ceiling of {origin}"), origin);
        }
        let Some((index, rule)) = self.network.allowing(destination) else {
            return self.not_allowed(destination);
        };
        let allowed = HostDecision {
            verdict: Verdict::Allowed,
            rule: Some(index),
            origin: rule.origin.clone(),
            code: "allowed",
            reason: because(rule, "allowed"),
            remedy: None,
        };
        let Host::Address(address) = destination.host else { return allowed };
        let vetted = self.may_address(destination, address, &[]);
        match vetted.verdict {
            Verdict::Allowed | Verdict::Private => allowed,
            Verdict::Denied => {
                HostDecision { rule: Some(index), ..refused(vetted.code, vetted.reason, rule.origin.clone()) }
            }
        }
    }

    /// May a connection to `destination`, which [`Policy::may_connect`] allowed, go to `address`, to which its name
    /// resolved? IPv4 addresses that are embedded in IPv6 are judged as well. `own` are this host's own addresses.
    ///
    /// An address that is not public must be named: by a rule over a network of that kind which covers the port, or by
    /// the `addresses` of a rule that allows the destination.
    pub fn may_address(&self, destination: &Destination, address: IpAddr, own: &[IpAddr]) -> AddressDecision {
        let judged = judged(address);
        for address in judged.clone() {
            if let Some(why) = metadata_why(address) {
                return address_denied("metadata", format!("{why}: never opened by a host rule"));
            }
            let literal = Destination { host: Host::Address(address), ..destination.clone() };
            if let Some((_, rule)) = self.network.denying(&literal) {
                return address_denied("denied_by_rule", because(rule, "denied"));
            }
        }
        let mut named = false;
        for address in judged {
            let class = classify(address);
            let is_own = own.iter().any(|&own| unmapped(own) == address);
            if class == AddressClass::Public && !is_own {
                continue;
            }
            if !names(&self.network.rules, destination, address, class) {
                let code = if class == AddressClass::Public { "own_address" } else { class.code() };
                return address_denied(code, format!("{address} is {}, and no rule names it", describe(class)));
            }
            for ceiling in &self.ceilings {
                if ceiling.hosts.as_ref().is_some_and(|rules| !names(rules, destination, address, class)) {
                    return address_denied("ceiling", format!("above the ceiling of {}", ceiling.origin));
                }
            }
            named = true;
        }
        let (code, reason) = if named { ("named_by_rule", "a rule names it") } else { ("public", "a public address") };
        AddressDecision { verdict: Verdict::Allowed, code, reason: reason.to_owned() }
    }

    /// Whether there is no way out at all: no host is allowed, or a ceiling allows none.
    pub fn network_is_off(&self) -> bool {
        let allows = |rules: &[HostRule]| rules.iter().any(|rule| rule.verb == HostVerb::Allow);
        !allows(&self.network.rules)
            || self.ceilings.iter().filter_map(|c| c.hosts.as_deref()).any(|rules| !allows(rules))
    }

    /// The ceiling above which the destination lies.
    fn under_ceilings(&self, destination: &Destination) -> Option<Origin> {
        let beyond = |rules: &[HostRule]| {
            let covering = || rules.iter().filter(|rule| rule.covers(destination));
            covering().any(|r| r.verb == HostVerb::Deny) || !covering().any(|r| r.verb == HostVerb::Allow)
        };
        let ceilings = self.ceilings.iter();
        ceilings.filter(|c| c.hosts.as_deref().is_some_and(beyond)).map(|c| c.origin.clone()).next()
    }

    fn not_allowed(&self, destination: &Destination) -> HostDecision {
        let named = |rule: &HostRule| rule.verb == HostVerb::Allow && rule.host.matches(&destination.host, rule.verb);
        let remedy = Some(flag(destination));
        match self.network.about(destination).filter(|(_, rule)| named(rule)).min_by_key(|(i, _)| *i) {
            Some((index, rule)) => {
                let reason = format!("the rule for {} does not cover port {}", rule.host, destination.port);
                HostDecision { rule: Some(index), remedy, ..refused("port", reason, rule.origin.clone()) }
            }
            None => {
                let origin = Origin::builtin("default deny");
                HostDecision { remedy, ..refused("no_rule", "no rule allows it".to_owned(), origin) }
            }
        }
    }
}

impl NetworkPolicy {
    /// The rules that may be about the destination, by the index; in no order.
    fn about(&self, destination: &Destination) -> impl Iterator<Item = (usize, &HostRule)> {
        let keys = match &destination.host {
            Host::Name(name) => Some(Key::of_name_and_above(name)),
            Host::Address(_) => None,
        };
        self.rules.candidates(keys.into_iter().flatten())
    }

    /// The first rule that denies the destination, or the IPv4 address that it embeds.
    fn denying(&self, destination: &Destination) -> Option<(usize, &HostRule)> {
        let embedded = match destination.host {
            Host::Address(IpAddr::V6(v6)) => embedded_v4(v6),
            Host::Address(IpAddr::V4(_)) | Host::Name(_) => None,
        };
        let embedded = embedded.map(|v4| Destination { host: Host::Address(IpAddr::V4(v4)), ..destination.clone() });
        let covers = |rule: &HostRule| rule.covers(destination) || embedded.as_ref().is_some_and(|e| rule.covers(e));
        let denying = self.about(destination).filter(|(_, rule)| rule.verb == HostVerb::Deny && covers(rule));
        denying.min_by_key(|(i, _)| *i)
    }

    /// The narrowest rule that allows the destination.
    fn allowing(&self, destination: &Destination) -> Option<(usize, &HostRule)> {
        let allowing =
            self.about(destination).filter(|(_, rule)| rule.verb == HostVerb::Allow && rule.covers(destination));
        allowing.min_by_key(|(i, rule)| (breadth(&rule.host), *i))
    }
}

/// Orders patterns from the narrowest to the widest.
fn breadth(pattern: &HostPattern) -> (u8, usize) {
    match pattern {
        HostPattern::Exact(_) => (0, 0),
        HostPattern::Network(network) => (0, usize::from(network.max_prefix_len() - network.prefix_len())),
        HostPattern::Below(apex) => (1, 253_usize.saturating_sub(apex.as_text().len())),
        HostPattern::Any => (2, 0),
    }
}

/// The address and the one that it embeds.
fn judged(address: IpAddr) -> impl Iterator<Item = IpAddr> + Clone {
    let address = unmapped(address);
    let embedded = match address {
        IpAddr::V6(v6) => embedded_v4(v6).map(IpAddr::V4),
        IpAddr::V4(_) => None,
    };
    std::iter::once(address).chain(embedded)
}

fn metadata(host: &Host) -> Option<&'static str> {
    match host {
        Host::Name(name) if is_metadata_name(name.as_text()) => Some("the name of a metadata service"),
        Host::Name(_) => None,
        Host::Address(address) => judged(*address).find_map(metadata_why),
    }
}

/// Whether a rule names an address that is not for everybody. A network that reaches beyond the kind of the address
/// (`0.0.0.0/0`) does not name it; an own public address must be named alone.
fn names(rules: &[HostRule], destination: &Destination, address: IpAddr, class: AddressClass) -> bool {
    let of_kind = |network: &ipnet::IpNet| {
        let single = network.prefix_len() == network.max_prefix_len();
        let inside = class != AddressClass::Public
            && classify(network.network()) == class
            && classify(network.broadcast()) == class;
        network.contains(&address) && (single || inside)
    };
    rules.iter().filter(|rule| rule.verb == HostVerb::Allow).any(|rule| match &rule.host {
        HostPattern::Network(network) if of_kind(network) && rule.ports.covers(destination.port, rule.verb) => true,
        _ => rule.covers(destination) && rule.addresses.iter().any(of_kind),
    })
}

fn describe(class: AddressClass) -> &'static str {
    match class {
        AddressClass::Public => "an address of this host",
        AddressClass::Loopback => "this host's loopback",
        AddressClass::Private => "a private address",
        AddressClass::LinkLocal => "a link-local address",
        AddressClass::Cgnat => "a carrier's shared address",
        AddressClass::Metadata => "a metadata service",
        AddressClass::Multicast => "a multicast address",
        AddressClass::Reserved => "a reserved address",
    }
}

fn because(rule: &HostRule, verb: &str) -> String {
    match &rule.why {
        Some(why) => why.clone(),
        None => format!("{verb} by {}", rule.origin),
    }
}

fn flag(destination: &Destination) -> String {
    let host = &destination.host;
    let port = destination.port;
    if DEFAULT_PORTS.contains(&port) { format!("--allow-host {host}") } else { format!("--allow-host {host}:{port}") }
}

fn refused(code: &'static str, reason: String, origin: Origin) -> HostDecision {
    HostDecision { verdict: Verdict::Denied, rule: None, origin, code, reason, remedy: None }
}

fn address_denied(code: &'static str, reason: String) -> AddressDecision {
    AddressDecision { verdict: Verdict::Denied, code, reason }
}
