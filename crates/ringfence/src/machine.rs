//! What this machine and ringfence's own files add to a policy.

use crate::error::Error;
use crate::layers::SourceUse;
use crate::place::Place;
use ringfence_dialect::{Diagnostic, codes};
use ringfence_enforce::probe::Probed;
use ringfence_policy::{
    Access, Base, Fragment, HostPath, Layer, Origin, PathPattern, PathRule, PathVerb, Policy, Source, Verdict, defaults,
};

/// The machine's tools can be read, the stores of other home folders cannot, and a policy file cannot be written by the
/// command that it binds.
pub(crate) fn fragment(probed: &Probed, place: &Place, used: &[SourceUse]) -> Fragment {
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
    for home in &probed.other_homes {
        fragment.paths.extend(stores_of(home, place, probed.facts.uid));
    }
    fragment
}

/// The built-in credential stores of another home folder: root's `HOME` may be an ordinary user's, and the reverse.
fn stores_of(home: &HostPath, place: &Place, uid: u32) -> Vec<PathRule> {
    let base = Base { home: home.clone(), workspace: place.workspace.clone(), git_dirs: Vec::new(), uid };
    let inside = |pattern: &PathPattern| match pattern {
        PathPattern::Subtree(path) => path.is_within(home),
        PathPattern::Glob(glob) => glob.base.is_within(home),
    };
    let mut rules = defaults::fragment(&base).paths;
    rules.retain(|rule| rule.verb == PathVerb::DenyRead && inside(&rule.pattern));
    rules
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

/// What exists of ringfence's own can be covered where the command may write around it; what does not exist yet could be
/// made by the command, and would then widen the next run.
pub(crate) fn own_folders_are_safe(policy: &Policy, own: [&HostPath; 3]) -> Result<(), Error> {
    let roots = writable_roots(policy);
    for path in own {
        if roots.iter().any(|root| path.is_within(root)) && path.as_path().symlink_metadata().is_err() {
            return Err(Error::OwnFolder { path: path.clone() });
        }
    }
    Ok(())
}

/// A warning about a policy file that lies where the command may write. A repository's own file always does; it only
/// narrows, or its content is pinned.
pub(crate) fn writable_policy(used: &SourceUse, policy: &Policy) -> Option<Diagnostic> {
    let folder = HostPath::new(used.path.parent()?).ok()?;
    let writable = policy.may_path(&folder, Access::Write).verdict == Verdict::Allowed;
    if !writable || used.layer == Layer::Project {
        return None;
    }
    let message = format!("the policy `{}` lies where the command may write", used.path.display());
    let hint = "it is write-protected in this run; move it out of the writable folders";
    Some(Diagnostic::warning(codes::POLICY_WRITABLE, message).hint(hint))
}
