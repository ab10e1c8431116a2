//! Ports that are carried through the wall: of the host into the sandbox, and of the sandbox onto the host's loopback.

use crate::Dialer;
use crate::carry::{Guest, join};
use crate::decide::Gate;
use crate::dial::{Dialled, loopback};
use crate::refusal::{Refusal, Status};
use crate::server::{Server, Waiting, stream as registered};
use crate::stream::{Inbox, reset, within};
use crate::tunnel::Moved;
use ringfence_policy::event::Door;
use ringfence_policy::{Destination, Host, Origin, Protocol};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

fn destination(port: u16) -> Destination {
    Destination { host: Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)), port, protocol: Protocol::Tcp }
}

/// Carries a connection from inside to a port of the host's loopback.
pub(crate) async fn serve_inward(gate: &Arc<Gate>, stream: TcpStream, port: u16, waiting: Waiting) {
    let guest = Guest { stream, inbox: Inbox::default() };
    // The listener exists because a rule does; asked again, so that a listener alone opens nothing.
    let Some(origin) = gate.host_port(port) else {
        let reason = "no rule opens this port of the host";
        gate.refused(Door::HostPort, &Refusal::new(Status::Forbidden, "no_rule", destination(port), reason));
        return reset(&guest.stream);
    };
    let outside = within(gate.tuning.connect, loopback(port)).await;
    waiting.over();
    carried(gate, Door::HostPort, guest, origin, port, outside).await;
}

/// Takes connections on a published port.
pub(crate) async fn accept_published(
    server: Arc<Server>,
    listener: TcpListener,
    port: u16,
    origin: Origin,
    dialer: Arc<dyn Dialer>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(slot) = server.slot_for_publish().await else { return };
        let (server, dialer, origin) = (Arc::clone(&server), Arc::clone(&dialer), origin.clone());
        connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            // The dialer asks process 1 of the sandbox and waits for its answer.
            let dialling = tokio::task::spawn_blocking(move || dialer.dial(port));
            let inside = within(server.gate.tuning.connect, async { dialling.await.map_err(io::Error::other)? }).await;
            // Seen from the sandbox: what its server sends was sent, so the server is the guest.
            match inside.and_then(registered) {
                Ok(inside) => {
                    let _ = inside.set_nodelay(true);
                    let guest = Guest { stream: inside, inbox: Inbox::default() };
                    carried(&server.gate, Door::Publish, guest, origin, port, Ok(stream)).await;
                }
                Err(error) => {
                    reset(&stream);
                    let grant = Gate::carried(destination(port), origin);
                    server.gate.opened(Door::Publish, &grant, None, None).close(Some(error.to_string()));
                }
            }
            drop(slot);
        });
    }
}

async fn carried(gate: &Gate, door: Door, mut guest: Guest, origin: Origin, port: u16, outside: io::Result<TcpStream>) {
    let grant = Gate::carried(destination(port), origin);
    let mut opened = gate.opened(door, &grant, None, None);
    let moved = Moved::default();
    let result = match outside {
        Ok(stream) => {
            let mut dialled = Dialled { stream, inbox: Inbox::default(), address: String::new(), proxy: None };
            join(&mut guest, &mut dialled, gate.tuning.tunnel_idle, &moved).await
        }
        Err(error) => {
            reset(&guest.stream);
            Err(error)
        }
    };
    opened.sent = moved.sent.load(Ordering::Relaxed);
    opened.received = moved.received.load(Ordering::Relaxed);
    opened.close(result.err().map(|error| error.to_string()));
}
