//! The listeners that process 1 makes inside its network namespace and hands out.

use serde::Serialize;

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
