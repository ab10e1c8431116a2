//! What is tried inside the finished sandbox before the command starts.

use crate::doors::{DoorsPlan, PROBE_V4, RESOLVER};
use crate::layout::Want;
use crate::mounts::MountOp;
use crate::survey::{Survey, kernel};
use ringfence_policy::HostPath;
use serde::Serialize;

/// Name of the file in the state folder that the launcher plants and that must not be read.
pub const DECOY: &str = "decoy";
/// Name of the socket in the state folder that the launcher listens on and that must not be reached.
pub const DECOY_SOCKET: &str = "decoy.sock";

/// The table, tried by the very process that then executes the command, under its final restrictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProofPlan {
    /// Whether it is tried; off only by an explicit word.
    pub enabled: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One attempt and what must come of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it shows, for messages: `write outside the writable roots`.
    pub name: String,
    /// The attempt.
    pub attempt: Attempt,
    /// `true`: it must work. `false`: it must fail.
    pub must_work: bool,
}

/// An attempt. Those that need a listener or a process on the host get it from the launcher.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attempt {
    /// Open for reading.
    Read(HostPath),
    /// Create a file with a fresh name in this folder; removed again when that worked.
    CreateIn(HostPath),
    /// Open an existing file for writing, without changing it.
    OpenWrite(HostPath),
    /// Connect to a TCP listener that the launcher holds on the host's loopback.
    HostTcp,
    /// Send to a UDP socket that the launcher holds on the host's loopback.
    HostUdp,
    /// Connect to a Unix stream socket that the launcher planted at this path.
    HostUnix(HostPath),
    /// Connect to an abstract Unix socket that the launcher holds.
    HostAbstract,
    /// Connect to this port on this address inside.
    Connect(String, u16),
    /// `socket(2)` with this family, type and protocol.
    Socket(i32, i32, i32),
    /// `unshare(CLONE_NEWUSER)`.
    NewUserNamespace,
    /// `io_uring_setup(2)`.
    IoUring,
    /// Signal 0 to process 1, which holds the walls (attempted with ptrace, too).
    TraceInit,
    /// Signal 0 to the launcher by its number outside.
    SignalLauncher,
    /// `mount(2)` of a temporary file system.
    Mount,
}

/// How many covers are tried; the first ones, in the order of the plan.
const COVERS_TRIED: usize = 8;

// Families and types of socket(2).
const AF_UNIX: i32 = 1;
const AF_INET: i32 = 2;
const AF_NETLINK: i32 = 16;
const AF_PACKET: i32 = 17;
const AF_ALG: i32 = 38;
const AF_VSOCK: i32 = 40;
const STREAM: i32 = 1;
const DATAGRAM: i32 = 2;
const RAW: i32 = 3;
const SEQPACKET: i32 = 5;
const ICMP: i32 = 1;
const KOBJECT_UEVENT: i32 = 15;

