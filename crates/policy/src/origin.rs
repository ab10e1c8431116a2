//! Where a rule comes from: carried from the parser to the denial message and the audit line.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The strength of a source, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// `/etc/ringfence/policy.toml` and `policy.d/`: sets ceilings that nobody below can widen.
    Managed,
    /// A flag of this run, or the file named by `--policy`.
    CommandLine,
    /// `~/.config/ringfence/policy.toml`.
    User,
    /// `ringfence.toml` of the repository: only narrows until its content is trusted.
    Project,
    /// A preset that one of the above named, or that was picked by the program's name.
    Preset,
    /// The tables of this crate.
    Builtin,
}

/// What a rule was written in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A policy file.
    File(PathBuf),
    /// A flag, such as `--allow-host`.
    Flag(String),
    /// A preset, by name.
    Preset(String),
    /// A built-in table, by name, such as `credential stores`.
    Builtin(String),
    /// A fact of this machine, such as `PATH` or the configuration of a package client.
    Machine(String),
}

/// Layer, source and place of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Whose word it is.
    pub layer: Layer,
    /// What it was written in.
    pub source: Source,
    /// Line in a file, from 1.
    pub line: Option<u32>,
}

impl Origin {
    /// The origin of a built-in rule.
    pub fn builtin(table: &str) -> Self {
        Self { layer: Layer::Builtin, source: Source::Builtin(table.to_owned()), line: None }
    }

    /// The origin of a rule that a flag of this run made.
    pub fn flag(flag: &str) -> Self {
        Self { layer: Layer::CommandLine, source: Source::Flag(flag.to_owned()), line: None }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::File(path) => write!(f, "{}", path.display())?,
            Source::Flag(flag) => write!(f, "{flag}")?,
            Source::Preset(name) => write!(f, "preset {name}")?,
            Source::Builtin(table) => write!(f, "built in: {table}")?,
            Source::Machine(fact) => write!(f, "this machine: {fact}")?,
        }
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        Ok(())
    }
}
