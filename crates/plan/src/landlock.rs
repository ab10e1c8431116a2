//! Path rules to Landlock access sets: the second layer for files.

use ringfence_policy::HostPath;
use serde::Serialize;

/// What is allowed below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessSet {
    /// Read, list and execute.
    Read,
    /// Read, and write into what exists (devices, `/proc/self`), with device ioctls; nothing can be made or removed.
    WriteExisting,
    /// Everything.
    Full,
}

/// The rule set put on the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LandlockPlan {
    /// The ABI that is required; 0: the layer is not used.
    pub abi: u32,
    /// Paths, opened after the mounts are made; a path that does not exist then is left out.
    pub rules: Vec<(HostPath, AccessSet)>,
    /// Scope abstract Unix sockets and signals to the sandbox (ABI 6).
    pub scopes: bool,
}
