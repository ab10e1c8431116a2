//! Turns a plan into a running process behind its walls.
//!
//! ```text
//! spawn(&Plan, &Command, IoSetup) -> Result<Running, EnforceError>
//!
//!   launcher ──clone3──> init (process 1)        ──fork──> command
//!   the process that     id maps, network, mounts,         limits, capabilities, Landlock, seccomp,
//!   calls; afterwards    terminal; then reaps, passes      the proof; then executes the program
//!   the supervisor       signals on, dials
//! ```
//!
//! [`spawn`] returns when the program has been executed: every step of building the walls, their proof and the lookup of
//! the program are behind it, and every failure of them is an [`EnforceError`] that leaves no process behind. The
//! [`Running`] sandbox is then driven by its owner, by [`Running::wait_blocking`] or from an event loop (it is one
//! descriptor, and [`Running::turn`] does what is due). Whichever way the launcher dies, process 1 dies, and with it
//! everything inside.
//!
//! This crate decides nothing: what is allowed stands in the plan. It knows no network protocol: listeners that process
//! 1 makes are handed to the caller as descriptors.

pub mod audit;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
mod linux;
pub mod probe;
pub mod registries;
pub mod store;

#[cfg(target_os = "linux")]
pub use linux::{
    error::{EnforceError, Step, Surprise},
    launch::{Command, IoSetup, TerminalPolicy, spawn},
    message::Listens,
    supervise::{DialId, Happened, Listener, Outcome, Proved, Running, Turn},
};
