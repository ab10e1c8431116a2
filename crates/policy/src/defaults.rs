//! The built-in tables: credential stores, control sockets, protected names, withheld variables.

use crate::fragment::Fragment;
use crate::layer::Base;
use crate::origin::{Layer, Origin};
use crate::path_rule::{HostPath, PathPattern, PathRule, PathVerb};

/// Folders that are private to the run.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// Folders that are private to the run: empty at start, gone at its end.
pub fn private_folders() -> Vec<HostPath> {
    PRIVATE.iter().filter_map(|folder| HostPath::new(folder).ok()).collect()
}

/// What is built in, as a fragment like any other.
pub fn fragment(base: &Base) -> Fragment {
    let mut fragment = Fragment::empty(Layer::Builtin);
    let mut rule = |path: &HostPath, verb, table: &str, why: &str| {
        fragment.paths.push(PathRule {
            pattern: PathPattern::Subtree(path.clone()),
            verb,
            origin: Origin::builtin(table),
            why: Some(why.to_owned()),
        });
    };
    rule(&HostPath::root(), PathVerb::AllowRead, "default reads", "outside the home folder");
    rule(&base.workspace, PathVerb::AllowWrite, "workspace", "the workspace");
    for dir in &base.git_dirs {
        rule(dir, PathVerb::AllowWrite, "workspace", "a git directory of the workspace");
    }
    let _ = &mut rule;
    fragment
}
