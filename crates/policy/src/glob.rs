//! Path patterns with wildcards, matched component by component.

use crate::path_rule::HostPath;
use serde::Serialize;

/// A pattern such as `/home/u/project/**/.env`: a literal base folder and components below it, in which `*`, `?`,
/// `[...]` and `{a,b}` match within one name and `**` matches any number of names (none included).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct PathGlob {
    /// The longest folder without wildcards.
    pub base: HostPath,
    /// The rest, as it was written.
    pub pattern: String,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// A class or alternation is not closed, or is empty.
    #[error("pattern `{pattern}`: {problem}")]
    Malformed {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}
