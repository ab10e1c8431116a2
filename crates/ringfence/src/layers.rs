//! Reads every source of policy that a run has, strongest first, and says which they were.

use crate::error::Error;
use crate::place::Place;
use crate::sources::{self, FileText, MANAGED_DIR};
use ringfence_dialect::{Diagnostic, ParseContext, Parsed, SetAnswer, Trust, native};
use ringfence_policy::{Fragment, HostPath, Layer};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A policy file that was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceUse {
    /// The file.
    pub path: PathBuf,
    /// How strong it is.
    pub layer: Layer,
    /// For a repository's file: whether its content is trusted, so that its grants hold.
    pub trusted: bool,
}

/// What the files say.
#[derive(Default)]
pub(crate) struct Layers {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) used: Vec<SourceUse>,
}

/// Which files are read below the managed ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Files {
    /// The user's and the repository's.
    #[default]
    Usual,
    /// This one alone.
    Only(PathBuf),
}

/// What the sources are read under.
pub(crate) struct Reader<'a> {
    pub(crate) place: &'a Place,
    /// The user's policy folder.
    pub(crate) config: &'a HostPath,
    pub(crate) resolve_set: &'a dyn Fn(&str) -> SetAnswer,
    /// The same for a source that may not widen.
    pub(crate) resolve_untrusted: &'a dyn Fn(&str) -> SetAnswer,
    /// Whether the user trusted this content of this repository's file.
    pub(crate) trusts: &'a dyn Fn(&HostPath, &str) -> bool,
}

impl Reader<'_> {
    /// Reads them all. The problems of all files are collected, so that they are told at once.
    ///
    /// # Errors
    /// A file that exists cannot be read, or one of them has a mistake.
    pub(crate) fn read(&self, files: &Files) -> Result<Layers, Error> {
        let mut layers = Layers::default();
        let mut problems = Vec::new();
        for (text, layer) in self.texts(files)? {
            self.parse(&text, layer, &mut layers, &mut problems);
        }
        if problems.is_empty() { Ok(layers) } else { Err(Error::Policy(problems)) }
    }

    fn texts(&self, files: &Files) -> Result<Vec<(FileText, Layer)>, Error> {
        let mut texts: Vec<_> =
            sources::managed(Path::new(MANAGED_DIR))?.into_iter().map(|text| (text, Layer::Managed)).collect();
        match files {
            Files::Only(path) => {
                let path = self.place.absolute(path)?;
                texts.push((sources::file(path.as_path())?, Layer::CommandLine));
            }
            Files::Usual => {
                let user = self.config.join("policy.toml");
                texts.extend(sources::optional(user.as_path())?.map(|text| (text, Layer::User)));
                if let Some(project) = self.place.project_file() {
                    texts.push((sources::of_repository(&project)?, Layer::Project));
                }
            }
        }
        Ok(texts)
    }

    fn parse(&self, text: &FileText, layer: Layer, layers: &mut Layers, problems: &mut Vec<Diagnostic>) {
        let Ok(file) = HostPath::new(&text.path) else { return };
        let trust = match layer {
            Layer::Project if !(self.trusts)(&file, &text.text) => Trust::Untrusted,
            _ => Trust::Trusted,
        };
        let base = ParseContext::base_of(layer, &file, &self.place.workspace);
        let resolve_set = match trust {
            Trust::Trusted => self.resolve_set,
            Trust::Untrusted => self.resolve_untrusted,
        };
        let context = ParseContext::file(layer, &text.path, &self.place.home, &base, resolve_set).with_trust(trust);
        match native::parse(&text.text, &self.name(&text.path), &context) {
            Ok(Parsed { fragment, warnings }) => {
                layers.fragments.push(fragment);
                layers.warnings.extend(warnings);
                layers.used.push(SourceUse { path: text.path.clone(), layer, trusted: trust == Trust::Trusted });
            }
            Err(found) => problems.extend(found),
        }
    }

    /// A file's name as people know it: relative to where they stand, or below their home.
    fn name(&self, path: &Path) -> String {
        if let Ok(rest) = path.strip_prefix(self.place.cwd.as_path()) {
            return rest.display().to_string();
        }
        match path.strip_prefix(self.place.home.as_path()) {
            Ok(rest) if self.place.home.depth() > 0 => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }
}
