//! Limits to rlimits and control groups.

use serde::Serialize;
use std::time::Duration;

/// Limits as they will be set.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct LimitsPlan {
    /// Resource and value, for setrlimit(2).
    pub rlimits: Vec<(Rlimit, u64)>,
    /// The child group to be made, if one can be.
    pub cgroup: Option<CgroupPlan>,
    /// Wall time.
    pub wall: Option<Duration>,
}

/// A resource of setrlimit(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rlimit {
    /// `RLIMIT_AS`, bytes per process.
    AddressSpace,
    /// `RLIMIT_NPROC`, processes and threads of the sandbox (counted per user namespace since Linux 5.14).
    Processes,
    /// `RLIMIT_FSIZE`, bytes per file.
    FileSize,
    /// `RLIMIT_CPU`, seconds per process.
    Cpu,
    /// `RLIMIT_NOFILE`.
    OpenFiles,
    /// `RLIMIT_CORE`.
    Core,
}

/// A cgroup v2 child group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CgroupPlan {
    /// The delegated folder.
    pub parent: ringfence_policy::HostPath,
    /// File and value, such as `memory.max` and `1048576`.
    pub settings: Vec<(String, String)>,
}
