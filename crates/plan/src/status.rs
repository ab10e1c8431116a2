//! What holds. Nothing gets weaker silently: each layer says so here.

use serde::Serialize;

/// How well a layer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "status", content = "why")]
pub enum Status {
    /// As designed.
    Enforced,
    /// Less than designed, for this reason.
    Weaker(String),
    /// Not there, for this reason.
    Missing(String),
    /// Nothing was asked of it.
    Unused,
}

/// A layer and how well it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerStatus {
    /// The layer: `files`, `landlock`, `seccomp`, `network`, `limits`.
    pub layer: &'static str,
    /// How well.
    pub status: Status,
    /// What to do about it.
    pub hint: Option<String>,
}
