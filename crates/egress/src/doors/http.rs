//! The HTTP proxy: CONNECT and requests in absolute form.

use crate::carry::Guest;
use crate::decide::Gate;
use crate::forward::{Mode, serve as serve_requests};
use crate::server::Waiting;
use crate::stream::Inbox;
use ringfence_policy::event::Door;
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) async fn serve(gate: &Arc<Gate>, stream: TcpStream, waiting: Waiting) {
    let guest = Guest { stream, inbox: Inbox::default() };
    serve_requests(gate, Door::Http, guest, Mode::Proxy, None, waiting).await;
}
