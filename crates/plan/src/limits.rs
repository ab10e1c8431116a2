//! Limits to rlimits and control groups.

use crate::facts::{CgroupFacts, HostFacts};
use crate::status::Status;
use ringfence_policy::{HostPath, Limits, Origin};
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
    /// `RLIMIT_DATA`, bytes of private writable memory per process. Unlike the address space, it does not count what a
    /// runtime only reserves (getrlimit(2), since Linux 4.7).
    Data,
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
    pub parent: HostPath,
    /// File and value, such as `memory.max` and `1048576`.
    pub settings: Vec<(String, String)>,
}

/// A limit that nothing on this host can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unheld {
    pub(crate) limit: &'static str,
    pub(crate) why: String,
    pub(crate) origin: Origin,
}

/// Limits, what of them cannot be held at all, and how well the rest holds.
pub(crate) fn build(limits: &Limits, facts: &HostFacts) -> (LimitsPlan, Vec<Unheld>, Status) {
    let mut plan = LimitsPlan { wall: limits.wall.as_ref().map(|wall| wall.value), ..LimitsPlan::default() };
    let mut unheld = Vec::new();
    let mut weaker = Vec::new();
    let mut group = Vec::new();
    let (folder, controllers, why_none) = match &facts.cgroup {
        CgroupFacts::Delegated { path, controllers } => (Some(path), controllers.as_slice(), "not delegated"),
        CgroupFacts::None { why } => (None, [].as_slice(), why.as_str()),
    };
    let has = |name: &str| controllers.iter().any(|controller| controller == name);
    if let Some(memory) = &limits.memory {
        if has("memory") {
            group.push(("memory.max".to_owned(), memory.value.to_string()));
            // Swap would let the sandbox go on at the machine's expense.
            group.push(("memory.swap.max".to_owned(), "0".to_owned()));
        } else {
            plan.rlimits.push((Rlimit::Data, memory.value));
            weaker
                .push(format!("memory: for each process, not for all together (no memory control group: {why_none})"));
        }
    }
    if let Some(pids) = &limits.pids {
        if has("pids") {
            group.push(("pids.max".to_owned(), pids.value.to_string()));
        } else if facts.uid == 0 {
            // copy_process() in the kernel does not count the processes of its own root user.
            unheld.push(Unheld {
                limit: "pids",
                why: format!(
                    "the kernel does not limit the processes of root by itself (no pids control group: {why_none})"
                ),
                origin: pids.origin.clone(),
            });
        } else {
            plan.rlimits.push((Rlimit::Processes, pids.value));
        }
    }
    if let Some(disk) = &limits.disk {
        plan.rlimits.push((Rlimit::FileSize, disk.value));
        weaker.push("disk: for each file, not for all together".to_owned());
    }
    if let Some(cpu) = &limits.cpu {
        plan.rlimits.push((Rlimit::Cpu, cpu.value.as_secs().max(1)));
        weaker.push("cpu: for each process, not for all together".to_owned());
    }
    if let Some(files) = &limits.open_files {
        plan.rlimits.push((Rlimit::OpenFiles, files.value));
    }
    if let Some(parent) = folder.filter(|_| !group.is_empty()) {
        plan.cgroup = Some(CgroupPlan { parent: parent.clone(), settings: group });
    }
    let status = match (weaker.is_empty(), plan == LimitsPlan::default()) {
        (false, _) => Status::Weaker(weaker.join("; ")),
        (true, true) => Status::Unused,
        (true, false) => Status::Enforced,
    };
    (plan, unheld, status)
}
