//! What this machine and ringfence's own files add to a policy.

use crate::error::Error;
use crate::layers::SourceUse;
use crate::place::Place;
use ringfence_enforce::probe::Probed;
use ringfence_policy::{Fragment, HostPath, Layer, Origin, PathPattern, PathRule, PathVerb, Policy, Source, defaults};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

/// The machine's tools can be read, the stores of other home folders cannot, and a policy file cannot be written by the
/// command that it binds.
pub(crate) fn fragment(probed: &Probed, own: [&HostPath; 3], used: &[SourceUse], seen: &Seen<'_>) -> Fragment {
    let mut fragment = Fragment::empty(Layer::Builtin);
    let mut rule = |path: HostPath, verb, source, why: Option<String>| {
        let origin = Origin { layer: Layer::Builtin, source, line: None };
        fragment.paths.push(PathRule { pattern: PathPattern::Subtree(path), verb, origin, why });
    };
    for tool in &probed.facts.toolchains {
        rule(tool.path.clone(), PathVerb::AllowRead, Source::Machine(tool.why.clone()), None);
    }
    for path in used.iter().filter_map(|used| HostPath::new(&used.path).ok()) {
        let why = Some("a policy file of this run".to_owned());
        rule(path, PathVerb::DenyWrite, Source::Builtin("policy files".to_owned()), why);
    }
    // Policy may be read, but other workspaces' homes, trust and the log may not.
    for (path, verb) in own.into_iter().zip([PathVerb::DenyWrite, PathVerb::DenyRead, PathVerb::DenyRead]) {
        rule(path.clone(), verb, Source::Builtin("ringfence".to_owned()), Some("ringfence's own folder".to_owned()));
    }
    let others: Vec<&HostPath> = probed.other_homes.iter().filter(|home| can_be_entered(home)).collect();
    let (shown, hidden): (Vec<&HostPath>, Vec<&HostPath>) =
        others.into_iter().partition(|home| seen.within(home, probed));
    for home in hidden {
        let why = Some("another user's home folder".to_owned());
        rule(home.clone(), PathVerb::DenyRead, Source::Builtin("other homes".to_owned()), why);
    }
    // Root's `HOME` may be an ordinary user's, and the reverse.
    for home in shown {
        fragment.paths.extend(defaults::stores_of(home));
    }
    fragment
}

/// What may need to see another user's home folder.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a Place,
    pub(crate) fragments: &'a [Fragment],
    pub(crate) env: &'a [(OsString, OsString)],
}

impl Seen<'_> {
    /// Whether the run works in a home folder, a rule shows something of it, or `PATH` has tools in it. Then its stores
    /// are hidden one by one, and else the whole.
    fn within(&self, home: &HostPath, probed: &Probed) -> bool {
        let granted = self.fragments.iter().flat_map(|fragment| &fragment.paths);
        let mut granted = granted.filter(|rule| !rule.verb.is_deny()).map(|rule| rule.pattern.base());
        let path = self.env.iter().filter(|(name, _)| name == "PATH");
        let mut tools =
            path.flat_map(|(_, value)| std::env::split_paths(value)).filter_map(|dir| HostPath::new(dir).ok());
        let mut places = [&self.place.workspace, &self.place.home].into_iter().chain(&probed.facts.git_dirs);
        granted.any(|path| path.is_within(home))
            || tools.any(|dir| dir.is_within(home))
            || places.any(|path| path.is_within(home))
    }
}

/// Whether there is anything to hide in another home folder: not where the system hides it already. Those that are hidden
/// from root as a whole are no exception: a rule may show one of them, but not its stores.
fn can_be_entered(home: &HostPath) -> bool {
    // Looking at a name in a folder needs the right to search it (path_resolution(7)).
    home.as_path().join(".").symlink_metadata().is_ok()
}

/// The folders that a policy makes writable.
pub(crate) fn writable_roots(policy: &Policy) -> Vec<HostPath> {
    let rules = policy.files.rules.iter().filter(|rule| rule.verb == PathVerb::AllowWrite);
    rules
        .map(|rule| match &rule.pattern {
            PathPattern::Subtree(path) => path.clone(),
            PathPattern::Glob(glob) => glob.base.clone(),
        })
        .collect()
}

/// Makes those of ringfence's own folders that are missing and that the command could make in their place: what exists
/// is covered, and what does not would widen the next run.
pub(crate) fn make_own_folders(policy: &Policy, own: [&HostPath; 3]) -> Result<(), Error> {
    let roots = writable_roots(policy);
    for path in own {
        if roots.iter().any(|root| path.is_within(root)) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path.as_path());
            made.map_err(|error| Error::OwnFolder { path: path.clone(), error })?;
        }
    }
    Ok(())
}
