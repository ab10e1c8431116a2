//! The messages between launcher, process 1 and the command's process.
//!
//! One message is one packet. All three are the same program at the same version, so the format needs no version.

use super::error::{Step, Surprise};
use ringfence_sys::{Errno, SysError};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listens {
    /// Connections to any IPv4 address on a port of the policy.
    TransparentV4,
    /// Connections to any IPv6 address on a port of the policy.
    TransparentV6,
    /// DNS over UDP.
    DnsUdp,
    /// DNS over TCP.
    DnsTcp,
    /// The HTTP proxy.
    Http,
    /// The SOCKS5 proxy.
    Socks,
    /// A port of a host server, on 127.0.0.1.
    HostPortV4,
    /// A port of a host server, on ::1.
    HostPortV6,
}

impl Listens {
    const ALL: [Self; 8] = [
        Self::TransparentV4,
        Self::TransparentV6,
        Self::DnsUdp,
        Self::DnsTcp,
        Self::Http,
        Self::Socks,
        Self::HostPortV4,
        Self::HostPortV6,
    ];
}

/// A failed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// The path, port or program concerned.
    pub(crate) path: PathBuf,
    pub(crate) error: SysError,
}

impl Failure {
    pub(crate) fn new(step: Step, path: impl AsRef<Path>, error: SysError) -> Self {
        Self { step, path: path.as_ref().to_owned(), error }
    }
}

/// Marks the error of a folder that may not be made; no system call has this name.
pub(crate) const NOT_OURS: &str = "not ours";

/// Adds step and path to a failed call.
pub(crate) trait During<T> {
    fn during(self, step: Step, path: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T> During<T> for Result<T, SysError> {
    fn during(self, step: Step, path: impl AsRef<Path>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(step, path, error))
    }
}

/// What process 1 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FromInit {
    /// These listeners come with this message, in this order.
    Listeners(Vec<(Listens, u16)>),
    /// The walls of process 1 stand. The terminal's master comes with it, if there is one.
    Ready { ipv6: bool, vanished: u32 },
    /// A step failed; process 1 ends.
    Failed(Failure),
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command runs again.
    Continued,
    /// The command ended with this status; everything inside is gone.
    Exited(i32),
    /// The command was ended by this signal; everything inside is gone.
    Signaled(i32),
    /// A connection inside was begun, and comes with this message, or this is why not.
    Dialed { id: u32, result: Result<(), Errno> },
}

/// What the launcher says to process 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToInit {
    /// The id maps are written.
    Mapped,
    /// A signal for the command.
    Signal { group: bool, signal: i32 },
    /// Connect to this port inside.
    Dial { id: u32, port: u16 },
}

/// What the command's process says before it executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FromCommand {
    /// All rows came out right, in this many microseconds; it waits for [`Go`](ToCommand::Go).
    Proved { micros: u32 },
    /// This row came out wrong.
    Surprised { row: u32, surprise: Surprise },
    /// A step failed.
    Failed(Failure),
}

/// What the launcher says to the command's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToCommand {
    /// Where the launcher listens outside.
    Plants(Plants),
    /// Nothing arrived outside: execute.
    Go,
}

/// Where the launcher listens outside, for the proof.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plants {
    pub(crate) launcher: i32,
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    pub(crate) abstract_name: Vec<u8>,
    /// Per row that needs one, in the order of the rows.
    pub(crate) unix: Vec<PathBuf>,
}

