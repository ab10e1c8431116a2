//! The two questions. Every wall, door and dialect calls these functions and nothing else.
//!
//! ```text
//! Policy::may_path(path, access)                       files
//! Policy::may_connect(destination)                     hosts
//! Policy::may_address(destination, address, own)       what an allowed name resolved to
//! EnvPolicy::may_pass(name)                            variables
//! ```

mod env;
mod host;
mod path;

use crate::env_rule::EnvRule;
use crate::origin::Origin;
use crate::path_rule::PathRule;
use serde::Serialize;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// Yes, but on a folder that is the sandbox's own: the host's files of that name are neither seen nor changed.
    Private,
}

/// The answer about a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathDecision {
    /// Yes, no, or private.
    pub verdict: Verdict,
    /// The rule that decided, where one did.
    pub rule: Option<PathRule>,
    /// Whose word it was.
    pub origin: Origin,
    /// Why, as a phrase: `outside the writable roots`, `credential store: ssh keys`.
    pub reason: String,
    /// The smallest rule that would allow it, as a line of policy; `None` where no rule may.
    pub remedy: Option<String>,
    /// The flag that would allow it for one run; `None` where none may.
    pub flag: Option<String>,
}

/// The answer about a destination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostDecision {
    /// `Allowed` or `Denied`.
    pub verdict: Verdict,
    /// Index into [`NetworkPolicy::rules`](crate::NetworkPolicy::rules) of the rule that decided.
    pub rule: Option<usize>,
    /// Whose word it was.
    pub origin: Origin,
    /// A stable code for logs: `allowed`, `no_rule`, `denied_by_rule`, `port`, `ceiling`, `no_network`, `metadata`, and
    /// for a destination that is an address, the codes of [`AddressDecision`].
    pub code: &'static str,
    /// Why, as a phrase.
    pub reason: String,
    /// The flag that would allow it; `None` where none may.
    pub remedy: Option<String>,
}

/// The answer about a resolved address of an allowed destination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddressDecision {
    /// `Allowed` or `Denied`.
    pub verdict: Verdict,
    /// A stable code: `public`, `named_by_rule`, `loopback`, `private`, `link_local`, `cgnat`, `metadata`, `multicast`,
    /// `reserved`, `own_address`, `denied_by_rule`, `ceiling`.
    pub code: &'static str,
    /// Why, as a phrase.
    pub reason: String,
}

/// The answer about a variable of the launcher's environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnvDecision {
    /// `Allowed` or `Denied`.
    pub verdict: Verdict,
    /// The rule that decided; `None`: nothing was said of it, so it is passed.
    pub rule: Option<EnvRule>,
}
