//! Path rules to mount operations.
//!
//! The order is the meaning: the tree is frozen first, then what a layout says is put on it from the root downwards,
//! so that a denial inside a grant holds, and a grant inside a denial works. An operation is made only where the word of
//! a node differs from what already stands there.

use ringfence_policy::HostPath;
use serde::Serialize;

mod emit;

pub(crate) use emit::{Given, emit};

/// Flags of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct MountFlags {
    /// `MOUNT_ATTR_RDONLY`.
    pub read_only: bool,
    /// `MOUNT_ATTR_NOEXEC`.
    pub no_exec: bool,
}

/// One step of process 1 in its own mount namespace. `nosuid` and `nodev` hold everywhere (but for the nodes of `/dev`).
///
/// The executor opens the sources of all [`MountOp::Bind`] steps before the first step (`open_tree`, without following
/// symlinks in any component), because later steps cover and freeze what they point to. It resolves targets without
/// following symlinks either: a private home is a folder in which an earlier command could put any link it liked.
///
/// What already stands at a target in a file system of ours (the private home persists) is kept when it is of the right
/// kind, and moved aside when it is not. No step fails because something exists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountOp {
    /// Make the whole tree read-only, `nosuid` and `nodev`, recursively, and its propagation private.
    FreezeRoot,
    /// An empty temporary file system.
    Tmpfs {
        /// Where.
        target: HostPath,
        /// Mode of its root.
        mode: u32,
        /// Size in bytes.
        size: u64,
        /// Flags.
        flags: MountFlags,
    },
    /// Show `source` at `target`, with the mounts below it.
    Bind {
        /// What, as it was before the first step.
        source: HostPath,
        /// Where; made when it does not exist (only ever inside a file system of ours, by an earlier step).
        target: HostPath,
        /// Whether `source` is a folder.
        dir: bool,
        /// Flags, set recursively.
        flags: MountFlags,
        /// The reason, for `explain`.
        why: String,
    },
    /// Hide a folder: an empty, read-only folder of mode 0 over it. (Where something below it is shown again, it is an
    /// ordinary [`MountOp::Tmpfs`] and a [`MountOp::Seal`] instead.)
    CoverDir {
        /// Which.
        target: HostPath,
        /// The reason.
        why: String,
    },
    /// Hide a file: an empty, read-only file of mode 0 over it.
    CoverFile {
        /// Which.
        target: HostPath,
        /// The reason.
        why: String,
    },
    /// A fresh `/proc` of the sandbox's own process namespace, with the paths that concern the whole machine covered or
    /// read-only.
    Proc {
        /// Folders and files below `/proc` that are made read-only, such as `sys`.
        read_only: Vec<String>,
        /// Folders and files below `/proc` that are hidden, such as `kcore`.
        hidden: Vec<String>,
    },
    /// A minimal `/dev`: the nodes named, a private `pts`, `shm`, `mqueue` and the usual links.
    Dev {
        /// Nodes that are shown, such as `null`.
        nodes: Vec<String>,
        /// Size of `/dev/shm` in bytes.
        shm_size: u64,
    },
    /// Make a folder with its missing parents, inside a file system of ours.
    MakeDir {
        /// Where.
        path: HostPath,
        /// Mode of the last component.
        mode: u32,
    },
    /// A generated file, shown read-only at `target`.
    File {
        /// Where; made when it does not exist and its folder is a file system of ours.
        target: HostPath,
        /// Content.
        content: String,
        /// What it is, for `explain`.
        why: String,
    },
    /// A symbolic link, inside a file system of ours.
    Symlink {
        /// Where.
        path: HostPath,
        /// To what.
        to: String,
    },
    /// Make a mount of ours read-only after it was filled.
    Seal {
        /// The mount point.
        target: HostPath,
    },
}
