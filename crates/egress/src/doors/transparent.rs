//! Connections of programs that know of no proxy. Every address is local inside, so the socket's own address is the one
//! that the program meant.

use crate::carry::{Guest, carry, original, refuse_unread};
use crate::decide::Gate;
use crate::refusal::{Refusal, Status};
use crate::server::Waiting;
use crate::stream::{Inbox, reset};
use ringfence_policy::Host;
use ringfence_policy::event::Door;
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) async fn serve(gate: &Arc<Gate>, stream: TcpStream, waiting: Waiting) {
    let Ok(address) = stream.local_addr() else { return };
    let reached = original(address);
    if reached.host == Host::Address(gate.tuning.probe) {
        return;
    }
    let mut guest = Guest { stream, inbox: Inbox::default() };
    let port = reached.port;
    let destination = match gate.canonical(reached) {
        Ok(destination) => destination,
        Err(refusal) => {
            gate.refused(Door::Transparent, &refusal);
            return refuse_unread(&mut guest, port, &refusal).await;
        }
    };
    // The listener covers the loopback inside as well. There the program means itself, never this host, whatever a rule
    // says about the address.
    if let Host::Address(address) = destination.host
        && (address.is_loopback() || address.is_unspecified())
    {
        let reason = "nothing listens there; the port is taken for connections to the network";
        gate.refused(Door::Transparent, &Refusal::new(Status::BadGateway, "own_loopback", &destination, reason));
        return reset(&guest.stream);
    }
    match gate.decide(destination) {
        Ok(grant) => carry(gate, Door::Transparent, guest, grant, None, waiting).await,
        Err(refusal) => {
            gate.refused(Door::Transparent, &refusal);
            refuse_unread(&mut guest, port, &refusal).await;
        }
    }
}
