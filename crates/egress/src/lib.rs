//! Guards the network: doors, one decision behind them, tunnels, and an event for each.
//!
//! This crate receives listeners that are open already (they were made inside the sandbox's network namespace and handed
//! out; a socket keeps the namespace it was made in) and an event sink. It never makes a namespace and reads no policy file.
//!
//! ```text
//! transparent ─┐
//! HTTP proxy  ─┼─> Destination ─> decide ─> resolve, vet ─> dial ─> check what is spoken ─> tunnel, or request by request
//! SOCKS5      ─┘        ^
//! DNS ──────────────────┘ an address for every name; nobody is asked
//! ```

mod body;
mod carry;
mod decide;
mod dial;
mod doors;
mod forward;
#[doc(hidden)]
pub mod fuzz;
mod names;
mod pipe;
mod proto;
mod refusal;
mod resolve;
mod server;
mod stream;
mod tunnel;
mod upstream;

pub use names::Pool;
pub use resolve::{Resolve, Resolving, System};

use decide::Gate;
use ringfence_policy::EventSink;
use ringfence_policy::Policy;
use server::{Entry, Server};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, JoinSet};

/// The listeners. All are non-blocking or are made so. With none at all there is no way out.
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
    /// Connects to `127.0.0.1:port` inside and returns the socket. May block; it is called on a thread of its own.
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

/// Bounds and deadlines. The defaults are meant for everybody; tests use others.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// For the head of a request, a ClientHello, and every other first message.
    pub head: Duration,
    /// For a pause within a body and between two requests.
    pub idle: Duration,
    /// For a pause in a tunnel, and for a response to begin.
    pub tunnel_idle: Duration,
    /// For a connection to stand.
    pub connect: Duration,
    /// For a name to resolve.
    pub resolve: Duration,
    /// How many connections there are at once, over all doors. The limit of open descriptors may allow fewer.
    pub connections: usize,
    /// The ports on which nothing but TLS and HTTP passes.
    pub web_ports: Vec<u16>,
    /// How many new names below one wildcard may come at once.
    pub wildcard_burst: u32,
    /// And how many a minute after that.
    pub wildcard_per_minute: u32,
    /// The addresses that stand for names.
    pub pool: Pool,
    /// The address to which the sandbox connects when it proves that a door is there. It stands for no name and is no
    /// attempt of the command: such a connection ends without a word.
    pub probe: IpAddr,
    /// What marks our own requests to a parent proxy; drawn at random.
    mark: u64,
}

/// The last address but one of the pool's network, which is never given to a name.
pub const PROBE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 255, 254));

impl Default for Tuning {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            tunnel_idle: Duration::from_secs(3600),
            connect: Duration::from_secs(15),
            resolve: Duration::from_secs(10),
            connections: 512,
            web_ports: vec![80, 443],
            wildcard_burst: 100,
            wildcard_per_minute: 60,
            pool: Pool::default(),
            probe: PROBE,
            // The standard library seeds it from the system for every process.
            mark: RandomState::new().hash_one("mark"),
        }
    }
}

/// The engine. Serves until it is dropped or `shutdown` resolves; must run on a current-thread tokio runtime.
pub struct Engine {
    server: Arc<Server>,
    published: Mutex<Vec<AbortHandle>>,
}

impl Engine {
    /// Makes an engine. Opens nothing and reads nothing: what costs time happens on first use.
    pub fn new(config: Config) -> Self {
        Self::with(config, Arc::new(System::default()), Tuning::default())
    }

    /// Makes an engine with another resolver and other bounds.
    pub fn with(config: Config, resolver: Arc<dyn Resolve>, tuning: Tuning) -> Self {
        let gate = Arc::new(Gate::new(config, resolver, tuning));
        Self { server: Arc::new(Server::new(gate)), published: Mutex::new(Vec::new()) }
    }

    /// Serves the doors. Returns when `shutdown` resolves; open tunnels are closed then.
    ///
    /// # Errors
    /// A listener cannot be registered with the runtime.
    pub async fn serve(&self, doors: Doors, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let mut loops = JoinSet::new();
        let single = [(doors.http, Entry::Http), (doors.socks, Entry::Socks), (doors.dns_tcp, Entry::Dns)];
        let single = single.into_iter().filter_map(|(fd, entry)| fd.map(|fd| (fd, entry)));
        let transparent = doors.transparent.into_iter().map(|(_, fd)| (fd, Entry::Transparent));
        let host_ports = doors.host_ports.into_iter().map(|(port, fd)| (fd, Entry::HostPort(port)));
        for (fd, entry) in single.chain(transparent).chain(host_ports) {
            loops.spawn(Arc::clone(&self.server).accept(server::listener(fd)?, entry));
        }
        if let Some(fd) = doors.dns_udp {
            let socket = std::net::UdpSocket::from(fd);
            socket.set_nonblocking(true)?;
            loops.spawn(doors::dns::serve_udp(Arc::clone(&self.server.gate), UdpSocket::from_std(socket)?));
        }
        shutdown.await;
        loops.shutdown().await;
        Ok(())
    }

    /// Listens on the host's `127.0.0.1:port` for each published port and carries connections inside, until the engine is
    /// dropped. Returns as soon as all ports are open.
    ///
    /// # Errors
    /// A port is taken on the host, or see [`Engine::publish_on`].
    pub async fn publish(&self, ports: &[u16], dialer: Arc<dyn Dialer>) -> io::Result<()> {
        let mut listeners = Vec::new();
        for &port in ports {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
            listeners.push((port, listener.map_err(|e| io::Error::new(e.kind(), format!("port {port}: {e}")))?.into()));
        }
        self.publish_on(listeners, dialer)
    }

    /// The same on listeners that the caller opened, each with the port inside that it stands for.
    ///
    /// # Errors
    /// No rule publishes a port, the same port is also carried the other way, which would be a circle, or a listener
    /// cannot be registered with the runtime.
    pub fn publish_on(&self, listeners: Vec<(u16, OwnedFd)>, dialer: Arc<dyn Dialer>) -> io::Result<()> {
        let mut ready = Vec::new();
        for (port, fd) in listeners {
            let gate = &self.server.gate;
            let origin =
                gate.published(port).ok_or_else(|| io::Error::other(format!("no rule publishes port {port}")))?;
            if gate.host_port(port).is_some() {
                return Err(io::Error::other(format!("port {port} is both published and opened from the host")));
            }
            ready.push((server::listener(fd)?, port, origin));
        }
        let tasks = ready.into_iter().map(|(listener, port, origin)| {
            let (server, dialer) = (Arc::clone(&self.server), Arc::clone(&dialer));
            tokio::spawn(doors::ports::accept_published(server, listener, port, origin, dialer)).abort_handle()
        });
        self.published.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for task in self.published.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}
