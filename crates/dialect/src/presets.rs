//! The policies that are built in: one readable file each, in the native format, with the reason of every entry.
//!
//! A preset says what one tool needs to work: hosts, the state that it keeps in the home folder, variables. It is the
//! weakest of the sources that somebody names, so every other source can take away from it.

use crate::context::{ParseContext, Parsed};
use crate::native;
use crate::source::Diagnostic;
use ringfence_policy::{Fragment, Source};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

/// A built-in policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
    /// The programs that bring it with them when they are run.
    pub programs: &'static [&'static str],
}

macro_rules! presets {
    ($($name:literal $programs:expr;)*) => {
        /// The names of all presets.
        pub const NAMES: &[&str] = &[$($name),*];

        /// All presets: agents first, then tools.
        pub const ALL: &[Preset] = &[$(Preset {
            name: $name,
            text: include_str!(concat!("../presets/", $name, ".toml")),
            programs: &$programs,
        }),*];
    };
}

// An agent brings its preset with it, because without it nothing of it works. So does a client of a registry, whose
// whole purpose is that registry. An interpreter (node, python, java) does not: it runs anything, and a script that asks
// for no network should get none.
presets! {
    "claude-code" ["claude"];
    "codex" ["codex"];
    "gemini" ["gemini"];
    "opencode" ["opencode"];
    "aider" ["aider"];
    "git" ["git"];
    "github" ["gh"];
    "node" ["npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "bunx"];
    "python" ["pip", "pip3", "pipx", "uv", "uvx", "poetry"];
    "rust" ["cargo"];
    "go" ["go"];
    "java" ["mvn", "mvnw", "gradle", "gradlew"];
    "mcp" [];
    "ci" [];
}

/// The preset of this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

/// The preset that a program brings with it, by the last component of what was typed.
pub fn preset_for_program(program: impl AsRef<OsStr>) -> Option<&'static Preset> {
    let name = Path::new(program.as_ref()).file_name()?;
    ALL.iter().find(|preset| preset.programs.iter().any(|program| name == *program))
}

impl Preset {
    /// What it is for, in a line.
    pub fn description(&self) -> &'static str {
        let written = |line: &'static str| line.strip_prefix("description = \"")?.strip_suffix('"');
        self.text.lines().find_map(written).unwrap_or_default()
    }

    /// Reads it.
    ///
    /// # Errors
    /// None that a test of this crate lets through.
    pub fn parse(&self, context: &ParseContext<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        let context = ParseContext { source: Source::Preset(self.name.to_owned()), ..context.clone() };
        native::parse(self.text, &format!("preset {}", self.name), &context)
    }
}

/// Presets, read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// One for each preset, in the order in which they were wanted, those that another preset names behind it.
    pub fragments: Vec<Fragment>,
    /// For people.
    pub warnings: Vec<Diagnostic>,
}

/// Reads presets and those that they name, each once. `wanted` are those of the sources that may widen: leave out what
/// a project file names that is not trusted. `context` is [`ParseContext::presets`]. A name that is unknown is left
/// out, because sources are checked when they are parsed.
///
/// # Errors
/// A preset cannot be read.
pub fn load<'n>(
    wanted: impl IntoIterator<Item = &'n str>,
    context: &ParseContext<'_>,
) -> Result<Loaded, Vec<Diagnostic>> {
    let mut loaded = Loaded::default();
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Preset> = wanted.into_iter().filter_map(find).collect();
    open.reverse();
    while let Some(preset) = open.pop() {
        if !seen.insert(preset.name) {
            continue;
        }
        let parsed = preset.parse(context)?;
        open.extend(parsed.fragment.presets.iter().rev().filter_map(|(name, _)| find(name)));
        loaded.fragments.push(parsed.fragment);
        loaded.warnings.extend(parsed.warnings);
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_bring_their_presets() {
        for (program, preset) in [
            ("claude", Some("claude-code")),
            ("/usr/local/bin/codex", Some("codex")),
            ("./gradlew", Some("java")),
            ("npx", Some("node")),
            ("node", None),
            ("python3", None),
            ("bash", None),
            ("claude-not", None),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(preset_for_program(program).map(|p| p.name), preset, "{program}");
        }
        let mut programs: Vec<_> = ALL.iter().flat_map(|p| p.programs).collect();
        let count = programs.len();
        programs.sort();
        programs.dedup();
        assert_eq!(programs.len(), count, "a program has one preset");
    }

    #[test]
    fn every_preset_says_what_it_is_for() {
        for preset in ALL {
            let description = preset.description();
            assert!(!description.is_empty() && !description.ends_with('.'), "{}", preset.name);
        }
        assert_eq!(NAMES.len(), ALL.len());
    }
}
