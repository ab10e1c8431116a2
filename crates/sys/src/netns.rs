//! A network namespace of ours: its loopback, its routes, and sockets made inside it.

use crate::{Context, Errno, SysError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// What the loopback of a namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// 127.0.0.0/8 and ::1, nothing else.
    Plain,
    /// Every address there is arrives at sockets of this namespace; connections come from these addresses.
    EveryAddress {
        /// Source of IPv4 connections.
        v4: Ipv4Addr,
        /// Source of IPv6 connections.
        v6: Ipv6Addr,
    },
}

/// Whether a protocol can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6 {
    /// It can.
    Available,
    /// The kernel has none, or it is switched off.
    Missing,
}

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 2;
/// The loopback interface is the first of every namespace (`LOOPBACK_IFINDEX`).
const LOOPBACK: u32 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Messages of rtnetlink(7), put together in one buffer; the kernel works them off during the send.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    count: u32,
}

impl Batch {
    fn push(&mut self, kind: u16, flags: u16, body: &[u8], attributes: &[(u16, &[u8])]) {
        self.count += 1;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        self.bytes.extend_from_slice(&self.count.to_ne_bytes());
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        self.bytes.extend_from_slice(body);
        for (attribute, value) in attributes {
            let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
            self.bytes.extend_from_slice(&length.to_ne_bytes());
            self.bytes.extend_from_slice(&attribute.to_ne_bytes());
            self.bytes.extend_from_slice(value);
            while !self.bytes.len().is_multiple_of(4) {
                self.bytes.push(0);
            }
        }
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
    }

    /// `struct ifinfomsg`, the interface up.
    fn link_up(&mut self) {
        let mut body = vec![0u8; 4];
        body.extend_from_slice(&LOOPBACK.to_ne_bytes());
        body.extend_from_slice(&1u32.to_ne_bytes());
        body.extend_from_slice(&1u32.to_ne_bytes());
        self.push(RTM_NEWLINK, 0, &body, &[]);
    }

    /// `struct ifaddrmsg` with IFA_LOCAL and IFA_ADDRESS; without duplicate address detection, as nobody else is there.
    fn address(&mut self, family: u8, prefix: u8, address: &[u8]) {
        const IFA_F_NODAD: u8 = 2;
        let mut body = vec![family, prefix, IFA_F_NODAD, 0];
        body.extend_from_slice(&LOOPBACK.to_ne_bytes());
        self.push(RTM_NEWADDR, NLM_F_CREATE, &body, &[(2, address), (1, address)]);
    }

    /// `struct rtmsg`: a local route for every address, with RTA_OIF and RTA_PREFSRC.
    fn everything_is_local(&mut self, family: u8, source: &[u8]) {
        const RT_TABLE_LOCAL: u8 = 255;
        const RTPROT_BOOT: u8 = 3;
        const RT_SCOPE_HOST: u8 = 254;
        const RTN_LOCAL: u8 = 2;
        let mut body = vec![family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL];
        body.extend_from_slice(&0u32.to_ne_bytes());
        self.push(RTM_NEWROUTE, NLM_F_CREATE, &body, &[(4, &LOOPBACK.to_ne_bytes()), (7, source)]);
    }

    /// Sends all; the answer to each, in order.
    fn run(self) -> Result<Vec<Result<(), Errno>>, SysError> {
        // No protocol is protocol 0, which is NETLINK_ROUTE (netlink(7)).
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .at("socket", || "AF_NETLINK, NETLINK_ROUTE".to_owned())?;
        rustix::net::send(&socket, &self.bytes, SendFlags::empty()).at("send", || "NETLINK_ROUTE".to_owned())?;
        let mut answers = Vec::new();
        let mut buffer = [0u8; 8192];
        while answers.len() < usize::try_from(self.count).unwrap_or(0) {
            let (n, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())
                .at("recv", || "NETLINK_ROUTE".to_owned())?;
            let mut rest = buffer.get(..n).unwrap_or_default();
            while let Some((answer, after)) = answer(rest) {
                answers.extend(answer);
                rest = after;
            }
        }
        Ok(answers)
    }
}

/// An acknowledgement, if the message is one.
type Acknowledged = Option<Result<(), Errno>>;

/// One message of an answer and what follows it.
fn answer(bytes: &[u8]) -> Option<(Acknowledged, &[u8])> {
    let number = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let length = usize::try_from(number(0)?).ok()?;
    let kind = bytes.get(4..6).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes)?;
    let after = bytes.get(length.max(16).next_multiple_of(4)..).unwrap_or_default();
    if kind != NLMSG_ERROR {
        return Some((None, after));
    }
    let error = number(16)?.cast_signed();
    let result = if error == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(-error)) };
    Some((Some(result), after))
}

