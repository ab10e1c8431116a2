//! Unix sockets of programs outside. Connecting to one needs no writable mount (connect(2) asks for write permission on
//! the socket, not on its file system), so those that are seen are covered, and those that are allowed are shown.

use crate::PlanError;
use crate::fs_view::Kind;
use crate::layout::Want;
use crate::survey::Survey;
use ringfence_policy::defaults::control_sockets;
use ringfence_policy::{HostPath, Layer, PathPattern};
use std::collections::BTreeSet;

/// Puts a node for every socket that is seen and not allowed, and for every one that is allowed and not seen.
pub(crate) fn place(survey: &mut Survey<'_>) {
    let policy = survey.policy;
    let mut allowed = BTreeSet::new();
    for rule in &policy.unix {
        match survey.resolve(&rule.path) {
            Some((real, Kind::Socket)) => {
                if !survey.layout.want(&real).is_host() {
                    survey.show(
                        &rule.path,
                        real.clone(),
                        Want::ReadOnly,
                        Kind::Socket,
                        format!("allowed by {}", rule.origin),
                    );
                }
                allowed.insert(real);
            }
            // A flag is about this very run; a file is about many, and the service may not be there every time.
            _ if rule.origin.layer == Layer::CommandLine => {
                survey.errors.push(PlanError::Missing { path: rule.path.clone(), origin: rule.origin.to_string() });
            }
            _ => {
                survey.notes.sockets_absent.insert(rule.path.clone());
            }
        }
    }
    // Control sockets, or the folders that hold them, as far as they are not in folders that are private to the run.
    for socket in control_sockets(&policy.files.home.path) {
        let PathPattern::Subtree(path) = socket.pattern else { continue };
        if survey.layout.want(&path).is_host()
            && let Some((real, kind)) = survey.resolve(&path)
            && survey.layout.want(&real).is_host()
            && !allowed.contains(&real)
        {
            survey.layout.put(real, Want::Hidden, kind, socket.why);
        }
    }
    survey.sockets.clone_from(&allowed);
    let facts = survey.facts;
    for path in facts.unix_sockets.iter().collect::<BTreeSet<_>>() {
        if survey.layout.want(path).is_host()
            && let Some((real, Kind::Socket)) = survey.resolve(path)
            && survey.layout.want(&real).is_host()
            && !allowed.contains(&real)
        {
            survey.notes.sockets_covered += 1;
            survey.layout.put(real, Want::Hidden, Kind::Socket, "socket of a program outside");
        }
    }
}

/// Whether the policy allows the socket at this path, by any of its names.
pub(crate) fn is_allowed(survey: &Survey<'_>, path: &HostPath) -> bool {
    let real = survey.resolve(path).map(|(real, _)| real);
    survey
        .policy
        .unix
        .iter()
        .any(|rule| rule.path == *path || real.is_some() && survey.resolve(&rule.path).map(|(found, _)| found) == real)
}
