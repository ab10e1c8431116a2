//! Guards the network: doors, one decision behind them, tunnels, and an event for each.
//!
//! This crate receives listeners that are open already (they were made inside the sandbox's network namespace and handed
//! out; a socket keeps the namespace it was made in) and an event sink. It never makes a namespace and reads no policy file.

use ringfence_policy::EventSink;
use ringfence_policy::Policy;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The listeners. All are non-blocking or are made so.
#[derive(Debug, Default)]
pub struct Doors {
    /// TCP listeners on every address, with their port: IPv4 and IPv6.
    pub transparent: Vec<(u16, OwnedFd)>,
    /// UDP socket of the resolver.
    pub dns_udp: Option<OwnedFd>,
    /// TCP listener of the resolver.
    pub dns_tcp: Option<OwnedFd>,
    /// HTTP proxy listener.
    pub http: Option<OwnedFd>,
    /// SOCKS5 listener.
    pub socks: Option<OwnedFd>,
    /// Listeners inside for ports of the host.
    pub host_ports: Vec<(u16, OwnedFd)>,
}

/// Opens connections inside the sandbox, for published ports.
pub trait Dialer: Send + Sync {
    /// Connects to `127.0.0.1:port` inside and returns the socket.
    ///
    /// # Errors
    /// Nothing listens there, or the sandbox is gone.
    fn dial(&self, port: u16) -> std::io::Result<OwnedFd>;
}

/// What the engine needs to know beyond the policy.
pub struct Config {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Where events go.
    pub sink: Arc<dyn EventSink>,
    /// This host's own addresses, refused for names unless a rule names them.
    pub own_addresses: Vec<IpAddr>,
    /// The launcher's own proxy variables, used only when the policy says `upstream = "environment"`.
    pub proxy_env: Vec<(String, String)>,
}

/// The engine. Serves until it is dropped or `shutdown` resolves; must run on a current-thread tokio runtime.
pub struct Engine {}

impl Engine {
    /// Makes an engine. Opens nothing and reads nothing: what costs time happens on first use.
    pub fn new(config: Config) -> Self {
        let _ = config;
        Self {}
    }

    /// Serves the doors. Returns when `shutdown` resolves; open tunnels are closed then.
    ///
    /// # Errors
    /// A listener cannot be registered with the runtime.
    pub async fn serve(&self, doors: Doors, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
        let _ = (doors, shutdown);
        Ok(())
    }

    /// Listens on the host's `127.0.0.1:port` for each published port and carries connections inside.
    ///
    /// # Errors
    /// A port is taken on the host.
    pub async fn publish(&self, ports: &[u16], dialer: Arc<dyn Dialer>) -> std::io::Result<()> {
        let _ = (ports, dialer);
        Ok(())
    }
}
