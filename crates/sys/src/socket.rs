//! Socket pairs between our own processes, with descriptors in messages.

use crate::{Context, Errno, SysError};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Most descriptors that a message carries here; the kernel's own bound is 253 (unix(7), `SCM_MAX_FD`).
pub const MAX_FDS: usize = 128;

/// Two ends of a connection that keeps message borders, reliable and ordered (unix(7), `SOCK_SEQPACKET`).
///
/// # Errors
/// socketpair(2) fails.
pub fn pair() -> Result<(OwnedFd, OwnedFd), SysError> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .at("socketpair", || "AF_UNIX, SOCK_SEQPACKET".to_owned())
}

/// What a socket that was made by somebody else is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation {
    /// With one peer, for good: a connected Unix stream or seqpacket socket.
    Settled,
    /// With one peer, until connect(2) dissolves that with `AF_UNSPEC`: a connected TCP socket.
    Dissolvable,
    /// With whomever it likes: it takes connections, has no peer yet, or names one with every message.
    Open,
}

/// Finds that out.
///
/// # Errors
/// It is no socket (`ENOTSOCK`).
pub fn conversation(socket: impl AsFd) -> Result<Conversation, Errno> {
    let socket = socket.as_fd();
    let (family, kind) = (sockopt::socket_domain(socket)?, sockopt::socket_type(socket)?);
    let connected = rustix::net::getpeername(socket).is_ok();
    Ok(match (family, kind) {
        (AddressFamily::UNIX, SocketType::STREAM | SocketType::SEQPACKET) if connected => Conversation::Settled,
        (AddressFamily::INET | AddressFamily::INET6, SocketType::STREAM) if connected => Conversation::Dissolvable,
        _ => Conversation::Open,
    })
}

/// A number that stands for the network namespace in which a socket was made, and for no other until the machine starts
/// anew (socket(7), `SO_NETNS_COOKIE`, Linux 5.14).
///
/// # Errors
/// `ENOTSOCK`; `ENOPROTOOPT`: the kernel is older.
pub fn network_of(socket: impl AsFd) -> Result<u64, Errno> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let mut cookie = 0u64;
    let mut length = libc::socklen_t::try_from(size_of::<u64>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, and the length to `length` (getsockopt(2)).
    let done = unsafe {
        libc::getsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd()),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(cookie) } else { Err(crate::last_errno()) }
}

/// Sends one message with descriptors. A peer that is gone is an error, not a signal.
///
/// # Errors
/// sendmsg(2) fails; `EMSGSIZE`: more than [`MAX_FDS`] descriptors.
pub fn send(to: impl AsFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SysError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if fds.len() > MAX_FDS || (!fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds))) {
        return Err(SysError::new("sendmsg", format!("{} descriptors", fds.len()), Errno::MSGSIZE));
    }
    rustix::io::retry_on_intr(|| rustix::net::sendmsg(&to, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL))
        .map(drop)
        .at("sendmsg", || format!("{} bytes, {} descriptors", message.len(), fds.len()))
}

/// A message that arrived.
#[derive(Debug, Default)]
pub struct Received {
    /// Its bytes; empty when the peer is gone.
    pub bytes: Vec<u8>,
    /// Its descriptors, close-on-exec.
    pub fds: Vec<OwnedFd>,
}

/// Takes one message. The peer's end is an empty message; `None` when there is none now and the call does not wait.
///
/// # Errors
/// recvmsg(2) fails, or the message did not fit (`EMSGSIZE`).
pub fn receive(from: impl AsFd, blocking: crate::file::Blocking) -> Result<Option<Received>, SysError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = [0u8; 16384];
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    if blocking == crate::file::Blocking::No {
        flags |= RecvFlags::DONTWAIT;
    }
    let got = loop {
        match rustix::net::recvmsg(&from, &mut [IoSliceMut::new(&mut buffer)], &mut control, flags) {
            Ok(got) => break got,
            Err(Errno::AGAIN) if blocking == crate::file::Blocking::No => return Ok(None),
            // A peer that closed with unread messages resets the connection: told once, before what it sent last.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(errno) => return Err(errno).at("recvmsg", String::new),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(SysError::new("recvmsg", "message does not fit", Errno::MSGSIZE));
    }
    Ok(Some(Received { bytes: buffer.get(..got.bytes).unwrap_or_default().to_vec(), fds }))
}
