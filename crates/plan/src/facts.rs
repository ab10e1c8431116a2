//! What this host can do, as plain data; gathered by `ringfence_enforce::probe`.

use ringfence_policy::HostPath;
use serde::Serialize;

/// Facts about the host and the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostFacts {
    /// Kernel release, major and minor.
    pub kernel: (u32, u32),
    /// Landlock ABI; 0: not there.
    pub landlock_abi: u32,
    /// Whether an ordinary process may make a user namespace, and what forbids it if not.
    pub userns: Availability,
    /// Whether a fresh `/proc` may be mounted in a new user namespace (not where the host's own is partly covered, as in
    /// many containers).
    pub proc_mount: Availability,
    /// seccomp filters, and user notification.
    pub seccomp: Availability,
    /// Where limits over all processes can be set.
    pub cgroup: CgroupFacts,
    /// Effective user number.
    pub uid: u32,
    /// Effective group number.
    pub gid: u32,
    /// The user's name, as in the password database.
    pub user_name: Option<String>,
    /// The real home folder.
    pub home: HostPath,
    /// Folders and files of the home that hold the tools that `PATH` and the toolchains name: shown read-only.
    pub toolchains: Vec<Toolchain>,
    /// Git directories of the workspace that lie outside of it.
    pub git_dirs: Vec<HostPath>,
    /// Files that decide how names are resolved, after following symlinks: resolv.conf, hosts, nsswitch.conf.
    pub resolver: ResolverFiles,
    /// Paths of Unix sockets that are bound on the host now (`/proc/net/unix`), without abstract ones.
    pub unix_sockets: Vec<HostPath>,
    /// Mounts of the host (`/proc/self/mountinfo`), in the order in which they were made.
    pub mounts: Vec<MountFact>,
}

/// A mount of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MountFact {
    /// Where.
    pub point: HostPath,
    /// Which folder of the file system is mounted there.
    pub root: HostPath,
    /// Major and minor number of the file system's device, as text; equal for two mounts of one file system.
    pub device: String,
    /// Type of the file system.
    pub fs_type: String,
}

/// Whether something can be had, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// It can.
    Yes,
    /// It cannot, because of this; with a remedy.
    No {
        /// The reason.
        why: String,
        /// What to do.
        remedy: String,
    },
}

/// Control groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupFacts {
    /// A cgroup v2 folder that is delegated to us, with its controllers.
    Delegated {
        /// The folder in which a child group may be made.
        path: HostPath,
        /// Controllers, such as `memory` and `pids`.
        controllers: Vec<String>,
    },
    /// None.
    None {
        /// Why.
        why: String,
    },
}

/// A tool's folder or file in the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Toolchain {
    /// What is shown.
    pub path: HostPath,
    /// Why: `PATH entry`, `rustup toolchains`.
    pub why: String,
}

/// Where the resolver's files are after following symlinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ResolverFiles {
    /// `/etc/resolv.conf`.
    pub resolv_conf: Option<HostPath>,
    /// `/etc/hosts`.
    pub hosts: Option<HostPath>,
    /// `/etc/nsswitch.conf`.
    pub nsswitch: Option<HostPath>,
    /// The content of the host's nsswitch.conf, of which everything but the `hosts` line is kept.
    pub nsswitch_text: Option<String>,
    /// The host's name.
    pub hostname: String,
}
