//! Credentials that stay outside: the model; the engine that injects them needs TLS termination.

use crate::host_rule::HostPattern;
use crate::origin::Origin;
use serde::Serialize;

/// Where a secret is taken from, outside the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// A variable of the launcher's environment.
    Env(String),
    /// A file, whose mode must not let others read it.
    File(crate::HostPath),
    /// The output of a program, as an argument vector without a shell.
    Exec(Vec<String>),
    /// An entry of the user's keyring.
    Keyring(String),
}

/// One credential.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Credential {
    /// Its name, the only part that is ever logged.
    pub name: String,
    /// Where it comes from.
    pub source: SecretSource,
    /// The exact hosts that may get it.
    pub hosts: Vec<HostPattern>,
    /// The header it goes into.
    pub header: String,
    /// The format of the header's value, with `{}` for the secret.
    pub format: String,
    /// The variable in which the program sees a phantom in its place.
    pub phantom_env: Option<String>,
    /// Whose word it is.
    pub origin: Origin,
}