/// Sets the loopback up. IPv6 that the kernel lacks is no error: it is then unreachable, which is the safe direction.
///
/// # Errors
/// The kernel refuses a step for IPv4.
pub fn set_up(loopback: Loopback) -> Result<Ipv6, SysError> {
    let mut batch = Batch::default();
    batch.link_up();
    let names = ["link up", "address v4", "route v4", "address v6", "route v6"];
    if let Loopback::EveryAddress { v4, v6 } = loopback {
        batch.address(AF_INET, 32, &v4.octets());
        batch.everything_is_local(AF_INET, &v4.octets());
        batch.address(AF_INET6, 128, &v6.octets());
        batch.everything_is_local(AF_INET6, &v6.octets());
    }
    let mut ipv6 = Ipv6::Available;
    for (n, (answer, name)) in batch.run()?.into_iter().zip(names).enumerate() {
        match answer {
            Ok(()) => {}
            Err(_) if n >= 3 => ipv6 = Ipv6::Missing,
            Err(errno) => return Err(errno).at("netlink", || name.to_owned()),
        }
    }
    Ok(ipv6)
}

fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// A TCP listener in this process's network namespace; non-blocking, as all its users wait for events.
///
/// # Errors
/// `EADDRINUSE` and others.
pub fn listen(address: SocketAddr) -> Result<OwnedFd, SysError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family(&address), SocketType::STREAM, flags, Some(ipproto::TCP))
        .at("socket", || format!("{address}"))?;
    sockopt::set_socket_reuseaddr(&fd, true).at("setsockopt", || "SO_REUSEADDR".to_owned())?;
    bind(&fd, address)?;
    rustix::net::listen(&fd, 1024).at("listen", || format!("{address}"))?;
    Ok(fd)
}

/// A UDP socket in this process's network namespace; non-blocking.
///
/// # Errors
/// `EADDRINUSE` and others.
pub fn bind_udp(address: SocketAddr) -> Result<OwnedFd, SysError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family(&address), SocketType::DGRAM, flags, None)
        .at("socket", || format!("{address}"))?;
    bind(&fd, address)?;
    Ok(fd)
}

fn bind(fd: &OwnedFd, address: SocketAddr) -> Result<(), SysError> {
    if address.is_ipv6() {
        // Else it would take the IPv4 port too (ipv6(7)).
        sockopt::set_ipv6_v6only(fd, true).at("setsockopt", || "IPV6_V6ONLY".to_owned())?;
    }
    rustix::net::bind(fd, &address).at("bind", || format!("{address}"))
}

/// Begins a TCP connection from this process's network namespace and waits a moment for it: on loopback it is made or
/// refused at once unless the listener's queue is full. The descriptor is non-blocking; when the moment was too short it
/// becomes writable when the connection is made, or holds an error.
///
/// # Errors
/// `ECONNREFUSED` and others.
pub fn dial(address: SocketAddr, moment: Duration) -> Result<OwnedFd, SysError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family(&address), SocketType::STREAM, flags, Some(ipproto::TCP))
        .at("socket", || format!("{address}"))?;
    match rustix::net::connect(&fd, &address) {
        Ok(()) => return Ok(fd),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno).at("connect", || format!("{address}")),
    }
    crate::event::wait(&[(fd.as_fd(), crate::event::Interest::Write)], Some(moment))?;
    match sockopt::socket_error(&fd) {
        Ok(Ok(())) => Ok(fd),
        Ok(Err(errno)) | Err(errno) => Err(errno).at("connect", || format!("{address}")),
    }
}

/// The address that a socket is bound to: for a connection that was accepted, the one that the peer dialled.
///
/// # Errors
/// getsockname(2) fails, or it is not an internet socket.
pub fn local_address(fd: impl AsFd) -> Result<SocketAddr, SysError> {
    let address = rustix::net::getsockname(fd).at("getsockname", String::new)?;
    SocketAddr::try_from(address).map_err(|errno| SysError::new("getsockname", "", errno))
}

/// Takes a connection from a listener; `None` when there is none now.
///
/// # Errors
/// accept4(2) fails.
pub fn accept(fd: impl AsFd) -> Result<Option<OwnedFd>, SysError> {
    match rustix::net::accept_with(fd, SocketFlags::CLOEXEC) {
        Ok(connection) => Ok(Some(connection)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno).at("accept4", String::new),
    }
}

/// Loopback and a port.
pub fn loopback_v4(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Loopback and a port.
pub fn loopback_v6(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port)
}