/// Bytes of a message.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn tag(tag: u8) -> Self {
        Self(vec![tag])
    }
    fn u8(mut self, n: u8) -> Self {
        self.0.push(n);
        self
    }
    fn u16(mut self, n: u16) -> Self {
        self.0.extend_from_slice(&n.to_ne_bytes());
        self
    }
    fn u32(mut self, n: u32) -> Self {
        self.0.extend_from_slice(&n.to_ne_bytes());
        self
    }
    fn i32(self, n: i32) -> Self {
        self.u32(n.cast_unsigned())
    }
    /// At most 4,200 bytes, which is more than a path can have; a longer argument of a call is cut.
    fn bytes(mut self, bytes: &[u8]) -> Self {
        let bytes = bytes.get(..4200).unwrap_or(bytes);
        self = self.u16(u16::try_from(bytes.len()).unwrap_or(0));
        self.0.extend_from_slice(bytes);
        self
    }
    fn failure(self, failure: &Failure) -> Self {
        self.u8(failure.step.code())
            .i32(failure.error.errno.raw_os_error())
            .bytes(failure.path.as_os_str().as_bytes())
            .bytes(failure.error.call.as_bytes())
            .bytes(failure.error.args.as_bytes())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }
    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_ne_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }
    fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }
    /// `Some(None)` is no error; a number that cannot be one makes the message unreadable.
    fn errno(&mut self) -> Option<Option<Errno>> {
        match self.i32()? {
            0 => Some(None),
            n @ 1..=4095 => Some(Some(Errno::from_raw_os_error(n))),
            _ => None,
        }
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.u16()?;
        self.take(usize::from(n))
    }
    fn path(&mut self) -> Option<PathBuf> {
        self.bytes().map(|b| PathBuf::from(OsString::from_vec(b.to_vec())))
    }
    fn text(&mut self) -> Option<String> {
        self.bytes().map(|b| String::from_utf8_lossy(b).into_owned())
    }
    fn failure(&mut self) -> Option<Failure> {
        let step = Step::from_code(self.u8()?)?;
        let errno = self.errno()??;
        let path = self.path()?;
        let call = self.text()?;
        Some(Failure { step, path, error: SysError::new(call, self.text()?, errno) })
    }
}

impl FromInit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Listeners(list) => {
                let start = Writer::tag(0).u16(u16::try_from(list.len()).unwrap_or(0));
                list.iter().fold(start, |w, (kind, port)| {
                    let code = Listens::ALL.iter().position(|k| k == kind).unwrap_or(usize::from(u8::MAX));
                    w.u8(u8::try_from(code).unwrap_or(u8::MAX)).u16(*port)
                })
            }
            Self::Ready { ipv6, vanished } => Writer::tag(1).u8(u8::from(*ipv6)).u32(*vanished),
            Self::Failed(failure) => Writer::tag(2).failure(failure),
            Self::Stopped(signal) => Writer::tag(3).i32(*signal),
            Self::Continued => Writer::tag(4),
            Self::Exited(status) => Writer::tag(5).i32(*status),
            Self::Signaled(signal) => Writer::tag(6).i32(*signal),
            Self::Dialed { id, result } => {
                Writer::tag(7).u32(*id).i32(result.as_ref().err().map_or(0, |e| e.raw_os_error()))
            }
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        Some(match r.u8()? {
            0 => {
                let n = r.u16()?;
                let mut list = Vec::with_capacity(usize::from(n));
                for _ in 0..n {
                    let kind = Listens::ALL.get(usize::from(r.u8()?)).copied()?;
                    list.push((kind, r.u16()?));
                }
                Self::Listeners(list)
            }
            1 => Self::Ready { ipv6: r.u8()? != 0, vanished: r.u32()? },
            2 => Self::Failed(r.failure()?),
            3 => Self::Stopped(r.i32()?),
            4 => Self::Continued,
            5 => Self::Exited(r.i32()?),
            6 => Self::Signaled(r.i32()?),
            7 => {
                let id = r.u32()?;
                let result = r.errno()?.map_or(Ok(()), Err);
                Self::Dialed { id, result }
            }
            _ => return None,
        })
    }
}

impl ToInit {
    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Mapped => Writer::tag(0),
            Self::Signal { group, signal } => Writer::tag(1).u8(u8::from(group)).i32(signal),
            Self::Dial { id, port } => Writer::tag(2).u32(id).u16(port),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        Some(match r.u8()? {
            0 => Self::Mapped,
            1 => Self::Signal { group: r.u8()? != 0, signal: r.i32()? },
            2 => Self::Dial { id: r.u32()?, port: r.u16()? },
            _ => return None,
        })
    }
}

