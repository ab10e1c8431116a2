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

impl Status {
    /// The status in one word, as `explain` and the audit file have it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Weaker(_) => "weaker",
            Self::Missing(_) => "missing",
            Self::Unused => "unused",
        }
    }
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

/// Rows for everything that a policy's reader may take for granted.
pub(crate) struct Statuses(Vec<LayerStatus>);

impl Statuses {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn put(&mut self, layer: &'static str, status: Status, hint: Option<String>) {
        self.0.push(LayerStatus { layer, status, hint });
    }

    pub(crate) fn into_rows(self) -> Vec<LayerStatus> {
        self.0
    }
}

/// `a, b and 3 more`.
pub(crate) fn some_of<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    let shown = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match items.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
