//! Every look at a file, a variable or a program, remembered so that the cache can tell when an answer is out of date.

use super::program::{self, Helper};
use super::{Ask, Context};
use crate::store::sha256_hex;
use ringfence_policy::HostPath;
use ringfence_sys::files::list_dir;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger files are no client's configuration.
const MAX: u64 = 4 * 1024 * 1024;

/// Time of change, size and number of a file: what changes when its content does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp(i64, i64, u64, u64);

impl Stamp {
    /// Of what is there in the end, links followed; `None` when nothing is.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self(meta.mtime(), meta.mtime_nsec(), meta.size(), meta.ino()))
    }
}

/// The looks of one resolution.
pub(super) struct Look<'a> {
    context: &'a Context<'a>,
    pub(super) files: BTreeMap<PathBuf, Option<Stamp>>,
    pub(super) vars: BTreeSet<String>,
    pub(super) prefixes: BTreeSet<String>,
}

impl<'a> Look<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Self { context, files: BTreeMap::new(), vars: BTreeSet::new(), prefixes: BTreeSet::new() }
    }

    /// A path in the home.
    pub(super) fn home(&self, path: &str) -> PathBuf {
        self.context.home.as_path().join(path)
    }

    /// A path of the system.
    pub(super) fn system(&self, path: &str) -> PathBuf {
        self.context.system.join(path)
    }

    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) fn config(&mut self, path: &str) -> PathBuf {
        let base = self.var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        base.unwrap_or_else(|| self.home(".config")).join(path)
    }

    /// The folder that a variable names, or one in the home.
    pub(super) fn folder(&mut self, var: &str, default: &str) -> PathBuf {
        self.var(var).map(PathBuf::from).filter(|p| p.is_absolute()).unwrap_or_else(|| self.home(default))
    }

    /// The text of a file; `None` when it is not there or the command could have written it.
    pub(super) fn read(&mut self, path: &Path) -> Option<String> {
        self.files.insert(path.to_owned(), Stamp::of(path));
        if !self.is_trusted(path) {
            return None;
        }
        let file = std::fs::File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a folder, in order.
    pub(super) fn list(&mut self, path: &Path) -> Vec<OsString> {
        self.files.insert(path.to_owned(), Stamp::of(path));
        let mut names: Vec<OsString> = match self.is_trusted(path) {
            true => list_dir(path).unwrap_or_default().into_iter().map(|(name, _)| name).collect(),
            false => Vec::new(),
        };
        names.sort();
        names
    }

    /// Remembers a file without reading it.
    pub(super) fn note(&mut self, path: &Path) {
        self.files.insert(path.to_owned(), Stamp::of(path));
    }

    /// The value of a variable, unless it is unset, empty or not text.
    pub(super) fn var(&mut self, name: &str) -> Option<String> {
        self.vars.insert(name.to_owned());
        let value = crate::probe::Env(self.context.env).text(name)?;
        Some(value.to_owned())
    }

    /// The variables whose names begin so, whatever their case: the rest of the name in lower case, and the value.
    pub(super) fn vars_with(&mut self, prefix: &str) -> Vec<(String, String)> {
        self.prefixes.insert(prefix.to_owned());
        matching(self.context.env, prefix)
    }

    /// A program in `PATH` that may be started; `None` when there is none, or nobody may be asked.
    pub(super) fn program(&mut self, name: &str) -> Option<Helper> {
        self.programs(name).into_iter().next()
    }

    /// All programs of this name in `PATH`.
    pub(super) fn programs(&mut self, name: &str) -> Vec<Helper> {
        self.vars.insert("PATH".to_owned());
        let candidates = program::candidates(self.context, name);
        for candidate in &candidates {
            self.note(candidate);
        }
        if self.context.ask == Ask::Nobody {
            return Vec::new();
        }
        candidates.iter().filter_map(|path| program::trusted(self.context, path)).collect()
    }

    /// Where a program may keep files for a moment; `None` where we have no folder of ours.
    pub(super) fn scratch(&self) -> Option<HostPath> {
        self.context.cache.cloned()
    }

    /// Whether a path, after following links, lies outside of everything that the command may write.
    pub(super) fn is_trusted(&self, path: &Path) -> bool {
        program::outside(self.context, path)
    }

    /// One hash over all variables that were looked at.
    pub(super) fn env_hash(
        env: &[(OsString, OsString)],
        vars: &BTreeSet<String>,
        prefixes: &BTreeSet<String>,
    ) -> String {
        let mut text: Vec<u8> = Vec::new();
        let mut add = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            text.push(0);
        };
        for name in vars {
            add(name.as_bytes());
            add(crate::probe::Env(env).get(name).map(OsStr::as_bytes).unwrap_or_default());
        }
        for prefix in prefixes {
            for (name, value) in matching(env, prefix) {
                add(name.as_bytes());
                add(value.as_bytes());
            }
        }
        sha256_hex(&text)
    }
}

fn matching(env: &[(OsString, OsString)], prefix: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = env
        .iter()
        .filter_map(|(name, value)| {
            let name = name.to_str()?.to_ascii_lowercase();
            let rest = name.strip_prefix(&prefix.to_ascii_lowercase())?;
            Some((rest.to_owned(), value.to_str()?.to_owned()))
        })
        .collect();
    found.sort();
    found
}
