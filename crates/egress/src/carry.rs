//! A connection whose destination is granted: what does its client speak, and does that name the same host?
//!
//! A rule about a host is worth nothing if a tunnel to it may carry a request for another host that the same server
//! answers for. So the first bytes are read before they are forwarded: a ClientHello must name the destination, and plain
//! HTTP is forwarded request by request. On the ports of the web nothing else passes; on any other port, which a rule
//! has to name, other protocols do, and the server may speak first.

use crate::decide::{Gate, Grant};
use crate::dial::Dialled;
use crate::forward;
use crate::proto::first::{First, classify};
use crate::proto::sni::{Hello, HelloError, client_hello};
use crate::proto::{Parsed, escape};
use crate::refusal::{Refusal, Status};
use crate::server::Waiting;
use crate::stream::{Inbox, Look, ReadError, last_words, reset, write_all};
use crate::tunnel;
use ringfence_policy::event::Door;
use ringfence_policy::{Destination, Host};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A client inside.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Its socket.
    pub(crate) stream: TcpStream,
    /// What it sent and nobody used yet.
    pub(crate) inbox: Inbox,
}

/// How long a client that is refused may take to show what it speaks, so that it can be told.
const REFUSED_WAIT: Duration = Duration::from_secs(1);
/// The port of SSH, on which the server speaks first, so that a refusal need not wait.
const SSH: u16 = 22;

/// Carries a granted connection to its end.
pub(crate) async fn carry(
    gate: &Arc<Gate>,
    door: Door,
    mut guest: Guest,
    grant: Grant,
    dialled: Option<Dialled>,
    waiting: Waiting,
) {
    let web = gate.tuning.web_ports.contains(&grant.destination.port);
    let (spoken, dialled) = if web {
        (first(&mut guest, gate.tuning.head).await, dialled)
    } else {
        let dialled = match dialled {
            Some(dialled) => dialled,
            None => match gate.dial(&grant).await {
                Ok(dialled) => dialled,
                Err(refusal) => {
                    gate.failed(door, &grant, &refusal);
                    return refuse_unread(&mut guest, grant.destination.port, &refusal).await;
                }
            },
        };
        let spoken = first_of_both(&mut guest, &dialled, gate.tuning.head, gate.tuning.tunnel_idle).await;
        (spoken, Some(dialled))
    };
    let mismatch = |what: &str| {
        let reason = format!("port {} carries TLS and HTTP only, and the client speaks {what}", grant.destination.port);
        Refusal::new(Status::BadRequest, "protocol_mismatch", &grant.destination, reason)
    };
    match spoken {
        Ok(First::Tls) => match hello(gate, &mut guest, &grant).await {
            Ok(grant) => opaque(gate, door, guest, grant, dialled, waiting).await,
            Err(refusal) => {
                gate.refused(door, &refusal);
                last_words(&guest.stream, Refusal::tls()).await;
            }
        },
        Ok(First::Http) => forward::serve(gate, door, guest, forward::Mode::Origin(grant), dialled, waiting).await,
        Ok(First::Http2) if web => {
            let refusal = mismatch("HTTP/2 without TLS");
            gate.refused(door, &refusal);
            last_words(&guest.stream, &refusal.http("GET")).await;
        }
        Ok(First::Other) if web => {
            gate.refused(door, &mismatch("neither"));
            reset(&guest.stream);
        }
        Ok(First::Http2 | First::Other | First::Partial) => opaque(gate, door, guest, grant, dialled, waiting).await,
        // The client left without a word: it was let in, and it ended.
        Err(ReadError::End) => gate.opened(door, &grant, None, None).close(None),
        Err(error) => {
            let reason = format!("the client's first bytes: {error}");
            gate.refused(door, &Refusal::new(Status::BadRequest, "first_bytes", &grant.destination, reason));
            reset(&guest.stream);
        }
    }
}

/// Waits until the client has shown what it speaks.
async fn first(guest: &mut Guest, limit: Duration) -> Result<First, ReadError<HelloError>> {
    guest
        .inbox
        .message(&guest.stream, limit, Look::Always, |bytes| {
            Ok(match classify(bytes) {
                First::Partial => Parsed::Partial,
                value => Parsed::Done { value, used: 0 },
            })
        })
        .await
}

/// Waits until the client has shown what it speaks, or the server has spoken: then it is no protocol in which a client
/// names a host first, and the answer is `Partial`.
async fn first_of_both(
    guest: &mut Guest,
    dialled: &Dialled,
    limit: Duration,
    idle: Duration,
) -> Result<First, ReadError<HelloError>> {
    if !dialled.inbox.unread().is_empty() {
        return Ok(First::Partial);
    }
    if guest.inbox.unread().is_empty() {
        let spoke = timeout(idle, async {
            tokio::select! {
                biased;
                count = guest.inbox.fill(&guest.stream, 16 * 1024) => count.map(Some),
                ready = dialled.stream.readable() => ready.map(|()| None),
            }
        });
        match spoke.await {
            Err(_) => return Err(ReadError::Late),
            Ok(Err(error)) => return Err(ReadError::Io(error)),
            // A client that ended its direction without a byte may still want to read.
            Ok(Ok(None | Some(0))) => return Ok(First::Partial),
            Ok(Ok(Some(_))) => {}
        }
    }
    first(guest, limit).await
}

