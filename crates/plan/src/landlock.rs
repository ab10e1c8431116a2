//! Path rules to Landlock access sets: the second layer for files.

use ringfence_policy::HostPath;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// Paths, opened after the mounts are made; a path that does not exist then is left out. On a path that is no folder
    /// only the rights that a file can have are asked for (landlock_add_rule(2), EINVAL).
    pub rules: Vec<(HostPath, AccessSet)>,
    /// Scope abstract Unix sockets and signals to the sandbox (ABI 6).
    pub scopes: bool,
}

/// The ABI that has every scope that is asked for (Linux 6.12: abstract sockets and signals).
pub(crate) const SCOPES_ABI: u32 = 6;

/// Rules that say what the mounts say: reading everything that can be seen, writing where it was made possible, and into
/// what exists in `/dev` and `/proc`. What a cover hides lies in these rules too; that it is hidden is the mounts' work,
/// since a Landlock rule can only open.
pub(crate) fn build(abi: u32, writable: &[HostPath]) -> LandlockPlan {
    if abi == 0 {
        return LandlockPlan { abi, rules: Vec::new(), scopes: false };
    }
    let mut rules: BTreeMap<HostPath, AccessSet> = BTreeMap::new();
    rules.insert(HostPath::root(), AccessSet::Read);
    let dev = HostPath::root().join("dev");
    rules.insert(dev.join("shm"), AccessSet::Full);
    rules.insert(dev.join("mqueue"), AccessSet::Full);
    rules.insert(dev, AccessSet::WriteExisting);
    rules.insert(HostPath::root().join("proc"), AccessSet::WriteExisting);
    rules.extend(writable.iter().map(|path| (path.clone(), AccessSet::Full)));
    LandlockPlan { abi, rules: rules.into_iter().collect(), scopes: abi >= SCOPES_ABI }
}
