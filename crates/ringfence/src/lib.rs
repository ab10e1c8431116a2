//! Run a program inside walls, from a policy.
//!
//! ```no_run
//! use ringfence::Sandbox;
//!
//! # fn main() -> Result<(), ringfence::Error> {
//! let ending = Sandbox::builder()
//!     .preset("rust")
//!     .deny_read(".env")
//!     .command("cargo")
//!     .args(["test"])
//!     .spawn()?
//!     .wait()?;
//! std::process::exit(ending.status.into());
//! # }
//! ```
//!
//! A run has three steps, and each can be looked at:
//!
//! ```text
//! Builder ──build──> Sandbox ──spawn──> Running ──wait──> Ending
//!    └────explain──> Explanation
//! ```
//!
//! [`Builder::build`] reads every source of policy (the managed files, the rules that the builder was given, the user's
//! file, the repository's file, presets), gathers what this host can do, and makes the plan; it changes nothing.
//! [`Sandbox::spawn`] builds the walls and proves them, and [`Running::wait`] serves the network doors until the command
//! ends. Whatever cannot be had ends the run with an [`Error`]: nothing is half-started, and nothing gets weaker unless
//! that was asked for.
//!
//! ```
//! use ringfence::policy::{Access, Verdict};
//! use ringfence::Sandbox;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let home = tempfile::tempdir()?;
//! # let env = [("HOME".into(), home.path().into()), ("PATH".into(), "/usr/bin:/bin".into())];
//! let run = Sandbox::builder().workspace(dir.path()).allow_host("example.com").environment(env).explain()?;
//! assert_eq!(run.why_host("example.com:443")?.decision.verdict, Verdict::Allowed);
//! assert_eq!(run.why_host("example.org:443")?.decision.verdict, Verdict::Denied);
//! assert_eq!(run.why_path("/etc/passwd".as_ref(), Access::Write)?.decision.verdict, Verdict::Denied);
//! # Ok(())
//! # }
//! ```
//!
//! This crate prints nothing and decides nothing: it is the one place where the walls, which know no network protocol, and
//! the network engine, which knows no wall, meet.

mod builder;
mod denials;
pub mod doctor;
mod env_hosts;
mod error;
mod explanation;
pub mod homes;
mod host_sets;
mod layers;
pub mod log;
mod machine;
mod own_addresses;
mod place;
mod running;
mod sandbox;
mod sources;
pub mod trust;

pub use builder::{Builder, LimitFlags, ProgramPreset};
pub use denials::{Denial, Denials, action};
pub use error::{Error, PlaceError, SourceError};
pub use explanation::{Explanation, HostAnswer, PathAnswer};
pub use layers::SourceUse;
pub use place::{Place, WideWorkspace};
pub use running::{Ending, Proved, Running};
pub use sandbox::Sandbox;
pub use sources::FileText;

pub use ringfence_dialect::{Diagnostic, Label, Severity, SourceText, codes, presets};
pub use ringfence_enforce::TerminalPolicy;
pub use ringfence_plan::{LayerStatus, Plan, Status, explain::lines as plan_lines};
/// The policy model: rules, decisions and events.
pub use ringfence_policy as policy;
pub use ringfence_policy::{Finding, HomeMode, Layer};

/// The JSON schema of policy files.
pub fn schema() -> String {
    ringfence_dialect::schema::text_of_schema()
}
