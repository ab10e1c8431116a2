//! The one search of the file system: what patterns match and which protected names exist, for all patterns at once.
//!
//! It goes only where something can be matched, never follows a symlink, and is bounded. The objects of git repositories
//! are not searched: their names are hashes, and there may be hundreds of thousands.

use crate::PlanError;
use crate::fs_view::Kind;
use crate::layout::{Place, Want};
use crate::names::{self, Active, Protected, Sieve};
use crate::survey::Survey;
use ringfence_policy::{HostPath, PathGlob, PathPattern, PathVerb};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::rc::Rc;

/// Bounds of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Paths that may be covered; each one is a mount, and the kernel has a limit for them (`fs.mount-max`).
    pub(crate) matches: usize,
    /// Entries that may be looked at.
    pub(crate) entries: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { matches: 20_000, entries: 2_000_000 }
    }
}

/// A folder to be searched. The policy is asked by the path that rules are written in; mounts are made on the real one.
struct Folder<'a> {
    named: HostPath,
    real: HostPath,
    want: Want,
    patterns: Rc<Patterns<'a>>,
    protected: Active,
}

/// The patterns that may match something in a folder. Most of them are about other places.
#[derive(Default)]
struct Patterns<'a> {
    globs: Vec<(&'a PathGlob, PathVerb)>,
    sieve: Sieve,
}

