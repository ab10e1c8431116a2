//! The listeners that process 1 makes inside its network namespace and hands out.

use ringfence_policy::{HostVerb, NetworkPolicy, PortRule, PortSet};
use serde::Serialize;
use std::collections::BTreeSet;

/// Listeners and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct DoorsPlan {
    /// Whether there is any way out. `false`: no listener is made, and the network namespace has nothing but its
    /// loopback.
    pub enabled: bool,
    /// Ports on which connections to any address are taken, from the allow rules.
    pub transparent: Vec<u16>,
    /// Port of the HTTP proxy on 127.0.0.1.
    pub http: u16,
    /// Port of the SOCKS5 proxy on 127.0.0.1.
    pub socks: u16,
    /// Ports of host servers, listened to on 127.0.0.1 inside.
    pub host_ports: Vec<u16>,
    /// Ports of servers inside that the supervisor opens on the host's 127.0.0.1.
    pub publish: Vec<u16>,
}

/// The address inside at which names are resolved (UDP and TCP, port 53). Programs that were set up for the stub of
/// systemd-resolved(8) find it where they look.
pub const RESOLVER: &str = "127.0.0.53";
/// Default port of the HTTP proxy inside.
pub const HTTP_PORT: u16 = 3128;
/// Default port of the SOCKS5 proxy inside.
pub const SOCKS_PORT: u16 = 1080;
/// Source address of connections made inside, so that a reply never has its destination as its source.
pub const SOURCE_V4: &str = "10.255.0.2";
/// The same for IPv6.
pub const SOURCE_V6: &str = "fd00:65:ffff::2";
/// Pool of IPv4 addresses that stand for names (RFC 2544 benchmarking range, never routed).
pub const FAKE_V4: &str = "198.18.0.0/15";
/// Pool of IPv6 addresses that stand for names (RFC 4193).
pub const FAKE_V6: &str = "fd00:65:fa4e::/96";

/// An address that stands for no name: the last of the pool, which is never given to one. A connection to it that says
/// nothing is the proof's, see [`crate::proof`].
pub const PROBE_V4: &str = "198.19.255.254";

/// Ports on which `:*` listens: those of the usual services. Other ports are reached through the proxy.
const USUAL_PORTS: [u16; 8] = [22, 80, 443, 853, 5228, 8080, 8443, 9418];

/// What the doors cannot do as asked; goes into the status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DoorNotes {
    /// A rule allows every port.
    pub(crate) every_port: bool,
    /// Ports that rules allow but that something else needs.
    pub(crate) taken: BTreeSet<u16>,
}

/// Listeners for a policy.
pub(crate) fn build(network: &NetworkPolicy) -> (DoorsPlan, DoorNotes) {
    let ports =
        |rules: &[PortRule]| rules.iter().map(|rule| rule.port).filter(|port| *port != 0).collect::<BTreeSet<_>>();
    let host_ports = ports(&network.host_ports);
    let publish = ports(&network.publish);
    let allows = || network.rules.iter().filter(|rule| rule.verb == HostVerb::Allow);
    let mut notes = DoorNotes::default();
    let mut wanted = BTreeSet::new();
    for rule in allows() {
        match &rule.ports {
            PortSet::Default => wanted.extend([443, 80]),
            PortSet::All => {
                notes.every_port = true;
                wanted.extend(USUAL_PORTS);
            }
            PortSet::List(list) => wanted.extend(list.iter().copied().filter(|port| *port != 0)),
        }
    }
    let enabled = allows().next().is_some() || !host_ports.is_empty();
    // Every listener of ours is on an address or on all of them; two on one port would be in each other's way (bind(2),
    // EADDRINUSE), and so would a server inside that is to be published.
    let mut used: BTreeSet<u16> = host_ports.iter().chain(&publish).copied().chain([53]).collect();
    notes.taken = wanted.intersection(&used).copied().collect();
    let transparent: Vec<u16> = wanted.difference(&used).copied().collect();
    used.extend(&transparent);
    let http = free(HTTP_PORT, &used);
    used.insert(http);
    let socks = free(SOCKS_PORT, &used);
    let plan = DoorsPlan {
        enabled,
        transparent: if enabled { transparent } else { Vec::new() },
        http,
        socks,
        host_ports: host_ports.into_iter().collect(),
        publish: publish.into_iter().collect(),
    };
    (plan, notes)
}

/// The first port from `from` upwards that is not used.
fn free(from: u16, used: &BTreeSet<u16>) -> u16 {
    (from..=u16::MAX).find(|port| !used.contains(port)).unwrap_or(from)
}