/// The table for a plan.
pub(crate) fn build(survey: &Survey<'_>, mounts: &[MountOp], doors: &DoorsPlan, filtered: bool) -> ProofPlan {
    let mut rows = Vec::new();
    let mut fails = |name: &str, attempt| rows.push(Row { name: name.to_owned(), attempt, must_work: false });
    for folder in read_only_folders(survey) {
        fails("write outside the writable roots", Attempt::CreateIn(folder));
    }
    for setting in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"] {
        fails("write a setting of the machine", Attempt::OpenWrite(kernel(setting)));
    }
    let state = &survey.request.state_dir;
    fails("read a file that is hidden", Attempt::Read(state.join(DECOY)));
    for cover in covers(mounts).take(COVERS_TRIED) {
        fails("read what is covered", Attempt::Read(cover.clone()));
    }
    fails("reach a service on the host's loopback", Attempt::HostTcp);
    fails("send a datagram to the host", Attempt::HostUdp);
    fails("reach a Unix socket of the host", Attempt::HostUnix(state.join(DECOY_SOCKET)));
    fails("reach an abstract socket of the host", Attempt::HostAbstract);
    fails("trace process 1", Attempt::TraceInit);
    fails("signal a process outside", Attempt::SignalLauncher);
    fails("mount a file system", Attempt::Mount);
    fails("make a user namespace", Attempt::NewUserNamespace);
    // Without capabilities and outside of the host's network these two fail in any case.
    fails("open a packet socket", Attempt::Socket(AF_PACKET, RAW, 0));
    fails("open a raw socket", Attempt::Socket(AF_INET, RAW, ICMP));
    if filtered {
        fails("use io_uring", Attempt::IoUring);
        fails("open a ping socket", Attempt::Socket(AF_INET, DATAGRAM, ICMP));
        fails("open a datagram Unix socket", Attempt::Socket(AF_UNIX, DATAGRAM, 0));
        fails("open a socket to the hypervisor", Attempt::Socket(AF_VSOCK, STREAM, 0));
        fails("open a socket to the kernel's ciphers", Attempt::Socket(AF_ALG, SEQPACKET, 0));
        fails("listen to the kernel's devices", Attempt::Socket(AF_NETLINK, RAW, KOBJECT_UEVENT));
    }
    let mut works = |name: &str, attempt| rows.push(Row { name: name.to_owned(), attempt, must_work: true });
    for folder in writable_folders(survey) {
        works("write where it is allowed", Attempt::CreateIn(folder));
    }
    works("open a TCP socket", Attempt::Socket(AF_INET, STREAM, 0));
    works("open a Unix socket", Attempt::Socket(AF_UNIX, STREAM, 0));
    if doors.enabled {
        works("reach the HTTP door", Attempt::Connect("127.0.0.1".to_owned(), doors.http));
        works("reach the SOCKS door", Attempt::Connect("127.0.0.1".to_owned(), doors.socks));
        works("reach the DNS door", Attempt::Connect(RESOLVER.to_owned(), 53));
        if let Some(port) = doors.transparent.first() {
            works("reach the transparent door", Attempt::Connect(PROBE_V4.to_owned(), *port));
        }
    }
    ProofPlan { enabled: survey.policy.walls.skip_proof.is_none(), rows }
}

/// Folders in which nothing may be made: of the system, and around the workspace and the home.
fn read_only_folders(survey: &Survey<'_>) -> Vec<HostPath> {
    let around = [survey.policy.workspace.parent(), survey.policy.files.home.path.parent()];
    let mut folders: Vec<HostPath> = ["/", "/etc", "/usr"].iter().map(|path| kernel(path)).collect();
    folders.extend(around.into_iter().flatten());
    folders.push(survey.policy.files.home.path.clone());
    let mut out: Vec<HostPath> =
        folders.into_iter().filter(|folder| survey.layout.want(folder) == Want::ReadOnly).collect();
    out.sort();
    out.dedup();
    out
}

/// The workspace and the usual temporary folder, as far as they can be written to.
fn writable_folders(survey: &Survey<'_>) -> Vec<HostPath> {
    let workspace = survey.resolve(&survey.policy.workspace).map(|(real, _)| real);
    let workspace = workspace.filter(|path| survey.layout.want(path) == Want::Writable);
    let temporary = survey.resolve(&kernel("/tmp")).map(|(real, _)| real);
    let temporary = temporary.filter(|path| {
        survey.layout.node(path).is_some_and(|node| !matches!(node.want, Want::Hidden | Want::ReadOnly))
    });
    workspace.into_iter().chain(temporary).collect()
}

fn covers(mounts: &[MountOp]) -> impl Iterator<Item = &HostPath> {
    mounts.iter().filter_map(|op| match op {
        MountOp::CoverDir { target, .. } | MountOp::CoverFile { target, .. } => Some(target),
        _ => None,
    })
}
