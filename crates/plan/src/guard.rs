//! The guard over connect(2).

use ringfence_policy::HostPath;
use serde::Serialize;

/// Every connect(2) of the command waits for process 1, which makes it on the command's behalf: no mount and no
/// network namespace keeps a program from a Unix socket whose file it can see (connect(2), unix(7)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardPlan {
    /// Files of sockets of programs outside that may be reached. The sandbox's own always may.
    pub allowed: Vec<HostPath>,
}

/// The calls about which process 1 is asked; see [`crate::seccomp::table`].
pub(crate) const GUARDED: &[&str] = &["connect"];

/// The oldest kernel on which descriptors and memory of another process can be had for it (pidfd_getfd(2)).
pub(crate) const GUARD_KERNEL: (u32, u32) = (5, 9);
