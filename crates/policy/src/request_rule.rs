//! Rules over single requests: the model; the engine that enforces them needs TLS termination.

use crate::host_rule::HostPattern;
use crate::origin::Origin;
use serde::Serialize;

/// What requests to a host may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRule {
    /// The host.
    pub host: HostPattern,
    /// Methods, upper case; empty: all.
    pub methods: Vec<String>,
    /// Path patterns; empty: all.
    pub paths: Vec<String>,
    /// Whose word it is.
    pub origin: Origin,
}
