//! Which Unix sockets are listened to in this network namespace, by the file that they are bound to (sock_diag(7)).
//!
//! A Unix socket belongs to the network namespace in which it was made, although its file can be seen from others. So
//! the kernel's own list tells the sockets of a sandbox from those of its host.

use crate::{Context, Errno, SysError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, StatxFlags};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// A connection to the kernel over which it is asked.
#[derive(Debug)]
pub struct Listening {
    netlink: OwnedFd,
}

/// The file that a socket is bound to: number of its inode (the low 32 bits, which is all that the kernel tells) and of
/// its file system's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundFile {
    inode: u32,
    major: u32,
    minor: u32,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `TCP_LISTEN` of net/tcp_states.h, as a bit.
const STATE_LISTEN: u32 = 1 << 10;
const UDIAG_SHOW_VFS: u32 = 2;
const UNIX_DIAG_VFS: u16 = 1;
/// Sizes of `struct nlmsghdr`, `struct unix_diag_msg` and `struct rtattr`.
const HEADER: usize = 16;
const MESSAGE: usize = 16;
const ATTRIBUTE: usize = 4;

impl Listening {
    /// Opens the connection, in the network namespace of this thread. Whether the kernel can answer about Unix sockets
    /// shows only when it is asked.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> Result<Self, SysError> {
        let netlink =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))
                .at("socket", || "AF_NETLINK, NETLINK_SOCK_DIAG".to_owned())?;
        Ok(Self { netlink })
    }

    /// The files of all Unix sockets that are listened to.
    ///
    /// # Errors
    /// The kernel refuses, or answers what cannot be read.
    pub fn files(&self) -> Result<Vec<BoundFile>, SysError> {
        let told = || "NETLINK_SOCK_DIAG".to_owned();
        rustix::net::send(&self.netlink, &request(), SendFlags::empty()).at("send", told)?;
        let mut files = Vec::new();
        // The kernel fills a buffer of this size at most (netlink_dump).
        let mut buffer = vec![0u8; 32 << 10];
        loop {
            let (count, _) = rustix::net::recv(&self.netlink, &mut buffer[..], RecvFlags::empty()).at("recv", told)?;
            let mut rest = buffer.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                let malformed = || SysError::new("recv", "NETLINK_SOCK_DIAG", Errno::BADMSG);
                let length = word(rest, 0).and_then(|n| usize::try_from(n).ok()).ok_or_else(malformed)?;
                let body = rest.get(HEADER..length).ok_or_else(malformed)?;
                match half(rest, 4) {
                    Some(NLMSG_DONE) => return Ok(files),
                    Some(NLMSG_ERROR) => {
                        let errno = word(body, 0).map_or(22, |n| n.cast_signed().wrapping_neg());
                        return Err(Errno::from_raw_os_error(errno)).at("recv", told);
                    }
                    _ => files.extend(bound_file(body)),
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`: every listening socket, with its file.
fn request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    bytes.extend_from_slice(&40u32.to_ne_bytes());
    bytes.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    // sdiag_family (AF_UNIX), sdiag_protocol, padding.
    bytes.extend_from_slice(&[1, 0, 0, 0]);
    for field in [STATE_LISTEN, 0, UDIAG_SHOW_VFS, u32::MAX, u32::MAX] {
        bytes.extend_from_slice(&field.to_ne_bytes());
    }
    bytes
}

/// `struct unix_diag_vfs` among the attributes of one answer.
fn bound_file(message: &[u8]) -> Option<BoundFile> {
    let mut rest = message.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let length = usize::from(length);
        if kind == UNIX_DIAG_VFS {
            let (inode, device) = (word(rest, ATTRIBUTE)?, word(rest, ATTRIBUTE + 4)?);
            // The kernel's own form of a device number: 12 bits and 20 bits (linux/kdev_t.h).
            return Some(BoundFile { inode, major: device >> 20, minor: device & 0xf_ffff });
        }
        rest = rest.get(length.max(ATTRIBUTE).next_multiple_of(4)..)?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

impl BoundFile {
    /// Of an open file.
    ///
    /// # Errors
    /// statx(2) fails.
    pub fn of(file: impl AsFd) -> Result<Self, SysError> {
        Self::look(file.as_fd()).map(|(bound, _)| bound)
    }

    /// Of an open file, with the device of its mount, which on some file systems (btrfs) is another than the one that
    /// stat(2) tells. No two file systems share a number, so neither form is ever another's. Slow: asked where
    /// [`BoundFile::of`] is not known.
    ///
    /// # Errors
    /// statx(2) fails.
    pub fn by_mount(file: impl AsFd) -> Result<Self, SysError> {
        let (bound, mount) = Self::look(file.as_fd())?;
        let (major, minor) = mount_device(mount).unwrap_or((bound.major, bound.minor));
        Ok(Self { major, minor, ..bound })
    }

    fn look(file: rustix::fd::BorrowedFd<'_>) -> Result<(Self, u64), SysError> {
        let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::MNT_ID);
        let found = found.at("statx", || "AT_EMPTY_PATH".to_owned())?;
        let inode = u32::try_from(found.stx_ino & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        Ok((Self { inode, major: found.stx_dev_major, minor: found.stx_dev_minor }, found.stx_mnt_id))
    }
}

/// The device of a mount, by its number (proc_pid_mountinfo(5), fields 1 and 3).
fn mount_device(mount: u64) -> Option<(u32, u32)> {
    let table = crate::file::read_text("/proc/self/mountinfo").ok()?;
    let wanted = mount.to_string();
    let line = table.lines().find(|line| line.split(' ').next() == Some(wanted.as_str()))?;
    let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_listening_socket_is_found_by_its_file_and_an_ended_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let open = || rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        let asker = Listening::open().unwrap();
        let wanted = [BoundFile::of(open()).unwrap(), BoundFile::by_mount(open()).unwrap()];
        let found = || asker.files().unwrap().iter().any(|file| wanted.contains(file));
        assert!(found());
        drop(listener);
        assert!(!found());
    }
}
