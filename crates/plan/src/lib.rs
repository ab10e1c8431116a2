//! How a policy is enforced, as data.
//!
//! ```text
//! plan(&Policy, &HostFacts, &Request, &dyn FsView) -> Result<Plan, PlanError>
//! ```
//!
//! The function is pure: it reads files only through [`FsView`], so the same inputs give the same plan, and the plan can
//! be printed (`explain`), compared (snapshots) and carried out by another wall. Paths inside the sandbox are the paths
//! outside: the host's tree is made read-only in place and windows and covers are put on it, so one type serves both.
//!
//! This crate never makes a system call and never decides what is allowed: it asks [`ringfence_policy`].

pub mod bpf;
pub mod doors;
pub mod env;
pub mod explain;
pub mod facts;
pub mod fs_view;
pub mod guard;
pub mod landlock;
pub mod limits;
pub mod mounts;
pub mod names;
pub mod proof;
pub mod seccomp;
pub mod status;

mod aliases;
mod assemble;
mod layout;
mod sockets;
mod survey;
mod system;
mod walk;

pub use doors::DoorsPlan;
pub use facts::HostFacts;
pub use fs_view::{FsView, Kind, MemoryView};
pub use guard::GuardPlan;
pub use landlock::LandlockPlan;
pub use limits::LimitsPlan;
pub use mounts::MountOp;
pub use proof::ProofPlan;
pub use seccomp::SeccompPlan;
pub use status::{LayerStatus, Status};

use ringfence_policy::{HostPath, Policy};
use serde::Serialize;
use std::ffi::OsString;

/// What this run is asked to do, beyond the policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Where the command starts.
    pub cwd: HostPath,
    /// The launcher's own environment.
    #[serde(skip)]
    pub env: Vec<(OsString, OsString)>,
    /// The folder that stands in the place of the home folder, outside of the workspace; used when the mode is
    /// `private`.
    pub private_home: HostPath,
    /// A folder of ours that the command never sees, for decoys of the proof; need not exist.
    pub state_dir: HostPath,
}

/// Everything that will be done, in the order in which it will be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Who the command is, inside and outside.
    pub identity: Identity,
    /// Done on the host before anything else.
    pub prepare: Vec<PrepareOp>,
    /// Done by process 1 in its own mount namespace, in this order.
    pub mounts: Vec<MountOp>,
    /// The second layer for files, put on the command.
    pub landlock: LandlockPlan,
    /// The system call filter.
    pub seccomp: SeccompPlan,
    /// The guard over connect(2); `None`: the filter asks about nothing.
    pub guard: Option<GuardPlan>,
    /// The command's whole environment.
    #[serde(serialize_with = "env::serialize")]
    pub env: Vec<(OsString, OsString)>,
    /// What became of each variable, and why.
    pub environment: Vec<env::Variable>,
    /// Where the command starts.
    pub cwd: HostPath,
    /// Listeners to be made inside.
    pub doors: DoorsPlan,
    /// Limits.
    pub limits: LimitsPlan,
    /// What is tried before the command starts.
    pub proof: ProofPlan,
    /// What holds, what is weaker, what is missing.
    pub status: Vec<LayerStatus>,
}

/// Who the command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// User number, the same inside and outside.
    pub uid: u32,
    /// Group number, the same inside and outside.
    pub gid: u32,
    /// Map every number (a launcher that is root), so that owners look as they do outside; else only `uid` and `gid`,
    /// which is all that an ordinary user may map (user_namespaces(7)).
    pub map_all: bool,
}

/// A step on the host before the sandbox exists. All of them lie in folders of ours.
///
/// A private home was written to by earlier commands, so no step may follow a symlink in it (openat2(2),
/// `RESOLVE_NO_SYMLINKS`): a link planted there would carry the step to wherever it points on the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrepareOp {
    /// Make a folder and its missing parents, with this mode.
    MakeDir {
        /// Where.
        path: HostPath,
        /// Mode of the last component.
        mode: u32,
    },
    /// Copy a file unless the target exists.
    CopyOnce {
        /// From the real home.
        from: HostPath,
        /// Into the private home.
        to: HostPath,
    },
}

/// Why a policy cannot be enforced on this host. Nothing has been changed when it is returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The workspace is `/` or the home folder.
    #[error("the workspace is `{path}`, which would make everything in it writable")]
    WorkspaceTooWide {
        /// The workspace.
        path: HostPath,
    },
    /// A writable root is a symlink that leads out of its parent.
    #[error("writable root `{path}` is a link to `{target}`, outside of its folder ({origin})")]
    RootIsLink {
        /// As it was written.
        path: HostPath,
        /// Where it leads.
        target: HostPath,
        /// Whose word it was.
        origin: String,
    },
    /// A path that a rule names and that must exist does not.
    #[error("`{path}` does not exist ({origin})")]
    Missing {
        /// The path.
        path: HostPath,
        /// Whose word it was.
        origin: String,
    },
    /// A pattern matches more files than can be covered.
    #[error("pattern `{pattern}` matches more than {bound} files ({origin})")]
    TooManyMatches {
        /// The pattern.
        pattern: String,
        /// The bound.
        bound: usize,
        /// Whose word it was.
        origin: String,
    },
    /// The file system is larger than patterns may make us search.
    #[error("patterns would make more than {bound} files be looked at; the search stopped in `{path}`")]
    TooManyEntries {
        /// Where.
        path: HostPath,
        /// The bound.
        bound: usize,
    },
    /// A rule that no layer of this wall can hold.
    #[error("{what} ({origin})")]
    Unenforceable {
        /// What cannot be held, as a sentence.
        what: String,
        /// What to do instead.
        hint: String,
        /// Whose word it was.
        origin: String,
    },
    /// A layer is weaker or missing and nobody accepted that.
    #[error("{layer}: {why}")]
    Weaker {
        /// The layer.
        layer: String,
        /// Why.
        why: String,
        /// The remedy.
        hint: String,
    },
    /// A folder could not be read while patterns were expanded.
    #[error("cannot read `{path}` while expanding patterns: {why}")]
    View {
        /// The path.
        path: HostPath,
        /// The error's text.
        why: String,
    },
}

impl PlanError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WorkspaceTooWide { .. } => {
                Some("start in a folder of the project, or insist with --write and this very path".to_owned())
            }
            Self::RootIsLink { target, .. } => Some(format!("name `{target}` itself, if that is what is meant")),
            Self::Missing { .. } => Some("make it before the run, or take the rule away".to_owned()),
            Self::TooManyMatches { .. } => Some("deny the folder that holds them".to_owned()),
            Self::TooManyEntries { .. } => Some("write patterns that begin with a narrower folder".to_owned()),
            Self::Unenforceable { hint, .. } | Self::Weaker { hint, .. } => Some(hint.clone()),
            Self::View { .. } => None,
        }
    }
}

/// Makes the plan.
///
/// # Errors
/// See [`PlanError`]; all of them leave the host untouched.
pub fn plan(policy: &Policy, facts: &HostFacts, request: &Request, view: &dyn FsView) -> Result<Plan, Vec<PlanError>> {
    assemble::plan(policy, facts, request, view)
}
