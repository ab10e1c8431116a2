//! Bounds that managed sources set. Those over paths and hosts are applied by every decision; the rest here, once.

use super::Finding;
use crate::Policy;
use crate::fragment::Ceiling;
use crate::limits::{Limit, Limits};
use crate::origin::Origin;

/// Applies the ceilings and puts them into the policy.
pub(super) fn apply(policy: &mut Policy, ceilings: Vec<Ceiling>, findings: &mut Vec<Finding>) {
    for ceiling in &ceilings {
        let mut above = |code, what: &str, origin: &Origin| {
            findings.push(Finding {
                code,
                message: format!("{what}: above the ceiling of {}", ceiling.origin),
                origin: origin.clone(),
                hint: None,
            });
        };
        if let Some(widest) = ceiling.home
            && policy.files.home.mode > widest
        {
            above("RF0305", "home", &policy.files.home.origin);
            policy.files.home.mode = widest;
            policy.files.home.origin = ceiling.origin.clone();
            // The rule that made a visible home readable goes with it.
            let kept = policy.files.rules.iter().filter(|rule| rule.origin != Origin::builtin("home"));
            policy.files.rules = kept.cloned().collect();
        }
        if !ceiling.allow_weaker {
            for (what, choice) in
                [("allow_weaker", &mut policy.walls.allow_weaker), ("skipping the proof", &mut policy.walls.skip_proof)]
            {
                if let Some(origin) = choice.take() {
                    above("RF0307", what, &origin);
                }
            }
        }
        if !ceiling.ports {
            for rule in policy.network.publish.drain(..) {
                above("RF0308", &format!("published port {}", rule.port), &rule.origin);
            }
            for rule in policy.network.host_ports.drain(..) {
                above("RF0308", &format!("host port {}", rule.port), &rule.origin);
            }
        }
        if !ceiling.unix {
            for rule in policy.unix.drain(..) {
                above("RF0309", &format!("socket `{}`", rule.path), &rule.origin);
            }
        }
        limits(&mut policy.limits, &ceiling.limits, &mut above);
    }
    policy.ceilings = ceilings;
}

fn limits(limits: &mut Limits, bounds: &Limits, above: &mut impl FnMut(&'static str, &str, &Origin)) {
    bound(&mut limits.memory, bounds.memory.as_ref(), "memory", above);
    bound(&mut limits.pids, bounds.pids.as_ref(), "pids", above);
    bound(&mut limits.disk, bounds.disk.as_ref(), "disk", above);
    bound(&mut limits.wall, bounds.wall.as_ref(), "wall", above);
    bound(&mut limits.cpu, bounds.cpu.as_ref(), "cpu", above);
    bound(&mut limits.open_files, bounds.open_files.as_ref(), "open_files", above);
}

fn bound<T: Ord + Clone>(
    limit: &mut Option<Limit<T>>,
    bound: Option<&Limit<T>>,
    name: &str,
    above: &mut impl FnMut(&'static str, &str, &Origin),
) {
    let Some(bound) = bound else { return };
    match limit {
        Some(limit) if limit.value <= bound.value => {}
        Some(over) => {
            above("RF0306", &format!("limit {name}"), &over.origin);
            *limit = Some(bound.clone());
        }
        None => *limit = Some(bound.clone()),
    }
}