impl FromCommand {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Proved { micros } => Writer::tag(0).u32(*micros),
            Self::Surprised { row, surprise } => {
                let (kind, errno) = match surprise {
                    Surprise::Worked => (0, 0),
                    Surprise::Failed(errno) => (1, errno.raw_os_error()),
                    Surprise::Arrived => (2, 0),
                };
                Writer::tag(1).u32(*row).u8(kind).i32(errno)
            }
            Self::Failed(failure) => Writer::tag(2).failure(failure),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        Some(match r.u8()? {
            0 => Self::Proved { micros: r.u32()? },
            1 => {
                let row = r.u32()?;
                let kind = r.u8()?;
                let errno = r.errno()?;
                let surprise = match kind {
                    0 => Surprise::Worked,
                    1 => Surprise::Failed(errno?),
                    2 => Surprise::Arrived,
                    _ => return None,
                };
                Self::Surprised { row, surprise }
            }
            2 => Self::Failed(r.failure()?),
            _ => return None,
        })
    }
}

impl ToCommand {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Plants(p) => {
                let w = Writer::tag(0).i32(p.launcher).u16(p.tcp).u16(p.udp).bytes(&p.abstract_name);
                let w = w.u16(u16::try_from(p.unix.len()).unwrap_or(0));
                p.unix.iter().fold(w, |w, path| w.bytes(path.as_os_str().as_bytes()))
            }
            Self::Go => Writer::tag(1),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        Some(match r.u8()? {
            0 => {
                let (launcher, tcp, udp) = (r.i32()?, r.u16()?, r.u16()?);
                let abstract_name = r.bytes()?.to_vec();
                let n = r.u16()?;
                let unix = (0..n).map(|_| r.path()).collect::<Option<Vec<_>>>()?;
                Self::Plants(Plants { launcher, tcp, udp, abstract_name, unix })
            }
            1 => Self::Go,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Failure {
        let path = PathBuf::from(OsString::from_vec(b"/a\xff".to_vec()));
        Failure::new(Step::Execute, path, SysError::new("execve", "x", Errno::NOEXEC))
    }

    #[test]
    fn every_message_survives_the_way() {
        let from_init = [
            FromInit::Listeners(vec![(Listens::DnsUdp, 53), (Listens::HostPortV6, 5432)]),
            FromInit::Ready { ipv6: true, vanished: 3 },
            FromInit::Failed(failure()),
            FromInit::Stopped(20),
            FromInit::Continued,
            FromInit::Exited(7),
            FromInit::Signaled(9),
            FromInit::Dialed { id: 4, result: Err(Errno::CONNREFUSED) },
            FromInit::Dialed { id: 5, result: Ok(()) },
        ];
        for m in from_init {
            assert_eq!(FromInit::decode(&m.encode()), Some(m));
        }
        for m in [ToInit::Mapped, ToInit::Signal { group: true, signal: 2 }, ToInit::Dial { id: 1, port: 3000 }] {
            assert_eq!(ToInit::decode(&m.encode()), Some(m));
        }
        let from_command = [
            FromCommand::Proved { micros: 120 },
            FromCommand::Surprised { row: 2, surprise: Surprise::Failed(Errno::ACCESS) },
            FromCommand::Surprised { row: 3, surprise: Surprise::Worked },
            FromCommand::Failed(failure()),
        ];
        for m in from_command {
            assert_eq!(FromCommand::decode(&m.encode()), Some(m));
        }
        let plants = Plants { launcher: 77, tcp: 1, udp: 2, abstract_name: b"x".to_vec(), unix: vec!["/s".into()] };
        for m in [ToCommand::Plants(plants), ToCommand::Go] {
            assert_eq!(ToCommand::decode(&m.encode()), Some(m));
        }
    }

    #[test]
    fn a_cut_message_is_none() {
        let whole = FromInit::Failed(failure()).encode();
        for n in 0..whole.len() {
            assert_eq!(FromInit::decode(&whole[..n]), None, "{n}");
        }
    }

    #[test]
    fn the_longest_path_fits_a_packet() {
        let long = PathBuf::from("/".repeat(4096));
        let failure =
            Failure::new(Step::Bind, &long, SysError::new("openat2", format!("{long:?}"), Errno::NAMETOOLONG));
        let bytes = FromInit::Failed(failure).encode();
        assert!(bytes.len() < 16384);
        let Some(FromInit::Failed(back)) = FromInit::decode(&bytes) else { panic!("not a failure") };
        assert_eq!(back.path, long);
    }

    #[test]
    fn every_step_has_its_own_code() {
        for code in 0..31 {
            assert_eq!(Step::from_code(code).map(Step::code), Some(code));
        }
        assert_eq!(Step::from_code(31), None);
    }
}
