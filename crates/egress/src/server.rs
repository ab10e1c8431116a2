//! Accept loops, and the bound on what they let in.

use crate::decide::Gate;
use crate::doors;
use crate::refusal::{Refusal, Status};
use ringfence_policy::event::Door;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

/// Descriptors that are not connections: listeners, pipes, the runtime's own, standard streams, the sink.
const OTHER_DESCRIPTORS: u64 = 128;
/// How long accepting pauses when the process has no descriptor left.
const NO_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(50);

/// Which door a listener is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Transparent,
    Http,
    Socks,
    Dns,
    HostPort(u16),
}

impl Entry {
    fn door(self) -> Door {
        match self {
            Self::Transparent => Door::Transparent,
            Self::Http => Door::Http,
            Self::Socks => Door::Socks5,
            Self::Dns => Door::Dns,
            Self::HostPort(_) => Door::HostPort,
        }
    }
}

/// All that accept loops share.
pub(crate) struct Server {
    pub(crate) gate: Arc<Gate>,
    slots: Arc<Semaphore>,
    waiting: Arc<WaitingRoom>,
}

/// The connections that have not shown yet whom they are for. When all slots are taken, the oldest of them goes, so that
/// connections which only hold a slot cannot keep out those that work.
#[derive(Debug, Default)]
struct WaitingRoom {
    tasks: Mutex<BTreeMap<u64, AbortHandle>>,
    next: AtomicU64,
}

impl WaitingRoom {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<u64, AbortHandle>) -> T) -> T {
        f(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the oldest. Answers whether there was one.
    fn evict(&self) -> bool {
        while let Some((_, task)) = self.with(BTreeMap::pop_first) {
            if !task.is_finished() {
                task.abort();
                return true;
            }
        }
        false
    }
}

/// A place in the waiting room; left by dropping it.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Option<(Arc<WaitingRoom>, u64)>);

impl Waiting {
    /// The connection has shown whom it is for.
    pub(crate) fn over(self) {
        drop(self);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((room, id)) = self.0.take() {
            room.with(|tasks| tasks.remove(&id));
        }
    }
}

impl Server {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        let slots = gate.tuning.connections.min(affordable());
        Self { gate, slots: Arc::new(Semaphore::new(slots)), waiting: Arc::default() }
    }

    /// Takes connections from one listener until it is dropped.
    pub(crate) async fn accept(self: Arc<Self>, listener: TcpListener, entry: Entry) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // ECONNABORTED and the like concern one connection; without descriptors, only time helps (accept(2)).
                    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) {
                        tokio::time::sleep(NO_DESCRIPTORS_PAUSE).await;
                    }
                    continue;
                }
            };
            // While this waits, the next ones wait in the listener's backlog.
            let Some(slot) = self.slot(entry).await else { return };
            let id = self.waiting.next.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting(Some((Arc::clone(&self.waiting), id)));
            let task = connections.spawn(Self::serve(Arc::clone(&self.gate), stream, entry, waiting, slot));
            self.waiting.with(|tasks| tasks.insert(id, task));
        }
    }

    async fn slot(&self, entry: Entry) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(slot);
        }
        if self.waiting.evict() {
            let reason = "too many connections wait without saying whom they are for";
            self.gate.refused(entry.door(), &Refusal::new(Status::TooMany, "overload", "(unknown)", reason));
        }
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    async fn serve(gate: Arc<Gate>, stream: TcpStream, entry: Entry, waiting: Waiting, slot: OwnedSemaphorePermit) {
        // A connection works without it, only slower.
        let _ = stream.set_nodelay(true);
        match entry {
            Entry::Transparent => doors::transparent::serve(&gate, stream, waiting).await,
            Entry::Http => doors::http::serve(&gate, stream, waiting).await,
            Entry::Socks => doors::socks::serve(&gate, stream, waiting).await,
            Entry::Dns => doors::dns::serve_tcp(&gate, stream).await,
            Entry::HostPort(port) => doors::ports::serve_inward(&gate, stream, port, waiting).await,
        }
        drop(slot);
    }

    /// Takes a slot for a connection from outside.
    pub(crate) async fn slot_for_publish(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }
}

/// How many connections, each with two sockets, the limit of open descriptors allows.
fn affordable() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OTHER_DESCRIPTORS) / 2).unwrap_or(usize::MAX).max(8)
}

/// Registers a listener with the runtime.
///
/// # Errors
/// It is no listening socket.
pub(crate) fn listener(fd: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Registers a connected socket with the runtime.
///
/// # Errors
/// It is no socket.
pub(crate) fn stream(fd: OwnedFd) -> io::Result<TcpStream> {
    let stream = std::net::TcpStream::from(fd);
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}