/// Reads the ClientHello, which stays in the inbox, and checks whom it names.
async fn hello(gate: &Gate, guest: &mut Guest, grant: &Grant) -> Result<Grant, Box<Refusal>> {
    let reading = guest.inbox.message(&guest.stream, gate.tuning.head, Look::Always, |bytes| {
        client_hello(bytes).map(|parsed| match parsed {
            Parsed::Done { value, .. } => Parsed::Done { value, used: 0 },
            Parsed::Partial => Parsed::Partial,
        })
    });
    let hello = reading.await.map_err(|error| {
        Refusal::new(Status::BadRequest, "client_hello", &grant.destination, format!("the ClientHello: {error}"))
    })?;
    check_hello(gate, grant, &hello)
}

fn check_hello(gate: &Gate, grant: &Grant, hello: &Hello) -> Result<Grant, Box<Refusal>> {
    let reached = &grant.destination;
    let outer = if hello.encrypted { ", in the clear part of an encrypted hello" } else { "" };
    let Some(name) = &hello.name else {
        return match reached.host {
            Host::Address(_) => Ok(grant.clone()),
            Host::Name(_) => {
                Err(Refusal::new(Status::Misdirected, "sni_missing", reached, "the ClientHello names no server"))
            }
        };
    };
    let mismatch = || {
        let reason = format!("the ClientHello names {}{outer}", escape(name, 260));
        Refusal::new(Status::Misdirected, "sni_mismatch", reached, reason)
    };
    match (Host::parse(name), &reached.host) {
        (Ok(named), host) if named == *host => Ok(grant.clone()),
        (Ok(Host::Name(named)), Host::Address(_)) => gate.claim(reached, named).map_err(|_| mismatch()),
        _ => Err(mismatch()),
    }
}

/// Carries bytes that nobody reads.
async fn opaque(gate: &Gate, door: Door, mut guest: Guest, grant: Grant, dialled: Option<Dialled>, waiting: Waiting) {
    let mut dialled = match dialled {
        Some(dialled) => dialled,
        None => match gate.dial(&grant).await {
            Ok(dialled) => dialled,
            Err(refusal) => {
                gate.failed(door, &grant, &refusal);
                return refuse_unread(&mut guest, grant.destination.port, &refusal).await;
            }
        },
    };
    waiting.over();
    let mut opened = gate.opened(door, &grant, None, Some(&dialled.address));
    let moved = tunnel::Moved::default();
    let result = join(&mut guest, &mut dialled, gate.tuning.tunnel_idle, &moved).await;
    opened.sent = moved.sent.load(Ordering::Relaxed);
    opened.received = moved.received.load(Ordering::Relaxed);
    opened.close(result.err().map(|error| error.to_string()));
}

/// Joins two connections, beginning with what was read ahead.
///
/// # Errors
/// A socket failed, or nothing moved for too long.
pub(crate) async fn join(
    guest: &mut Guest,
    dialled: &mut Dialled,
    idle: Duration,
    moved: &tunnel::Moved,
) -> io::Result<()> {
    let (ahead, behind) = (guest.inbox.take(), dialled.inbox.take());
    write_all(&dialled.stream, &ahead).await?;
    moved.sent.fetch_add(u64::try_from(ahead.len()).unwrap_or(0), Ordering::Relaxed);
    drop(ahead);
    write_all(&guest.stream, &behind).await?;
    moved.received.fetch_add(u64::try_from(behind.len()).unwrap_or(0), Ordering::Relaxed);
    drop(behind);
    tunnel::run(&mut guest.stream, &mut dialled.stream, idle, moved).await
}

/// Refuses a client that knows of no proxy, in the protocol that it speaks, as far as it shows that.
pub(crate) async fn refuse_unread(guest: &mut Guest, port: u16, refusal: &Refusal) {
    if port == SSH && guest.inbox.unread().is_empty() {
        return last_words(&guest.stream, &refusal.ssh()).await;
    }
    match first(guest, REFUSED_WAIT).await {
        Ok(First::Tls) => last_words(&guest.stream, Refusal::tls()).await,
        Ok(First::Http) => {
            let head = guest.inbox.unread().starts_with(b"HEAD ");
            last_words(&guest.stream, &refusal.http(if head { "HEAD" } else { "GET" })).await;
        }
        Ok(First::Http2 | First::Other | First::Partial) | Err(_) => reset(&guest.stream),
    }
}

/// The destination of a connection that knows of no proxy.
pub(crate) fn original(address: std::net::SocketAddr) -> Destination {
    Destination {
        host: Host::from_address(address.ip()),
        port: address.port(),
        protocol: ringfence_policy::Protocol::Tcp,
    }
}
