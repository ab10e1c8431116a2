//! Merging fragments into a policy: who may widen what.

use crate::fragment::Fragment;
use crate::origin::Origin;
use crate::path_rule::HostPath;
use serde::Serialize;

/// Something that a source said and that does not take effect, or is weaker than it looks. Never an error: errors stop
/// at the parser.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A stable code: `RF03xx`.
    pub code: &'static str,
    /// What was said and what becomes of it.
    pub message: String,
    /// Whose word it was.
    pub origin: Origin,
    /// What to do.
    pub hint: Option<String>,
}

/// The facts of a run that rules refer to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Base {
    /// The real home folder.
    pub home: HostPath,
    /// The workspace.
    pub workspace: HostPath,
    /// Git directories that belong to the workspace but lie outside of it (linked worktrees, submodules).
    pub git_dirs: Vec<HostPath>,
    /// The effective user's number; 0 adds the stores that only root can read.
    pub uid: u32,
}

#[allow(unused)]
fn _seam(_: &Fragment) {}

/// Merges the fragments of all sources into one policy. The order of `fragments` has no meaning; their layers have.
pub fn merge(base: &Base, fragments: Vec<Fragment>) -> (crate::Policy, Vec<Finding>) {
    let _ = (base, fragments);
    todo!()
}
