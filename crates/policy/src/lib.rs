//! What is allowed.
//!
//! This crate is the policy as pure data: no input or output, no async, no system call, and it builds on every
//! operating system. A policy is made in two steps: every source (managed file, command line, user file, project file,
//! preset, built-in table) is a [`Fragment`]; [`merge`] turns the fragments into one [`Policy`], whose every rule still
//! carries its [`Origin`]. Two questions are asked of it, and each has one function:
//!
//! ```text
//! Policy::may_path(path, access)        may this file be read, may it be written?
//! Policy::may_connect(destination)      may this host and port be reached, and (may_address) at this address?
//! ```
//!
//! This crate never reads a file, resolves a name, or knows what a mount or a system call is.

pub mod address;
pub mod decide;
pub mod defaults;
pub mod env_rule;
pub mod event;
pub mod fragment;
pub mod glob;
pub mod host;
pub mod host_rule;
pub mod index;
pub mod layer;
pub mod limits;
pub mod lint;
pub mod origin;
pub mod path_rule;
pub mod protected_name;
pub mod request_rule;
pub mod secret;

mod name_glob;
mod parts;
mod public_suffix;
mod punycode;
mod summary;
mod time;

pub use decide::{AddressDecision, EnvDecision, HostDecision, PathDecision, Verdict};
pub use env_rule::{EnvPolicy, EnvRule};
pub use event::{Event, EventSink};
pub use fragment::{Ceiling, Fragment};
pub use glob::PathGlob;
pub use host_rule::{Destination, Host, HostName, HostPattern, HostRule, HostVerb, PortRule, PortSet, Protocol, Wide};
pub use index::Indexed;
pub use layer::{Base, Finding, merge, merge_for_run};
pub use limits::Limits;
pub use lint::lint;
pub use origin::{Layer, Origin, Source};
pub use path_rule::{Access, HostPath, PathPattern, PathRule, PathVerb};
pub use protected_name::{ProtectedKind, ProtectedName};

use serde::{Deserialize, Serialize};

/// Everything that is allowed, with the origin of every rule. The result of [`merge`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Policy {
    /// The folder in which the command works; writable unless a rule says otherwise.
    pub workspace: HostPath,
    /// Files.
    pub files: FilePolicy,
    /// Hosts, ports and requests.
    pub network: NetworkPolicy,
    /// Credentials that are injected at the edge and never enter.
    pub credentials: Vec<secret::Credential>,
    /// Unix sockets of the host that may be connected to, by path.
    pub unix: Vec<UnixRule>,
    /// The environment of the command.
    pub env: EnvPolicy,
    /// Memory, processes, disk and time.
    pub limits: Limits,
    /// What may be weaker than the default wall.
    pub walls: WallPolicy,
    /// What nobody may exceed; from managed sources only.
    pub ceilings: Vec<Ceiling>,
    /// The presets in force, in the order in which they were named.
    pub presets: Vec<PresetUse>,
}

/// A preset in force and who named it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PresetUse {
    /// Its name, such as `rust`.
    pub name: String,
    /// Where it was named.
    pub origin: Origin,
}

/// Rules over files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilePolicy {
    /// All rules; their order has no meaning, see [`Policy::may_path`].
    pub rules: Indexed<PathRule>,
    /// What stands in the place of the home folder.
    pub home: Home,
    /// Names that are write-denied inside writable folders, at any depth, existing or not.
    pub protected: Indexed<ProtectedName>,
    /// Files of the real home that are copied into the private home when they are not there yet, because the program
    /// replaces them by rename, which a bind mount forbids (rename(2), EBUSY).
    pub copies: Vec<CopyIn>,
    /// Folders that are private to the run: empty at start, gone at its end (`/tmp`, `/dev/shm`, `/run`, `/var/tmp`).
    pub private: Vec<HostPath>,
}

/// A file that is copied into the private home once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyIn {
    /// Path in the real home; the copy has the same path inside.
    pub path: HostPath,
    /// Who asked for it.
    pub origin: Origin,
    /// Why, for `explain`.
    pub why: String,
}

/// The home folder and what the command sees in its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Home {
    /// The real home folder.
    pub path: HostPath,
    /// What stands there inside.
    pub mode: HomeMode,
    /// Who set it.
    pub origin: Origin,
}

/// What stands in the place of the home folder, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HomeMode {
    /// Nothing that stays: a temporary folder. The strictest.
    Empty,
    /// A persistent folder of ours per workspace. The default.
    Private,
    /// The real home, read-only, without the credential stores.
    Visible,
}

/// Rules over the network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkPolicy {
    /// All allow and deny rules; deny beats allow.
    pub rules: Indexed<HostRule>,
    /// Rules over single requests; they need TLS termination.
    pub requests: Vec<request_rule::RequestRule>,
    /// Ports of servers inside that are reachable on the host's loopback.
    pub publish: Vec<PortRule>,
    /// Ports of servers on the host's loopback that are reachable inside on the same port.
    pub host_ports: Vec<PortRule>,
    /// The proxy through which the engine itself dials, when the policy says so.
    pub upstream: Option<UpstreamProxy>,
}

/// A parent proxy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpstreamProxy {
    /// `http://host:port`, or `environment` to take the launcher's own `HTTPS_PROXY`/`HTTP_PROXY`/`NO_PROXY`.
    pub url: String,
    /// Who set it.
    pub origin: Origin,
}

/// A Unix socket of the host that may be connected to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnixRule {
    /// Path of the socket.
    pub path: HostPath,
    /// Who allowed it.
    pub origin: Origin,
}

/// What may be weaker than the default.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WallPolicy {
    /// Accept a layer whose status is not `Enforced`; `None`: not said, so no.
    pub allow_weaker: Option<Origin>,
    /// Skip the proof at start; `None`: prove.
    pub skip_proof: Option<Origin>,
}
