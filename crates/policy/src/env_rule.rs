//! Which variables of the environment the command gets.

use crate::origin::Origin;
use serde::Serialize;

/// The environment of the command: the launcher's own, minus `deny`, plus `set`.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct EnvPolicy {
    /// Names, with `*` as a wildcard, that are withheld.
    pub deny: Vec<EnvRule>,
    /// Names, with `*`, that are passed although a `deny` of the built-in list or a broader pattern matches.
    pub pass: Vec<EnvRule>,
    /// Values that are set whatever the launcher's environment holds.
    pub set: Vec<EnvSet>,
}

/// A name pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnvRule {
    /// `AWS_SECRET_ACCESS_KEY`, `*_SECRET`.
    pub pattern: String,
    /// Whose word it is.
    pub origin: Origin,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnvSet {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Whose word it is.
    pub origin: Origin,
}
