//! Names to addresses, by the host's own resolver, outside the sandbox.

use ringfence_policy::HostName;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use tokio::sync::Semaphore;

/// The answer to come.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. It is asked only for names to which a connection was allowed.
pub trait Resolve: Send + Sync {
    /// All addresses of a name.
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a>;
}

/// How many lookups run at once: each blocks a thread in getaddrinfo(3).
const LOOKUPS: usize = 16;

/// The system's resolver, with its hosts file, search list and split horizon.
#[derive(Debug)]
pub struct System {
    lookups: Semaphore,
}

impl Default for System {
    fn default() -> Self {
        Self { lookups: Semaphore::new(LOOKUPS) }
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a> {
        Box::pin(async move {
            let _turn = self.lookups.acquire().await.map_err(io::Error::other)?;
            // The port only fills the socket addresses.
            let found = tokio::net::lookup_host((name.as_text(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
