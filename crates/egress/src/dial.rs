//! Connections to vetted addresses, and through the parent proxy.

use crate::decide::{Gate, Grant};
use crate::proto::http1::{Fields, Framing, Request, Response, Version};
use crate::refusal::{Refusal, Status};
use crate::stream::{Inbox, Look, ReadError, within, write_all};
use crate::upstream::Proxy;
use ringfence_policy::{Host, Protocol};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How many addresses of one name are tried.
const TRIED_MAX: usize = 8;
/// How long one address is tried alone before the next one is tried beside it (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// A connection towards a destination.
#[derive(Debug)]
pub(crate) struct Dialled {
    /// The socket.
    pub(crate) stream: TcpStream,
    /// What the peer sent already.
    pub(crate) inbox: Inbox,
    /// What was dialled, for the audit line.
    pub(crate) address: String,
    /// The parent proxy that takes plain requests in absolute form on this connection.
    pub(crate) proxy: Option<Proxy>,
}

impl Gate {
    /// Connects.
    ///
    /// # Errors
    /// The name does not resolve, resolves to what may not be reached, or no address answers.
    pub(crate) async fn dial(&self, grant: &Grant) -> Result<Dialled, Box<Refusal>> {
        self.meter(grant)?;
        let upstream = self
            .upstream
            .as_ref()
            .map_err(|error| Refusal::new(Status::BadGateway, "upstream_proxy", &grant.destination, error))?;
        if let Some(proxy) = upstream.for_destination(&grant.destination) {
            return self.dial_through(grant, proxy).await;
        }
        let addresses = self.addresses(grant).await?;
        let sockets: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, grant.destination.port)).collect();
        let (stream, address) =
            within(self.tuning.connect, race(&sockets)).await.map_err(|error| failed(grant, &error))?;
        Ok(Dialled { stream, inbox: Inbox::default(), address: address.to_string(), proxy: None })
    }

    async fn dial_through(&self, grant: &Grant, proxy: &Proxy) -> Result<Dialled, Box<Refusal>> {
        let broken = |status, reason: String| Refusal::new(status, "upstream_proxy", &grant.destination, reason);
        let addresses = match &proxy.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => within(self.tuning.resolve, self.resolver.resolve(name)).await.map_err(|error| {
                broken(Status::BadGateway, format!("the parent proxy's name does not resolve: {error}"))
            })?,
        };
        let sockets: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, proxy.port)).collect();
        let (stream, address) = within(self.tuning.connect, race(&sockets))
            .await
            .map_err(|error| broken(Status::BadGateway, format!("the parent proxy does not answer: {error}")))?;
        let address = format!("{address} (parent proxy)");
        let mut inbox = Inbox::default();
        if grant.destination.protocol == Protocol::Http {
            return Ok(Dialled { stream, inbox, address, proxy: Some(proxy.clone()) });
        }
        let target = grant.destination.to_string();
        let mut fields = Fields::default();
        fields.push("Host", target.as_bytes());
        fields.push("Via", self.via().as_bytes());
        if let Some(authorization) = &proxy.authorization {
            fields.push("Proxy-Authorization", authorization.as_bytes());
        }
        let request =
            Request { method: "CONNECT".to_owned(), target: target.into_bytes(), version: Version::Http11, fields };
        let mut bytes = Vec::new();
        request.write(Framing::Empty, &mut bytes);
        let answer = async {
            write_all(&stream, &bytes).await?;
            inbox.message(&stream, self.tuning.connect, Look::AtLines, Response::parse).await
        };
        match answer.await {
            Ok(response) if (200..300).contains(&response.status) => {
                Ok(Dialled { stream, inbox, address, proxy: None })
            }
            Ok(response) => Err(broken(Status::BadGateway, format!("the parent proxy answers {}", response.status))),
            Err(ReadError::Late) => Err(broken(Status::Timeout, "the parent proxy did not answer in time".to_owned())),
            Err(error) => Err(broken(Status::BadGateway, format!("the parent proxy: {error}"))),
        }
    }

    /// What marks our own requests to a parent proxy, so that one that comes back is recognised.
    pub(crate) fn via(&self) -> String {
        format!("1.1 ringfence-{}", self.tuning.mark)
    }
}

fn failed(grant: &Grant, error: &io::Error) -> Box<Refusal> {
    let (status, code) = match error.kind() {
        io::ErrorKind::TimedOut => (Status::Timeout, "connect_timeout"),
        io::ErrorKind::ConnectionRefused => (Status::BadGateway, "connect_refused"),
        _ => (Status::BadGateway, "connect_failed"),
    };
    Refusal::new(status, code, &grant.destination, format!("it does not answer: {error}"))
}

/// Connects to the first address that answers. Families alternate, beginning with the one that the resolver put first.
///
/// # Errors
/// None answers; the error is the last one's.
pub(crate) async fn race(addresses: &[SocketAddr]) -> io::Result<(TcpStream, SocketAddr)> {
    let mut queue = alternate(addresses).into_iter().take(TRIED_MAX);
    let mut tries = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut more = true;
    loop {
        if more {
            match queue.next() {
                Some(address) => {
                    tries.spawn(async move { TcpStream::connect(address).await.map(|stream| (stream, address)) });
                }
                None => more = false,
            }
        }
        tokio::select! {
            ended = tries.join_next() => match ended {
                None if more => {}
                None => return Err(last),
                Some(Ok(Ok((stream, address)))) => {
                    // Small messages are the rule on both sides of a proxy.
                    stream.set_nodelay(true)?;
                    return Ok((stream, address));
                }
                Some(Ok(Err(error))) => last = error,
                Some(Err(cancelled)) => last = io::Error::other(cancelled),
            },
            () = tokio::time::sleep(HEAD_START), if more => {}
        }
    }
}

fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (mut first, mut second): (Vec<_>, Vec<_>) = addresses.iter().partition(|a| a.is_ipv4() == first_is_v4);
    first.reverse();
    second.reverse();
    let mut out = Vec::with_capacity(addresses.len());
    while let Some(address) = first.pop() {
        out.push(address);
        out.extend(second.pop());
    }
    second.reverse();
    out.extend(second);
    out
}

/// Connects to a port of this host's loopback, IPv4 first.
///
/// # Errors
/// Nothing listens there.
pub(crate) async fn loopback(port: u16) -> io::Result<TcpStream> {
    let v4 = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
    let v6 = SocketAddr::new(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), port);
    let stream = match TcpStream::connect(v4).await {
        Ok(stream) => stream,
        Err(first) => TcpStream::connect(v6).await.map_err(|_| first)?,
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate() {
        let parse = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let mixed = parse(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"]);
        assert_eq!(alternate(&mixed), parse(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]));
        let mixed = parse(&["1.1.1.1:1", "[::1]:1", "[::2]:1"]);
        assert_eq!(alternate(&mixed), parse(&["1.1.1.1:1", "[::1]:1", "[::2]:1"]));
        assert_eq!(alternate(&[]), Vec::new());
    }

    #[tokio::test]
    async fn a_dead_address_does_not_hide_a_live_one() {
        let live = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let live_address = live.local_addr().unwrap();
        let (_, address) = race(&[dead, live_address]).await.unwrap();
        assert_eq!(address, live_address);
        assert_eq!(race(&[dead]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(race(&[]).await.is_err());
    }
}
