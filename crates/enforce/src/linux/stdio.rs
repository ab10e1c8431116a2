//! Whether the standard descriptors may be passed on. An open descriptor stands outside of every wall: a folder leads to the
//! host's own mounts, with nothing covered and nothing read-only, and a socket belongs to the network in which it was made.

use super::error::EnforceError;
use ringfence_plan::GuardPlan;
use ringfence_sys::file::{self, FileKind};
use ringfence_sys::process::Stdio;
use ringfence_sys::socket::{self, Conversation};
use ringfence_sys::{Errno, SysError};
use std::os::fd::AsFd;

/// Refuses a standard descriptor through which the command could reach more than what is at its other end.
///
/// # Errors
/// [`EnforceError::Descriptor`] for such a one.
pub(crate) fn check(guard: Option<&GuardPlan>) -> Result<(), EnforceError> {
    for place in Stdio::ALL {
        let Some(fd) = place.borrow() else { continue };
        if let Some(what) = reaches_more(fd, guard).map_err(|source| unknown(place, source))? {
            return Err(EnforceError::Descriptor { name: name(place), what });
        }
    }
    Ok(())
}

fn unknown(place: Stdio, source: SysError) -> EnforceError {
    let what = match place {
        Stdio::Input => "look at standard input",
        Stdio::Output => "look at standard output",
        Stdio::Error => "look at standard error",
    };
    EnforceError::Launch { what, source }
}

fn name(place: Stdio) -> &'static str {
    match place {
        Stdio::Input => "standard input",
        Stdio::Output => "standard output",
        Stdio::Error => "standard error",
    }
}

fn reaches_more(fd: impl AsFd, guard: Option<&GuardPlan>) -> Result<Option<&'static str>, SysError> {
    let fd = fd.as_fd();
    if file::kind(fd)? == FileKind::Dir {
        return Ok(Some("a folder"));
    }
    // Only the guard can tell a socket of another network when it is to be connected anew.
    let is_guarded = guard.is_some() && socket::network_of(fd).is_ok();
    match socket::conversation(fd) {
        Ok(Conversation::Settled) => Ok(None),
        Ok(Conversation::Dissolvable) if is_guarded => Ok(None),
        Ok(Conversation::Dissolvable | Conversation::Open) => Ok(Some("a socket that can reach others than its peer")),
        // Of what was opened with O_PATH nothing can be asked, and nothing be reached but the file itself.
        Err(Errno::NOTSOCK | Errno::BADF) => Ok(None),
        Err(errno) => Err(SysError::new("getsockopt", "a standard descriptor", errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    fn verdict(fd: impl AsFd, guard: Option<&GuardPlan>) -> Option<&'static str> {
        reaches_more(fd, guard).unwrap()
    }

    #[test]
    fn folders_and_open_ended_sockets_are_refused() {
        let guard = GuardPlan { allowed: Vec::new() };
        let some = Some(&guard);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(verdict(File::open(dir.path()).unwrap(), some), Some("a folder"));
        assert!(verdict(UdpSocket::bind("127.0.0.1:0").unwrap(), some).is_some());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(verdict(&listener, some).is_some());
        let (datagrams, _other) = UnixDatagram::pair().unwrap();
        assert!(verdict(datagrams, some).is_some());

        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(verdict(&connected, some), None);
        assert!(verdict(&connected, None).is_some(), "without the guard it could be connected anew");
        let (stream, other) = UnixStream::pair().unwrap();
        assert_eq!(verdict(&stream, None), None);
        drop(other);
        assert_eq!(verdict(stream, None), None, "a peer that is gone already");
        assert_eq!(verdict(File::open("/dev/null").unwrap(), None), None);
        assert_eq!(verdict(File::create(dir.path().join("log")).unwrap(), None), None);
    }
}
