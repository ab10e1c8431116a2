//! What a source is read under.

use crate::source::Diagnostic;
use ringfence_policy::{Fragment, HostPath, HostRule, Layer, Source};
use std::path::Path;

/// The sets of hosts that stand for the registries of this machine's own clients, written `@npm` and so on. No
/// registry's host name stands in this program.
pub const HOST_SETS: &[&str] = &["npm", "pypi", "crates", "debian", "go", "maven"];

/// What a set of hosts became: the rules, or why it stands for nothing here.
pub type SetAnswer = Result<Vec<HostRule>, String>;

/// Whether the user trusted a project file's very content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Yes, or the source is none of a repository.
    Trusted,
    /// No: the file only narrows.
    Untrusted,
}

/// What a source is read under.
#[derive(Clone)]
pub struct ParseContext<'a> {
    /// How strong the source is.
    pub layer: Layer,
    /// What it is, for the origin of each rule.
    pub source: Source,
    /// Whether its content is trusted.
    pub trust: Trust,
    /// What `~` stands for.
    pub home: &'a HostPath,
    /// What relative paths are relative to, see [`ParseContext::base_of`].
    pub base: &'a HostPath,
    /// Asks for a set of [`HOST_SETS`], without its `@`. Called at most once for each mention of a known set, so that a
    /// client is asked only when a policy names its registry.
    pub resolve_set: &'a dyn Fn(&str) -> SetAnswer,
}

impl<'a> ParseContext<'a> {
    /// For a policy file.
    pub fn file(
        layer: Layer,
        path: &Path,
        home: &'a HostPath,
        base: &'a HostPath,
        resolve_set: &'a dyn Fn(&str) -> SetAnswer,
    ) -> Self {
        Self { layer, source: Source::File(path.to_owned()), trust: Trust::Trusted, home, base, resolve_set }
    }

    /// For flags; `base` is the working directory. Each rule's origin is its own flag.
    pub fn flags(home: &'a HostPath, base: &'a HostPath, resolve_set: &'a dyn Fn(&str) -> SetAnswer) -> Self {
        Self {
            layer: Layer::CommandLine,
            source: Source::Flag("command line".to_owned()),
            trust: Trust::Trusted,
            home,
            base,
            resolve_set,
        }
    }

    /// For presets; `workspace` is what their relative paths are relative to.
    pub fn presets(home: &'a HostPath, workspace: &'a HostPath, resolve_set: &'a dyn Fn(&str) -> SetAnswer) -> Self {
        Self {
            layer: Layer::Preset,
            source: Source::Preset(String::new()),
            trust: Trust::Trusted,
            home,
            base: workspace,
            resolve_set,
        }
    }

    /// The same, with the user's word on a project file.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// What the relative paths of a policy file are relative to. A repository's own file means its own folder, from
    /// whichever folder below the command is started. Every other file is written once for many projects, so it means
    /// the workspace: `write = ["."]` in a user's policy is the project at hand.
    pub fn base_of(layer: Layer, file: &HostPath, workspace: &HostPath) -> HostPath {
        match layer {
            Layer::Project => file.parent().unwrap_or_else(|| workspace.clone()),
            Layer::Managed | Layer::CommandLine | Layer::User | Layer::Preset | Layer::Builtin => workspace.clone(),
        }
    }
}

/// What a source says, and what is to be said about it although it is sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// For `merge`.
    pub fragment: Fragment,
    /// For people.
    pub warnings: Vec<Diagnostic>,
}
