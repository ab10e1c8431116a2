//! The description of a run.

use crate::denials::Denials;
use crate::error::Error;
use crate::explanation::Explanation;
use crate::layers::Files;
use crate::place::WideWorkspace;
use crate::running::Running;
use crate::sandbox::Sandbox;
use ringfence_dialect::command_line::{Flags, Proof, Weaker};
use ringfence_enforce::TerminalPolicy;
use ringfence_policy::{EventSink, HomeMode};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether the program's name picks a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgramPreset {
    /// It does not.
    #[default]
    Ignore,
    /// `claude` picks `claude-code`, and so on.
    Pick,
}

/// Describes a run, rule by rule. Made by [`Sandbox::builder`] or [`Sandbox::from_policy`].
///
/// Rules that are added here count as the command line's: below the managed ceiling, above the user's file. Paths are
/// literal, and relative ones start at the working directory. Values are taken as a flag has them, as text, so that all
/// their mistakes are told together by [`Builder::build`].
#[derive(Clone, Default)]
pub struct Builder {
    pub(crate) flags: Flags,
    pub(crate) files: Files,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) wide: WideWorkspace,
    pub(crate) program_preset: ProgramPreset,
    pub(crate) command: Vec<OsString>,
    pub(crate) env: Option<Vec<(OsString, OsString)>>,
    pub(crate) terminal: TerminalPolicy,
    pub(crate) audit: Option<PathBuf>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) denials: Denials,
}

impl Builder {
    /// Uses this policy file alone, under the managed ceiling: neither the user's file nor the repository's.
    #[must_use]
    pub fn policy_file(mut self, file: impl AsRef<Path>) -> Self {
        self.files = Files::Only(file.as_ref().to_owned());
        self
    }

    /// Adds a built-in preset.
    #[must_use]
    pub fn preset(mut self, name: impl AsRef<OsStr>) -> Self {
        self.flags.preset.push(name.as_ref().to_owned());
        self
    }

    /// Whether the program's name picks a preset. A policy file that stands alone never lets it.
    #[must_use]
    pub fn program_preset(mut self, pick: ProgramPreset) -> Self {
        self.program_preset = pick;
        self
    }

    /// The folder to work in; the working directory, when none is named.
    #[must_use]
    pub fn workspace(mut self, dir: impl AsRef<Path>) -> Self {
        self.workspace = Some(dir.as_ref().to_owned());
        self
    }

    /// Accepts a workspace that is `/`, the home folder or one that holds it, when it was named.
    #[must_use]
    pub fn wide_workspace(mut self, wide: WideWorkspace) -> Self {
        self.wide = wide;
        self
    }

    /// Lets a path be read and written.
    #[must_use]
    pub fn write(mut self, path: impl AsRef<OsStr>) -> Self {
        self.flags.write.push(path.as_ref().to_owned());
        self
    }

    /// Lets a path be read.
    #[must_use]
    pub fn read(mut self, path: impl AsRef<OsStr>) -> Self {
        self.flags.read.push(path.as_ref().to_owned());
        self
    }

    /// Hides a path.
    #[must_use]
    pub fn deny_read(mut self, path: impl AsRef<OsStr>) -> Self {
        self.flags.deny_read.push(path.as_ref().to_owned());
        self
    }

    /// Keeps a path from being written.
    #[must_use]
    pub fn deny_write(mut self, path: impl AsRef<OsStr>) -> Self {
        self.flags.deny_write.push(path.as_ref().to_owned());
        self
    }

    /// Lets a host be reached: `name`, `name:port`, `*.name`, an address, or a set such as `@npm`.
    #[must_use]
    pub fn allow_host(mut self, host: impl AsRef<OsStr>) -> Self {
        self.flags.allow_host.push(host.as_ref().to_owned());
        self
    }

    /// Keeps a host from being reached, whatever allows it.
    #[must_use]
    pub fn deny_host(mut self, host: impl AsRef<OsStr>) -> Self {
        self.flags.deny_host.push(host.as_ref().to_owned());
        self
    }

    /// Opens a port of a server inside on the host's loopback.
    #[must_use]
    pub fn publish(mut self, port: impl AsRef<OsStr>) -> Self {
        self.flags.publish.push(port.as_ref().to_owned());
        self
    }

