//! The resolver: every name has an address of ours, and nothing is asked of anybody.

use crate::decide::{Gate, is_localhost};
use crate::proto::dns::{Answer, Code, Kind, Message, QUERY_MAX, Query, parse, write};
use crate::proto::{Cursor, Parsed};
use crate::refusal::{Refusal, Status};
use crate::stream::{Inbox, Look, write_all};
use ringfence_policy::event::Door;
use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpStream, UdpSocket};

/// The most queries on one TCP connection, which then is closed.
const QUERIES_MAX: u32 = 1_000;

/// Answers a message; `None`: it gets no answer.
pub(crate) fn answer(gate: &Gate, bytes: &[u8]) -> Option<Vec<u8>> {
    match parse(bytes) {
        Message::Ignore => None,
        Message::Refuse(echo, code) => Some(write(&echo, code, Answer::Empty)),
        Message::Query(query) => {
            let (code, answer) = lookup(gate, &query);
            Some(write(&query.echo, code, answer))
        }
    }
}

fn lookup(gate: &Gate, query: &Query) -> (Code, Answer) {
    let Some(name) = &query.name else { return (Code::NxDomain, Answer::Empty) };
    if query.kind == Kind::Other {
        // No HTTPS record either, so no client has a key for an encrypted ClientHello.
        return (Code::NoError, Answer::Empty);
    }
    if is_localhost(name) {
        let v4 = query.kind == Kind::A;
        return (Code::NoError, if v4 { Answer::V4(Ipv4Addr::LOCALHOST) } else { Answer::V6(Ipv6Addr::LOCALHOST) });
    }
    match gate.with_names(|names| names.addresses(name, Instant::now())) {
        Ok(found) => (Code::NoError, if query.kind == Kind::A { Answer::V4(found.v4) } else { Answer::V6(found.v6) }),
        Err(error) => {
            gate.refused(Door::Dns, &Refusal::new(Status::TooMany, "name_rate", name, error));
            (Code::ServFail, Answer::Empty)
        }
    }
}

/// Serves queries over UDP.
pub(crate) async fn serve_udp(gate: Arc<Gate>, socket: UdpSocket) {
    // One byte more than is read, so that what is cut off is seen to be too long.
    let mut buffer = [0u8; QUERY_MAX + 1];
    loop {
        // An error belongs to one datagram, such as a port that was closed meanwhile (udp(7)).
        let Ok((count, peer)) = socket.recv_from(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        if let Some(reply) = answer(&gate, buffer.get(..count).unwrap_or_default()) {
            // A reply that does not fit is dropped, and the client asks again.
            let _ = socket.try_send_to(&reply, peer);
        }
    }
}

/// Serves queries over TCP, where each has its length before it (RFC 1035 section 4.2.2).
pub(crate) async fn serve_tcp(gate: &Arc<Gate>, stream: TcpStream) {
    let mut inbox = Inbox::default();
    for _ in 0..QUERIES_MAX {
        let framed = |bytes: &[u8]| {
            let mut cursor = Cursor::new(bytes);
            Ok::<_, Infallible>(match cursor.vector() {
                Some(message) => Parsed::Done { value: message.to_vec(), used: 2 + message.len() },
                None => Parsed::Partial,
            })
        };
        let Ok(message) = inbox.message(&stream, gate.tuning.head, Look::Always, framed).await else { return };
        let Some(reply) = answer(gate, &message) else { return };
        let mut out = Vec::from(u16::try_from(reply.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&reply);
        if write_all(&stream, &out).await.is_err() {
            return;
        }
    }
}
