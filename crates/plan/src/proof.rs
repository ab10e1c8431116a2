//! What is tried inside the finished sandbox before the command starts.

use ringfence_policy::HostPath;
use serde::Serialize;

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