    /// Opens a port of a server on the host's loopback inside.
    #[must_use]
    pub fn host_port(mut self, port: impl AsRef<OsStr>) -> Self {
        self.flags.host_port.push(port.as_ref().to_owned());
        self
    }

    /// Lets a Unix socket of the host be connected to.
    #[must_use]
    pub fn unix(mut self, path: impl AsRef<OsStr>) -> Self {
        self.flags.unix.push(path.as_ref().to_owned());
        self
    }

    /// Passes a variable that would be withheld (`NAME`), or sets one (`NAME=VALUE`).
    #[must_use]
    pub fn env(mut self, variable: impl AsRef<OsStr>) -> Self {
        self.flags.env.push(variable.as_ref().to_owned());
        self
    }

    /// Withholds variables whose names match, `*` being a wildcard.
    #[must_use]
    pub fn env_deny(mut self, pattern: impl AsRef<OsStr>) -> Self {
        self.flags.env_deny.push(pattern.as_ref().to_owned());
        self
    }

    /// What stands in the place of the home folder.
    #[must_use]
    pub fn home(mut self, mode: HomeMode) -> Self {
        let text = match mode {
            HomeMode::Empty => "empty",
            HomeMode::Private => "private",
            HomeMode::Visible => "visible",
        };
        self.flags.home = Some(text.into());
        self
    }

    /// Limits, as flags say them: `8G`, `2h`.
    #[must_use]
    pub fn limits(mut self, limits: LimitFlags) -> Self {
        let LimitFlags { memory, pids, disk, wall } = limits;
        (self.flags.memory, self.flags.pids, self.flags.disk, self.flags.wall) = (memory, pids, disk, wall);
        self
    }

    /// Runs although a layer is weaker than designed or missing.
    #[must_use]
    pub fn allow_weaker(mut self) -> Self {
        self.flags.allow_weaker = Weaker::Accept;
        self
    }

    /// Does not prove the walls before the command starts.
    #[must_use]
    pub fn skip_proof(mut self) -> Self {
        self.flags.proof = Proof::Skip;
        self
    }

    /// What the command gets in the place of a terminal.
    #[must_use]
    pub fn terminal(mut self, terminal: TerminalPolicy) -> Self {
        self.terminal = terminal;
        self
    }

    /// Appends every decision to this file, one JSON line each.
    #[must_use]
    pub fn audit(mut self, file: impl AsRef<Path>) -> Self {
        self.audit = Some(file.as_ref().to_owned());
        self
    }

    /// Hands every event to this taker as well.
    #[must_use]
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// The environment from which the command's is made, instead of the launcher's own.
    #[must_use]
    pub fn environment(mut self, env: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.env = Some(env.into_iter().collect());
        self
    }

    /// The program; looked up in `PATH` inside, unless it is named by a path.
    #[must_use]
    pub fn command(mut self, program: impl AsRef<OsStr>) -> Self {
        self.command = vec![program.as_ref().to_owned()];
        self
    }

    /// Its arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// What the run would be: policy, origins, plan and status. Changes nothing.
    ///
    /// # Errors
    /// The policy has mistakes, or the place cannot be used. That the policy cannot be enforced here is not an error: the
    /// explanation says so.
    pub fn explain(&self) -> Result<Explanation, Error> {
        crate::sandbox::explain(self)
    }

    /// Reads the policy and makes the plan. Changes nothing yet.
    ///
    /// # Errors
    /// As [`Builder::explain`], and when the policy cannot be enforced here.
    pub fn build(self) -> Result<Sandbox, Error> {
        crate::sandbox::build(self)
    }

    /// [`Builder::build`] and [`Sandbox::spawn`].
    ///
    /// # Errors
    /// As those.
    pub fn spawn(self) -> Result<Running, Error> {
        self.build()?.spawn()
    }
}

/// Limits, as flags say them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitFlags {
    /// The most memory: `8G`.
    pub memory: Option<OsString>,
    /// The most processes and threads: `2048`.
    pub pids: Option<OsString>,
    /// The most bytes written: `20G`.
    pub disk: Option<OsString>,
    /// The longest time: `2h`.
    pub wall: Option<OsString>,
}

impl fmt::Debug for Builder {
    /// Without the environment and the arguments, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("files", &self.files)
            .field("workspace", &self.workspace)
            .field("program", &self.command.first())
            .finish_non_exhaustive()
    }
}
