//! What a run may use up.

use crate::origin::Origin;
use serde::Serialize;
use std::time::Duration;

/// A value and who set it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit<T> {
    /// The value.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// The limits of a run; `None` means that none was set.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Limits {
    /// Memory in bytes, over all processes where a cgroup can be had, per process elsewhere.
    pub memory: Option<Limit<u64>>,
    /// Processes and threads.
    pub pids: Option<Limit<u64>>,
    /// Bytes written, over all writable roots; per file where nothing better can be had.
    pub disk: Option<Limit<u64>>,
    /// Wall time, after which the whole tree is ended.
    pub wall: Option<Limit<Duration>>,
    /// CPU time.
    pub cpu: Option<Limit<Duration>>,
    /// Open files per process.
    pub open_files: Option<Limit<u64>>,
}
