//! Listeners and connections inside the network namespace of process 1.

use super::error::Step;
use super::message::{During, Failure, Listens};
use ringfence_plan::doors::{self, DoorsPlan};
use ringfence_sys::netns::{self, Ipv6, Loopback};
use ringfence_sys::{Errno, SysError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A listener and what it is for.
pub(crate) type Open = (Listens, u16, OwnedFd);

/// Sets the loopback up and makes the listeners.
pub(crate) fn open(plan: &DoorsPlan) -> Result<(Ipv6, Vec<Open>), Failure> {
    if !plan.enabled {
        return netns::set_up(Loopback::Plain).during(Step::Network, "lo").map(|ipv6| (ipv6, Vec::new()));
    }
    let v4: Ipv4Addr = constant(doors::SOURCE_V4)?;
    let v6: Ipv6Addr = constant(doors::SOURCE_V6)?;
    let ipv6 = netns::set_up(Loopback::EveryAddress { v4, v6 }).during(Step::Network, "lo")?;
    let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let resolver: IpAddr = constant(doors::RESOLVER)?;
    let mut out = Vec::new();
    tcp(&mut out, Listens::DnsTcp, resolver, 53)?;
    let dns = netns::bind_udp(SocketAddr::new(resolver, 53)).during(Step::Door, "53")?;
    out.push((Listens::DnsUdp, 53, dns));
    tcp(&mut out, Listens::Http, netns::loopback_v4(0).ip(), plan.http)?;
    tcp(&mut out, Listens::Socks, netns::loopback_v4(0).ip(), plan.socks)?;
    for port in &plan.transparent {
        tcp(&mut out, Listens::TransparentV4, any_v4, *port)?;
        if ipv6 == Ipv6::Available {
            tcp(&mut out, Listens::TransparentV6, any_v6, *port)?;
        }
    }
    // A transparent listener takes 127.0.0.1 too; a second one on the same port would only get EADDRINUSE. Its owner
    // tells the two apart by the address that was dialled.
    for port in plan.host_ports.iter().filter(|port| !plan.transparent.contains(port)) {
        tcp(&mut out, Listens::HostPortV4, netns::loopback_v4(0).ip(), *port)?;
        if ipv6 == Ipv6::Available {
            tcp(&mut out, Listens::HostPortV6, netns::loopback_v6(0).ip(), *port)?;
        }
    }
    Ok((ipv6, out))
}

fn constant<T: std::str::FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::new(Step::Network, text, SysError::new("inet_pton", text, Errno::INVAL)))
}

fn tcp(out: &mut Vec<Open>, kind: Listens, ip: IpAddr, port: u16) -> Result<(), Failure> {
    let fd = netns::listen(SocketAddr::new(ip, port)).during(Step::Door, port.to_string())?;
    out.push((kind, port, fd));
    Ok(())
}

/// Begins a connection to a server inside, on 127.0.0.1 or else on ::1.
pub(crate) fn dial(port: u16) -> Result<OwnedFd, Errno> {
    // Process 1 does nothing else in the meantime.
    const MOMENT: Duration = Duration::from_millis(20);
    netns::dial(netns::loopback_v4(port), MOMENT)
        .or_else(|first| netns::dial(netns::loopback_v6(port), MOMENT).map_err(|_| first))
        .map_err(|error| error.errno)
}
