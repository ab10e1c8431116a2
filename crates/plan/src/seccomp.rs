//! The system call policy.

use crate::bpf::Insn;
use serde::Serialize;

/// The filter, ready to be installed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeccompPlan {
    /// The compiled program.
    #[serde(skip)]
    pub program: Vec<Insn>,
    /// The rules that it was compiled from, for `explain`.
    pub rules: Vec<String>,
}