impl<'a> Patterns<'a> {
    fn new(globs: Vec<(&'a PathGlob, PathVerb)>) -> Rc<Self> {
        let mut sieve = Sieve::default();
        for (glob, _) in &globs {
            sieve.add(&glob.pattern);
        }
        Rc::new(Self { globs, sieve })
    }

    /// Those that may match something in a folder below.
    fn narrowed(self: &Rc<Self>, named: &HostPath) -> Rc<Self> {
        let matter = |(glob, _): &&(&PathGlob, PathVerb)| glob.could_match_below(named);
        if self.globs.iter().filter(matter).count() == self.globs.len() {
            return Rc::clone(self);
        }
        Self::new(self.globs.iter().filter(matter).copied().collect())
    }
}

/// Puts a node for everything that a pattern or a protected name matches, and for the denials that lie in what a pattern
/// shows.
pub(crate) fn search(survey: &mut Survey<'_>, bounds: Bounds) {
    let policy = survey.policy;
    let globs = policy.files.rules.iter().filter_map(|rule| match &rule.pattern {
        PathPattern::Glob(glob) => Some((glob, rule.verb)),
        PathPattern::Subtree(_) => None,
    });
    let all = Patterns::new(globs.collect());
    let protected = Protected::new(&policy.files.protected);
    if all.globs.is_empty() && protected.is_empty() {
        return;
    }
    let mut search =
        Search { survey, protected, pending: BTreeSet::new(), shown: false, entries: 0, matches: 0, bounds };
    let starts = search.starts(&all);
    search.pending = starts.iter().map(|start| start.real.clone()).collect();
    for start in starts {
        if !search.folder(start) {
            return;
        }
    }
    if search.shown {
        survey.denials();
    }
}

struct Search<'s, 'a> {
    survey: &'s mut Survey<'a>,
    protected: Protected,
    /// Starts that were not yet searched on the way from another.
    pending: BTreeSet<HostPath>,
    /// Whether a pattern showed something.
    shown: bool,
    entries: usize,
    matches: usize,
    bounds: Bounds,
}

impl<'a> Search<'_, 'a> {
    /// Where the search begins: what of the host is seen, and the bases of patterns that show something more. Shallow
    /// ones come first and take the deeper ones along.
    fn starts(&self, all: &Rc<Patterns<'a>>) -> Vec<Folder<'a>> {
        let mut starts = Vec::new();
        let start = |named: &HostPath, real: HostPath, want| {
            let patterns = all.narrowed(named);
            self.is_worth(want, &patterns).then(|| {
                let protected = self.protected.at(&real);
                Folder { named: named.clone(), real, want, patterns, protected }
            })
        };
        let nodes = self.survey.layout.nodes();
        for (path, node) in nodes.filter(|(_, node)| node.kind == Kind::Dir && node.want.is_host()) {
            // What lies around a pattern's base is not searched for it: the base is a start of its own.
            let by_name = node.want == Want::Writable && !self.protected.is_empty();
            if by_name || all.globs.iter().any(|(glob, _)| path.is_within(&glob.base)) {
                starts.extend(start(path, path.clone(), node.want));
            }
        }
        for base in all.globs.iter().map(|(glob, _)| &glob.base).collect::<BTreeSet<_>>() {
            if let Some((real, Kind::Dir)) = self.survey.resolve(base) {
                let want = self.survey.layout.want(&real);
                starts.extend(start(base, real, want));
            }
        }
        starts.sort_by(|a, b| (a.real.depth(), &a.real, &a.named).cmp(&(b.real.depth(), &b.real, &b.named)));
        starts.dedup_by(|a, b| a.real == b.real && a.named == b.named);
        starts
    }

    /// Whether something may be found in a folder. Where nothing of the host is seen, only what shows something can be.
    fn is_worth(&self, want: Want, patterns: &Patterns<'_>) -> bool {
        want == Want::Writable && !self.protected.is_empty()
            || patterns.globs.iter().any(|(_, verb)| want.is_host() || !verb.is_deny())
    }

    /// Searches a folder and what lies below. `false`: a bound was reached.
    fn folder(&mut self, start: Folder<'a>) -> bool {
        if start.named == start.real && !self.pending.contains(&start.real) {
            return true;
        }
        let mut stack = vec![start];
        while let Some(folder) = stack.pop() {
            if is_kernels(&folder.real) {
                continue;
            }
            let Ok(children) = self.survey.view.children(&folder.real) else {
                // The command runs as the same user with fewer capabilities, so it cannot list the folder either; but it
                // could give itself the right to, where the folder is its own.
                if folder.want == Want::Writable {
                    self.survey.notes.unreadable.insert(folder.real);
                }
                continue;
            };
            if folder.named == folder.real {
                self.pending.remove(&folder.real);
            }
            self.entries += children.len();
            if self.entries > self.bounds.entries {
                self.survey.errors.push(PlanError::TooManyEntries { path: folder.real, bound: self.bounds.entries });
                return false;
            }
            let in_objects = folder.real.file_name().is_some_and(|name| name == "objects");
            for (name, kind) in children {
                if in_objects && kind == Kind::Dir && is_object_folder(&name) {
                    continue;
                }
                if let Some(below) = self.entry(&folder, &name, kind) {
                    stack.push(below);
                }
                if self.matches > self.bounds.matches {
                    return false;
                }
            }
        }
        true
    }

    /// Looks at one entry; the folder to search next, if it is one and worth it.
    fn entry(&mut self, folder: &Folder<'a>, name: &OsStr, kind: Kind) -> Option<Folder<'a>> {
        let protected = folder.want == Want::Writable && self.protected.passes(&folder.protected, name);
        let candidate = protected || folder.patterns.sieve.passes(name);
        if !candidate && kind != Kind::Dir {
            return None;
        }
        let named = folder.named.join(name);
        let real = if folder.named == folder.real { named.clone() } else { folder.real.join(name) };
        if candidate {
            self.candidate(&named, &real, kind);
        }
        if kind != Kind::Dir {
            return None;
        }
        let want = self.survey.layout.node(&real).map_or(folder.want, |node| node.want);
        let patterns = folder.patterns.narrowed(&named);
        self.is_worth(want, &patterns).then(|| {
            let protected = self.protected.below(&folder.protected, name);
            Folder { named, real, want, patterns, protected }
        })
    }

    /// Asks the policy about a path that a pattern may match.
    fn candidate(&mut self, named: &HostPath, real: &HostPath, kind: Kind) {
        let before = self.survey.layout.want(real);
        let word = self.survey.word(named);
        let want = match word.want {
            // To the policy nothing of the host is seen here, as far as patterns go; if something is (a tool, a folder that
            // another pattern shows), the denial is about it.
            Want::Private(_) if word.denied => Want::Hidden,
            want => want,
        };
        match want {
            Want::Hidden | Want::ReadOnly if want < before && before.is_host() => {
                let target = match kind {
                    Kind::Symlink => self.survey.resolve(named),
                    _ => Some((real.clone(), kind)),
                };
                let Some((target, target_kind)) = target else { return };
                self.count(&word.pattern);
                if word.pattern.is_none() {
                    self.survey.notes.names_held += 1;
                    for holder in names::holders(&self.survey.policy.files.protected, real) {
                        if self.survey.layout.want(&holder) == Want::Writable && !self.survey.is_window(&holder) {
                            self.survey.layout.pin(holder, &word.why);
                        }
                    }
                }
                self.survey.close(named, target, target_kind, want, word.why, None);
            }
            // What a pattern shows is what bears the name, never what a link of that name leads to.
            Want::ReadOnly | Want::Writable if want > before && kind != Kind::Symlink => {
                self.count(&word.pattern);
                self.shown = true;
                self.survey.show(named, real.clone(), want, kind, word.why);
            }
            Want::Private(Place::Home | Place::Temporary) | Want::Hidden | Want::ReadOnly | Want::Writable => {}
        }
    }

    fn count(&mut self, pattern: &Option<(String, ringfence_policy::Origin)>) {
        self.matches += 1;
        if self.matches > self.bounds.matches {
            let (pattern, origin) = pattern.as_ref().map_or_else(
                || ("protected names".to_owned(), "built in".to_owned()),
                |(pattern, origin)| (pattern.clone(), origin.to_string()),
            );
            self.survey.errors.push(PlanError::TooManyMatches { pattern, bound: self.bounds.matches, origin });
        }
    }
}

/// `/proc`, `/sys` and `/dev` hold no files of anybody's.
fn is_kernels(path: &HostPath) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|kernel| path.as_path().starts_with(kernel))
}

/// Folders inside `objects` of a git repository: two hexadecimal digits, `pack`, `info`.
fn is_object_folder(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == b"pack" || name == b"info" || name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}
