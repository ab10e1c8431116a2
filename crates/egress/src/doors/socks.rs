//! The SOCKS5 proxy: CONNECT only.

use crate::carry::{Guest, carry};
use crate::decide::Gate;
use crate::proto::escape;
use crate::proto::socks5::{
    METHOD_NONE, METHOD_REFUSED, Reply, SocksError, VERSION4_REFUSED, greeting, request, requested,
};
use crate::refusal::{Refusal, Status};
use crate::server::Waiting;
use crate::stream::{Inbox, Look, ReadError, last_words, write_all};
use ringfence_policy::event::Door;
use ringfence_policy::{Destination, Protocol};
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) async fn serve(gate: &Arc<Gate>, stream: TcpStream, waiting: Waiting) {
    let mut guest = Guest { stream, inbox: Inbox::default() };
    let malformed =
        |error: &SocksError, whom: &[u8]| Refusal::new(Status::BadRequest, code(error), escape(whom, 260), error);
    match guest.inbox.message(&guest.stream, gate.tuning.head, Look::Always, greeting).await {
        Ok(()) => {}
        Err(ReadError::Malformed(error)) => {
            gate.refused(Door::Socks5, &malformed(&error, b"(none yet)"));
            let words: &[u8] = match error {
                SocksError::Version4 => &VERSION4_REFUSED,
                SocksError::Method => &METHOD_REFUSED,
                _ => &[],
            };
            return last_words(&guest.stream, words).await;
        }
        Err(_) => return,
    }
    if write_all(&guest.stream, &METHOD_NONE).await.is_err() {
        return;
    }
    let (host, port) = match guest.inbox.message(&guest.stream, gate.tuning.head, Look::Always, request).await {
        Ok(request) => request,
        Err(ReadError::Malformed(error)) => {
            gate.refused(Door::Socks5, &malformed(&error, requested(guest.inbox.unread())));
            let reply = match error {
                SocksError::Command => Reply::CommandNotSupported,
                SocksError::AddressKind => Reply::AddressNotSupported,
                _ => Reply::Failure,
            };
            return last_words(&guest.stream, &reply.bytes()).await;
        }
        Err(_) => return,
    };
    let grant = match gate.decide(Destination { host, port, protocol: Protocol::Tcp }) {
        Ok(grant) => grant,
        Err(refusal) => {
            gate.refused(Door::Socks5, &refusal);
            return last_words(&guest.stream, &reply_of(&refusal).bytes()).await;
        }
    };
    let dialled = match gate.dial(&grant).await {
        Ok(dialled) => dialled,
        Err(refusal) => {
            gate.failed(Door::Socks5, &grant, &refusal);
            return last_words(&guest.stream, &reply_of(&refusal).bytes()).await;
        }
    };
    match write_all(&guest.stream, &Reply::Succeeded.bytes()).await {
        Ok(()) => carry(gate, Door::Socks5, guest, grant, Some(dialled), waiting).await,
        Err(error) => gate.opened(Door::Socks5, &grant, None, Some(&dialled.address)).close(Some(error.to_string())),
    }
}

fn code(error: &SocksError) -> &'static str {
    match error {
        SocksError::Command => "socks_command",
        SocksError::Version4 | SocksError::Version => "socks_version",
        SocksError::Method => "socks_method",
        SocksError::AddressKind | SocksError::Host(_) | SocksError::Port => "bad_target",
    }
}

fn reply_of(refusal: &Refusal) -> Reply {
    match (refusal.status, refusal.code) {
        (Status::Forbidden, _) => Reply::NotAllowed,
        (Status::BadGateway, "connect_refused") => Reply::Refused,
        (Status::BadGateway | Status::Timeout, _) => Reply::HostUnreachable,
        _ => Reply::Failure,
    }
}
