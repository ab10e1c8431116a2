//! What one source says: the input of [`crate::merge`].

use crate::env_rule::{EnvRule, EnvSet};
use crate::host_rule::{HostRule, PortRule};
use crate::limits::Limits;
use crate::origin::{Layer, Origin};
use crate::path_rule::PathRule;
use crate::request_rule::RequestRule;
use crate::secret::Credential;
use crate::{CopyIn, HomeMode, ProtectedName, UnixRule, UpstreamProxy};
use serde::Serialize;

/// Everything that one source says. Paths are absolute already; `@sets` of hosts are resolved already.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragment {
    /// How strong the source is.
    pub layer: Layer,
    /// For [`Layer::Project`]: whether the user trusted this very content. Other layers: true.
    pub trusted: bool,
    /// Presets that the source names. The caller loads them as fragments of their own.
    pub presets: Vec<(String, Origin)>,
    /// Rules over paths.
    pub paths: Vec<PathRule>,
    /// What stands in the place of the home folder.
    pub home: Option<(HomeMode, Origin)>,
    /// Protected names to add.
    pub protected: Vec<ProtectedName>,
    /// Patterns of built-in protected names to take away (user, command line and managed layers only).
    pub unprotect: Vec<(String, Origin)>,
    /// Files copied into the private home.
    pub copies: Vec<CopyIn>,
    /// Rules over hosts.
    pub hosts: Vec<HostRule>,
    /// Variables of the launcher's environment whose value, a URL, names a host that may be reached. The caller reads
    /// them and makes rules of them.
    pub allow_from_env: Vec<EnvHost>,
    /// Rules over requests.
    pub requests: Vec<RequestRule>,
    /// Ports out of the sandbox.
    pub publish: Vec<PortRule>,
    /// Ports into the sandbox.
    pub host_ports: Vec<PortRule>,
    /// Parent proxy.
    pub upstream: Option<UpstreamProxy>,
    /// Credentials.
    pub credentials: Vec<Credential>,
    /// Unix sockets.
    pub unix: Vec<UnixRule>,
    /// Variables withheld.
    pub env_deny: Vec<EnvRule>,
    /// Variables passed all the same.
    pub env_pass: Vec<EnvRule>,
    /// Variables set.
    pub env_set: Vec<EnvSet>,
    /// Limits.
    pub limits: Limits,
    /// Accept weaker layers.
    pub allow_weaker: Option<Origin>,
    /// Skip the proof.
    pub skip_proof: Option<Origin>,
    /// What nobody may exceed; only managed sources may say so.
    pub ceiling: Option<Ceiling>,
}

impl Fragment {
    /// A fragment that says nothing.
    pub fn empty(layer: Layer) -> Self {
        Self {
            layer,
            trusted: true,
            presets: Vec::new(),
            paths: Vec::new(),
            home: None,
            protected: Vec::new(),
            unprotect: Vec::new(),
            copies: Vec::new(),
            hosts: Vec::new(),
            allow_from_env: Vec::new(),
            requests: Vec::new(),
            publish: Vec::new(),
            host_ports: Vec::new(),
            upstream: None,
            credentials: Vec::new(),
            unix: Vec::new(),
            env_deny: Vec::new(),
            env_pass: Vec::new(),
            env_set: Vec::new(),
            limits: Limits::default(),
            allow_weaker: None,
            skip_proof: None,
            ceiling: None,
        }
    }
}

/// A variable whose value names a host, such as `ANTHROPIC_BASE_URL`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EnvHost {
    /// Its name.
    pub name: String,
    /// Who asks for it.
    pub origin: Origin,
}

/// The most that any source may allow. An absent list sets no bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// Only paths that one of these allows may be written.
    pub write: Option<Vec<PathRule>>,
    /// Only destinations that one of these allows may be reached.
    pub hosts: Option<Vec<HostRule>>,
    /// The widest home that may be chosen.
    pub home: Option<HomeMode>,
    /// Whether `allow_weaker` and skipping the proof may be chosen.
    pub allow_weaker: bool,
    /// Whether host ports may be opened into the sandbox, and ports published.
    pub ports: bool,
    /// Whether Unix sockets may be allowed.
    pub unix: bool,
    /// Upper bounds of limits; a run without the limit gets it.
    pub limits: Limits,
    /// Who set it.
    pub origin: Origin,
}
