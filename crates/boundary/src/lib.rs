//! The same plan behind another wall.
//!
//! A wall takes a [`Plan`] and gives a running command. There is one so far: [`Process`], the namespaces, mounts,
//! Landlock and seccomp of this kernel, carried out by [`ringfence_enforce`].

use ringfence_enforce::{Command, EnforceError, IoSetup, Running, spawn};
use ringfence_plan::Plan;

/// A way to build the walls of a plan.
pub trait Boundary {
    /// What it is called, as in `behind a process wall`.
    fn name(&self) -> &'static str;

    /// Builds the walls, proves them, and starts the command behind them.
    ///
    /// # Errors
    /// A wall cannot be built or does not hold, or the program cannot be executed; nothing is left of the attempt.
    fn start(&self, plan: &Plan, command: &Command, io: IoSetup) -> Result<Running, EnforceError>;
}

/// The wall of this kernel: no other program, no container engine, no root.
#[derive(Debug, Clone, Copy, Default)]
pub struct Process;

impl Boundary for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn start(&self, plan: &Plan, command: &Command, io: IoSetup) -> Result<Running, EnforceError> {
        spawn(plan, command, io)
    }
}
