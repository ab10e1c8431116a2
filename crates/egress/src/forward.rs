//! Plain HTTP, forwarded request by request.
//!
//! Every request is judged alone, on a connection that is kept alive as well: its target and its Host field must name one
//! host, and a rule must allow that host. What a server gets is written from the parsed request.

use crate::body::{BodyError, relay};
use crate::carry::{Guest, carry, join};
use crate::decide::{Gate, Grant};
use crate::dial::Dialled;
use crate::proto::connect::{TargetError, absolute, connect_target, redact};
use crate::proto::escape;
use crate::proto::http1::{Framing, HeadError, Request, Response, Version};
use crate::refusal::{Refusal, Status};
use crate::server::Waiting;
use crate::stream::{Look, ReadError, last_words, with_scratch, within, write_all};
use crate::tunnel::Moved;
use ringfence_policy::event::Door;
use ringfence_policy::{Destination, Host, Protocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// For whom requests on a connection may be.
pub(crate) enum Mode {
    /// For anyone: the connection is one to the proxy.
    Proxy,
    /// For one destination: the connection is one to that host.
    Origin(Grant),
}

/// A request that may be forwarded.
struct Accepted {
    grant: Grant,
    request: Request,
    framing: Framing,
    path: String,
    websocket: bool,
}

/// How an exchange ended.
enum Ended {
    /// With a response; each connection may or may not take another request.
    Answered { guest: bool, server: bool },
    /// With a change of protocol.
    Upgraded,
}

/// Why an exchange failed.
enum Failed {
    /// Before a byte of a response: the client can be told.
    Unanswered(Box<Refusal>),
    /// The server had closed the connection before it got the request.
    Stale,
    /// In the middle; nothing can be told any more.
    Cut(String),
}

/// How far an exchange is, for the two halves of it.
struct Progress {
    /// The server has the whole request.
    sent: AtomicBool,
    /// The client has the first byte of a response, so nothing else can be told.
    answered: AtomicBool,
}

/// The most interim responses to one request.
const INTERIM_MAX: u32 = 16;

/// Serves requests until the connection ends.
pub(crate) async fn serve(
    gate: &Arc<Gate>,
    door: Door,
    mut guest: Guest,
    mode: Mode,
    dialled: Option<Dialled>,
    waiting: Waiting,
) {
    let mut waiting = Some(waiting);
    let mut server = match &mode {
        Mode::Origin(grant) => dialled.map(|dialled| (grant.destination.clone(), dialled)),
        Mode::Proxy => None,
    };
    loop {
        if waiting.is_none() && guest.inbox.unread().is_empty() {
            match within(gate.tuning.idle, guest.inbox.fill(&guest.stream, 16 * 1024)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let parse = |bytes: &[u8]| Request::parse(bytes);
        let request = match guest.inbox.message(&guest.stream, gate.tuning.head, Look::AtLines, parse).await {
            Ok(request) => request,
            Err(ReadError::End | ReadError::Io(_)) => return,
            Err(error) => return refuse(gate, door, &guest, "GET", &unreadable(&mode, error)).await,
        };
        if request.method == "CONNECT" && matches!(mode, Mode::Proxy) {
            // A tunnel for which no byte of a request is left over begins a connection of its own.
            drop(server);
            let door = Door::Connect;
            return match connect(gate, &request).await {
                Ok((grant, dialled)) => {
                    match write_all(&guest.stream, b"HTTP/1.1 200 Connection established\r\n\r\n").await {
                        Ok(()) => {
                            let waiting = waiting.take().unwrap_or_default();
                            Box::pin(carry(gate, door, guest, grant, Some(dialled), waiting)).await;
                        }
                        Err(error) => {
                            gate.opened(door, &grant, None, Some(&dialled.address)).close(Some(error.to_string()))
                        }
                    }
                }
                Err((Some(grant), refusal)) => {
                    gate.failed(door, &grant, &refusal);
                    last_words(&guest.stream, &refusal.http("CONNECT")).await;
                }
                Err((None, refusal)) => refuse(gate, door, &guest, "CONNECT", &refusal).await,
            };
        }
        let method = request.method.clone();
        let accepted = match accept(gate, &mode, request) {
            Ok(accepted) => accepted,
            Err(refusal) => return refuse(gate, door, &guest, &method, &refusal).await,
        };
        match forward(gate, door, &mut guest, accepted, &mut server, &mut waiting).await {
            Some(()) => {}
            None => return,
        }
    }
}

/// Refuses a request. The connection ends with it: what follows might be the body of the request.
async fn refuse(gate: &Gate, door: Door, guest: &Guest, method: &str, refusal: &Refusal) {
    gate.refused(door, refusal);
    last_words(&guest.stream, &refusal.http(method)).await;
}

fn unreadable(mode: &Mode, error: ReadError<HeadError>) -> Box<Refusal> {
    let whom = match mode {
        Mode::Origin(grant) => grant.destination.to_string(),
        Mode::Proxy => "(unreadable)".to_owned(),
    };
    match error {
        ReadError::Malformed(error) => Refusal::new(Status::BadRequest, "bad_request", whom, error),
        error => Refusal::new(Status::BadRequest, "head_timeout", whom, format!("the head of the request: {error}")),
    }
}

/// Judges a CONNECT request and dials. An error with a grant is one of dialling.
async fn connect(gate: &Gate, request: &Request) -> Result<(Grant, Dialled), (Option<Grant>, Box<Refusal>)> {
    let malformed =
        |code, reason: String| (None, Refusal::new(Status::BadRequest, code, redact(&request.target), reason));
    let destination = connect_target(&request.target).map_err(|e| malformed("bad_target", e.to_string()))?;
    // A CONNECT request has no content (RFC 9110 section 9.3.6); one that announces it would be read in two ways.
    if request.framing().map_err(|e| malformed("bad_request", e.to_string()))? != Framing::Empty {
        return Err(malformed("bad_request", "CONNECT with a body".to_owned()));
    }
    if let Some(host) = request.fields.all("host").next() {
        let named = Destination::parse_authority(host, Some(destination.port), Protocol::Tcp);
        if named.as_ref() != Ok(&destination) {
            return Err(malformed("host_mismatch", format!("the Host field names {}", escape(host, 260))));
        }
    }
    looped(gate, request, &destination).map_err(|refusal| (None, refusal))?;
    let grant = gate.decide(destination).map_err(|refusal| (None, refusal))?;
    match gate.dial(&grant).await {
        Ok(dialled) => Ok((grant, dialled)),
        Err(refusal) => Err((Some(grant), refusal)),
    }
}

/// A request that went through a parent proxy and came back.
fn looped(gate: &Gate, request: &Request, destination: &Destination) -> Result<(), Box<Refusal>> {
    if request.fields.list("via").contains(&gate.via()) {
        return Err(Refusal::new(Status::Loop, "proxy_loop", destination, "the parent proxy leads back to this one"));
    }
    Ok(())
}

/// Judges a request and makes of it what is forwarded.
fn accept(gate: &Gate, mode: &Mode, request: Request) -> Result<Accepted, Box<Refusal>> {
    let (grant, target) = match mode {
        Mode::Proxy => for_proxy(gate, &request)?,
        Mode::Origin(reached) => for_origin(gate, reached, &request)?,
    };
    let bad = |error: HeadError| Refusal::new(Status::BadRequest, "bad_request", &grant.destination, error);
    let framing = request.framing().map_err(bad)?;
    let upgrade = request.fields.list("upgrade");
    let websocket = request.fields.list("connection").iter().any(|token| token == "upgrade")
        && upgrade.iter().map(String::as_str).eq(["websocket"])
        && request.version == Version::Http11
        && request.method == "GET"
        && framing == Framing::Empty;
    let end = target.iter().position(|b| *b == b'?').unwrap_or(target.len());
    let path = escape(target.get(..end).unwrap_or_default(), 512);
    Ok(Accepted { grant, framing, path, websocket, request: Request { target, ..request } })
}

/// A request to the proxy: `http://host/path`. RFC 9112 section 3.2.2 lets the target win over the Host field; when they
/// differ, one of two readers is being deceived, so it is refused.
fn for_proxy(gate: &Gate, request: &Request) -> Result<(Grant, Vec<u8>), Box<Refusal>> {
    let malformed = |code, reason: String| Refusal::new(Status::BadRequest, code, redact(&request.target), reason);
    let (destination, path) = absolute(&request.target).map_err(|error| {
        malformed(if error == TargetError::Scheme { "bad_scheme" } else { "bad_target" }, error.to_string())
    })?;
    match request.fields.all("host").next() {
        Some(host) if Destination::parse_authority(host, Some(80), Protocol::Http).as_ref() != Ok(&destination) => {
            return Err(malformed("host_mismatch", format!("the Host field names {}", escape(host, 260))));
        }
        None if request.version == Version::Http11 => {
            return Err(malformed("bad_request", "the Host field is missing".to_owned()));
        }
        Some(_) | None => {}
    }
    looped(gate, request, &destination)?;
    Ok((gate.decide(destination)?, origin_form(path, &request.method)))
}

/// A request to a host, on a connection to that host.
fn for_origin(gate: &Gate, reached: &Grant, request: &Request) -> Result<(Grant, Vec<u8>), Box<Refusal>> {
    let reached = Destination { protocol: Protocol::Http, ..reached.destination.clone() };
    let malformed = |code, reason: String| Refusal::new(Status::BadRequest, code, &reached, reason);
    if request.method == "CONNECT" {
        return Err(malformed("nested_connect", "CONNECT inside a connection to a host".to_owned()));
    }
    let (target_host, path) = match request.target.first() {
        Some(b'/') => (None, request.target.as_slice()),
        Some(b'*') if request.target == b"*" && request.method == "OPTIONS" => (None, request.target.as_slice()),
        _ => {
            let (destination, path) = absolute(&request.target).map_err(|e| malformed("bad_target", e.to_string()))?;
            (Some(destination), path)
        }
    };
    let field = match request.fields.all("host").next() {
        Some(host) => Some(
            Destination::parse_authority(host, Some(80), Protocol::Http)
                .map_err(|error| malformed("bad_request", format!("the Host field: {error}")))?,
        ),
        None if request.version == Version::Http11 => {
            return Err(malformed("bad_request", "the Host field is missing".to_owned()));
        }
        None => None,
    };
    if let (Some(target), Some(field)) = (&target_host, &field)
        && target != field
    {
        return Err(malformed("host_mismatch", format!("the target names {target} and the Host field {field}")));
    }
    let named = match field.or(target_host) {
        Some(named) => gate.canonical(named)?,
        None => reached.clone(),
    };
    let grant = if named == reached {
        gate.decide(reached)?
    } else {
        let mismatch =
            || Refusal::new(Status::Misdirected, "host_mismatch", &reached, format!("the request is for {named}"));
        match (&named.host, &reached.host) {
            (Host::Name(name), Host::Address(_)) if named.port == reached.port => {
                gate.claim(&reached, name.clone()).map_err(|_| mismatch())?
            }
            _ => return Err(mismatch()),
        }
    };
    let path = if path == b"*" { path.to_vec() } else { origin_form(path, &request.method) };
    Ok((grant, path))
}

/// The target for a server (RFC 9112 sections 3.2.1 and 3.2.4).
fn origin_form(path: &[u8], method: &str) -> Vec<u8> {
    match path.first() {
        None if method == "OPTIONS" => b"*".to_vec(),
        None => b"/".to_vec(),
        Some(b'?') => [b"/", path].concat(),
        Some(_) => path.to_vec(),
    }
}

/// Forwards one request. `None`: the connection is over.
async fn forward(
    gate: &Gate,
    door: Door,
    guest: &mut Guest,
    accepted: Accepted,
    server: &mut Option<(Destination, Dialled)>,
    waiting: &mut Option<Waiting>,
) -> Option<()> {
    let destination = &accepted.grant.destination;
    let same = |kept: &Destination| kept.host == destination.host && kept.port == destination.port;
    let kept = server.take().filter(|(kept, dialled)| same(kept) && is_quiet(dialled));
    let reused = kept.is_some();
    let mut dialled = match kept {
        Some((_, dialled)) => dialled,
        None => match gate.dial(&accepted.grant).await {
            Ok(dialled) => dialled,
            Err(refusal) => {
                gate.failed(door, &accepted.grant, &refusal);
                last_words(&guest.stream, &refusal.http(&accepted.request.method)).await;
                return None;
            }
        },
    };
    if let Some(waiting) = waiting.take() {
        waiting.over();
    }
    let request = Some((accepted.request.method.as_str(), accepted.path.clone()));
    let mut opened = gate.opened(door, &accepted.grant, request, Some(&dialled.address));
    let moved = Moved::default();
    let mut result = exchange(gate, guest, &mut dialled, &accepted, &moved).await;
    if matches!(result, Err(Failed::Stale)) && reused && accepted.framing == Framing::Empty {
        // The server closed a kept connection while the request was on its way (RFC 9112 section 9.3.1).
        result = match gate.dial(&accepted.grant).await {
            Ok(fresh) => {
                dialled = fresh;
                exchange(gate, guest, &mut dialled, &accepted, &moved).await
            }
            Err(refusal) => Err(Failed::Unanswered(refusal)),
        };
    }
    if let Ok(Ended::Upgraded) = result {
        let joined = join(guest, &mut dialled, gate.tuning.tunnel_idle, &moved).await;
        opened.sent = moved.sent.load(Ordering::Relaxed);
        opened.received = moved.received.load(Ordering::Relaxed);
        opened.close(joined.err().map(|error| error.to_string()));
        return None;
    }
    opened.sent = moved.sent.load(Ordering::Relaxed);
    opened.received = moved.received.load(Ordering::Relaxed);
    let broken = || {
        Refusal::new(Status::BadGateway, "upstream_closed", destination, "it closed the connection without an answer")
    };
    match result {
        Ok(Ended::Answered { guest: keep_guest, server: keep_server }) => {
            opened.close(None);
            if keep_server {
                *server = Some((accepted.grant.destination, dialled));
            }
            if keep_guest {
                return Some(());
            }
            // A response without a length ends with the connection, and a reset could overtake its last bytes.
            last_words(&guest.stream, b"").await;
        }
        Ok(Ended::Upgraded) => opened.close(None),
        Err(Failed::Unanswered(refusal)) => {
            opened.close(Some(refusal.reason.clone()));
            last_words(&guest.stream, &refusal.http(&accepted.request.method)).await;
        }
        Err(Failed::Stale) => {
            let refusal = broken();
            opened.close(Some(refusal.reason.clone()));
            last_words(&guest.stream, &refusal.http(&accepted.request.method)).await;
        }
        Err(Failed::Cut(reason)) => {
            opened.close(Some(reason));
            crate::stream::reset(&guest.stream);
        }
    }
    None
}

/// Whether nothing came on a kept connection: neither its end nor bytes that nobody asked for.
fn is_quiet(dialled: &Dialled) -> bool {
    let read = with_scratch(|buffer| dialled.stream.try_read(buffer.get_mut(..1).unwrap_or_default()));
    dialled.inbox.unread().is_empty() && matches!(read, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
}

/// The head that the server gets.
fn head_for_server(gate: &Gate, accepted: &Accepted, dialled: &Dialled) -> Vec<u8> {
    let destination = &accepted.grant.destination;
    let mut request = accepted.request.clone();
    request.fields.strip_hop();
    let host = if destination.port == 80 { destination.host.to_string() } else { destination.to_string() };
    if accepted.websocket {
        request.fields.push("Connection", b"Upgrade");
        request.fields.push("Upgrade", b"websocket");
    }
    if let Some(proxy) = &dialled.proxy {
        let path = if request.target == b"*" { Vec::new() } else { request.target };
        request.target = [b"http://", host.as_bytes(), &path].concat();
        request.fields.push("Via", gate.via().as_bytes());
        if let Some(authorization) = &proxy.authorization {
            request.fields.push("Proxy-Authorization", authorization.as_bytes());
        }
    }
    request.fields.push_front("Host", host.as_bytes());
    let mut out = Vec::new();
    request.write(accepted.framing, &mut out);
    out
}

/// Sends one request and relays its response, both at once: a server may answer before it has the whole request, and a
/// client may wait for an interim response before it sends the body.
async fn exchange(
    gate: &Gate,
    guest: &mut Guest,
    dialled: &mut Dialled,
    accepted: &Accepted,
    moved: &Moved,
) -> Result<Ended, Failed> {
    let head = head_for_server(gate, accepted, dialled);
    if within(gate.tuning.idle, write_all(&dialled.stream, &head)).await.is_err() {
        return Err(Failed::Stale);
    }
    moved.sent.fetch_add(u64::try_from(head.len()).unwrap_or(0), Ordering::Relaxed);
    let Guest { stream: client, inbox: from_client } = guest;
    let Dialled { stream: server, inbox: from_server, .. } = dialled;
    let progress =
        Progress { sent: AtomicBool::new(accepted.framing == Framing::Empty), answered: AtomicBool::new(false) };
    let sending = relay(client, from_client, server, accepted.framing, accepted.framing, gate.tuning.idle, &moved.sent);
    let answering = respond(gate, accepted, server, from_server, client, &progress, moved);
    tokio::pin!(sending, answering);
    let mut is_sending = true;
    loop {
        tokio::select! {
            sent = &mut sending, if is_sending => {
                is_sending = false;
                match sent {
                    Ok(()) => progress.sent.store(true, Ordering::Relaxed),
                    // The server may have answered and closed; its answer is what matters.
                    Err(BodyError::Sink(_)) => {}
                    Err(BodyError::Malformed(error)) if !progress.answered.load(Ordering::Relaxed) => {
                        let destination = &accepted.grant.destination;
                        let refusal = Refusal::new(Status::BadRequest, "bad_request", destination, format!("the body: {error}"));
                        return Err(Failed::Unanswered(refusal));
                    }
                    Err(error) => return Err(Failed::Cut(format!("the client: {error}"))),
                }
            }
            ended = &mut answering => return ended,
        }
    }
}

/// Relays the response.
async fn respond(
    gate: &Gate,
    accepted: &Accepted,
    server: &tokio::net::TcpStream,
    from_server: &mut crate::stream::Inbox,
    client: &tokio::net::TcpStream,
    progress: &Progress,
    moved: &Moved,
) -> Result<Ended, Failed> {
    let destination = &accepted.grant.destination;
    let method = accepted.request.method.as_str();
    let modern = accepted.request.version == Version::Http11;
    let bad = |code, reason: String| Failed::Unanswered(Refusal::new(Status::BadGateway, code, destination, reason));
    let cut = |error: &dyn std::fmt::Display| Failed::Cut(error.to_string());
    let put = |bytes: Vec<u8>| async move {
        progress.answered.store(true, Ordering::Relaxed);
        moved.received.fetch_add(u64::try_from(bytes.len()).unwrap_or(0), Ordering::Relaxed);
        within(gate.tuning.idle, write_all(client, &bytes)).await
    };
    for _ in 0..INTERIM_MAX {
        let mut response = match from_server
            .message(server, gate.tuning.tunnel_idle, Look::AtLines, Response::parse)
            .await
        {
            Ok(response) => response,
            Err(ReadError::End | ReadError::Io(_)) if !progress.answered.load(Ordering::Relaxed) => {
                return Err(Failed::Stale);
            }
            Err(ReadError::Late) => {
                let reason = "it did not answer in time";
                return Err(Failed::Unanswered(Refusal::new(Status::Timeout, "upstream_timeout", destination, reason)));
            }
            Err(error) => return Err(bad("upstream_malformed", format!("its response: {error}"))),
        };
        let closes = response.fields.list("connection").iter().any(|token| token == "close");
        let upgrade = response.fields.list("upgrade");
        let length = response.fields.all("content-length").next().map(<[u8]>::to_vec);
        let framing = response.framing(method).map_err(|e| bad("upstream_malformed", format!("its response: {e}")))?;
        response.fields.strip_hop();
        // It would send the client to another port or protocol, past this door (RFC 7838).
        response.fields.remove("alt-svc");
        let mut head = Vec::new();
        if response.status == 101 {
            if !accepted.websocket || !upgrade.iter().map(String::as_str).eq(["websocket"]) {
                return Err(bad("upstream_malformed", "it changed the protocol without being asked".to_owned()));
            }
            response.fields.push("Connection", b"Upgrade");
            response.fields.push("Upgrade", b"websocket");
            response.write(Framing::Empty, &mut head);
            put(head).await.map_err(|e| cut(&e))?;
            return Ok(Ended::Upgraded);
        }
        if response.status < 200 {
            if modern {
                response.write(Framing::Empty, &mut head);
                put(head).await.map_err(|e| cut(&e))?;
            }
            continue;
        }
        let outgoing = if framing == Framing::Chunked && !modern { Framing::UntilClose } else { framing };
        let asked_to_close = ["connection", "proxy-connection"]
            .iter()
            .any(|name| accepted.request.fields.list(name).iter().any(|token| token == "close"));
        let keep_guest =
            modern && !asked_to_close && outgoing != Framing::UntilClose && progress.sent.load(Ordering::Relaxed);
        if !keep_guest {
            response.fields.push("Connection", b"close");
        }
        // To a HEAD request, and in a 304, a length is that of the body which is not sent.
        if let (true, Some(length)) = (method == "HEAD" || response.status == 304, length) {
            response.fields.push("Content-Length", &length);
        }
        response.write(outgoing, &mut head);
        put(head).await.map_err(|e| cut(&e))?;
        relay(server, from_server, client, framing, outgoing, gate.tuning.idle, &moved.received)
            .await
            .map_err(|e| cut(&e))?;
        let keep_server = response.version == Version::Http11
            && !closes
            && framing != Framing::UntilClose
            && progress.sent.load(Ordering::Relaxed);
        return Ok(Ended::Answered { guest: keep_guest, server: keep_server });
    }
    Err(bad("upstream_malformed", "too many interim responses".to_owned()))
}
