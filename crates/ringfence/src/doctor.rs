//! What this host can enforce.

use crate::error::Error;
use ringfence_enforce::doctor;
use ringfence_enforce::probe::{self, Asked};
use ringfence_enforce::store::Store;
use ringfence_policy::HostPath;

pub use ringfence_enforce::doctor::{Health, Need, Report, Row};

/// Tries every mechanism in a child. Must be called while the process has one thread.
///
/// # Errors
/// There is no `/proc`, or no home folder.
pub fn examine() -> Result<Report, Error> {
    let env: Vec<_> = std::env::vars_os().collect();
    // No mechanism depends on the workspace, and its absence must not keep anybody from asking.
    let facts = probe::gather(&Asked { workspace: &HostPath::root(), env: &env, program: None })?.facts;
    let store = Store::at(&env, &facts.home);
    let program = std::env::current_exe().ok();
    Ok(doctor::examine(&facts, &store, program.as_deref()))
}
