//! Merging fragments into a policy: who may widen what.
//!
//! Rules are united; of settings that have one value, the strongest layer that sets it wins. A project file that is not
//! trusted keeps what narrows and loses the rest, and ceilings of managed sources bound everybody. What is lost is a
//! [`Finding`], never silence.

mod ceilings;
mod narrow;

use crate::env_rule::{EnvPolicy, EnvSet};
use crate::fragment::Fragment;
use crate::limits::{Limit, Limits};
use crate::origin::{Layer, Origin, Source};
use crate::path_rule::{HostPath, PathPattern, PathRule, PathVerb};
use crate::{FilePolicy, Home, HomeMode, NetworkPolicy, Policy, PresetUse, ProtectedName, WallPolicy, defaults};
use serde::Serialize;
use std::collections::BTreeSet;

/// Something that a source said and that does not take effect, or is weaker than it looks. Never an error: errors stop
/// at the parser.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// A stable code: `RF03xx`, listed in [`crate::lint::CODES`].
    pub code: &'static str,
    /// What was said and what becomes of it.
    pub message: String,
    /// Whose word it was.
    pub origin: Origin,
    /// What to do.
    pub hint: Option<String>,
}

/// The facts of a run that rules refer to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Base {
    /// The real home folder.
    pub home: HostPath,
    /// The workspace.
    pub workspace: HostPath,
    /// Git directories that belong to the workspace but lie outside of it (linked worktrees, submodules).
    pub git_dirs: Vec<HostPath>,
    /// The effective user's number; 0 adds the stores that only root can read.
    pub uid: u32,
}

/// Merges the fragments of all sources into one policy. The order of `fragments` has no meaning; their layers have.
///
/// The caller loads presets as fragments of their own, those of [`Fragment::granted_presets`], and what this machine's
/// tools need (folders of `PATH`) as a fragment of [`Layer::Builtin`] with [`Source::Machine`] origins.
pub fn merge(base: &Base, fragments: Vec<Fragment>) -> (Policy, Vec<Finding>) {
    let mut findings = Vec::new();
    // What a narrowing source wants to be one value is compared with what the others made of it.
    let mut narrowing = Vec::new();
    let mut trusted = vec![defaults::fragment(base)];
    for fragment in fragments {
        let (grants, narrows) = narrow::split(fragment, &mut findings);
        trusted.push(grants);
        narrowing.extend(narrows);
    }
    // Strongest first; within a layer the contents decide, so that the order of the sources does not.
    trusted.sort_by(|a, b| a.layer.cmp(&b.layer).then_with(|| narrow::identity(a).cmp(&narrow::identity(b))));

    let home = home(base, &trusted, &narrowing, &mut findings);
    let mut policy = Policy {
        workspace: base.workspace.clone(),
        files: FilePolicy {
            rules: path_rules(base, &trusted, &home),
            home,
            protected: protected(&trusted, &mut findings),
            copies: sorted(all(&trusted, |f| &f.copies), |c| (c.path.clone(), c.origin.clone())),
            private: defaults::private_folders(),
        },
        network: NetworkPolicy {
            rules: sorted(all(&trusted, |f| &f.hosts), |r| {
                (r.origin.clone(), r.host.clone(), r.ports.clone(), r.verb, r.addresses.clone(), r.why.clone())
            }),
            requests: sorted(all(&trusted, |f| &f.requests), |r| {
                (r.origin.clone(), r.host.clone(), r.methods.clone(), r.paths.clone())
            }),
            publish: sorted(all(&trusted, |f| &f.publish), |p| (p.port, p.origin.clone())),
            host_ports: sorted(all(&trusted, |f| &f.host_ports), |p| (p.port, p.origin.clone())),
            upstream: trusted.iter().find_map(|f| f.upstream.clone()),
        },
        credentials: sorted(all(&trusted, |f| &f.credentials), |c| (c.origin.clone(), c.name.clone())),
        unix: sorted(all(&trusted, |f| &f.unix), |u| (u.path.clone(), u.origin.clone())),
        env: env(&trusted, &mut findings),
        limits: limits(&trusted, &narrowing, &mut findings),
        walls: WallPolicy {
            allow_weaker: trusted.iter().find_map(|f| f.allow_weaker.clone()),
            skip_proof: trusted.iter().find_map(|f| f.skip_proof.clone()),
        },
        ceilings: Vec::new(),
        presets: presets(&trusted),
    };
    policy.network.publish.dedup_by_key(|p| p.port);
    policy.network.host_ports.dedup_by_key(|p| p.port);
    policy.unix.dedup_by(|later, first| later.path == first.path);
    policy.files.copies.dedup_by(|later, first| later.path == first.path);
    let ceilings = trusted.into_iter().filter_map(|f| f.ceiling).collect();
    ceilings::apply(&mut policy, ceilings, &mut findings);
    findings.sort();
    findings.dedup();
    (policy, findings)
}

/// All entries of one kind.
fn all<T: Clone>(fragments: &[Fragment], get: impl Fn(&Fragment) -> &Vec<T>) -> Vec<T> {
    fragments.iter().flat_map(|f| get(f).iter().cloned()).collect()
}

/// Entries in an order that does not depend on the order of the sources, each once.
fn sorted<T: PartialEq, K: Ord>(mut entries: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    entries.sort_by_cached_key(key);
    entries.dedup();
    entries
}

fn path_rules(base: &Base, fragments: &[Fragment], home: &Home) -> Vec<PathRule> {
    let mut rules = all(fragments, |f| &f.paths);
    // A policy that the command could write would decide on the next run.
    for file in policy_files(fragments) {
        rules.push(PathRule {
            pattern: PathPattern::Subtree(file),
            verb: PathVerb::DenyWrite,
            origin: Origin::builtin("policy files"),
            why: Some("a policy file of this run".to_owned()),
        });
    }
    // As root, the folder of everybody's homes is hidden; the home that was asked for is not.
    if home.mode == HomeMode::Visible && base.uid == 0 && home.path.depth() > 0 {
        rules.push(PathRule {
            pattern: PathPattern::Subtree(home.path.clone()),
            verb: PathVerb::AllowRead,
            origin: Origin::builtin("home"),
            why: Some("the home folder is visible".to_owned()),
        });
    }
    sorted(rules, |r| (r.origin.clone(), r.pattern.clone(), r.verb, r.why.clone()))
}

/// Every file in which a rule of this run was written.
pub(crate) fn policy_files(fragments: &[Fragment]) -> BTreeSet<HostPath> {
    let origins = fragments.iter().flat_map(narrow::origins);
    let files = origins.filter_map(|origin| match &origin.source {
        Source::File(path) => HostPath::new(path).ok(),
        Source::Flag(_) | Source::Preset(_) | Source::Builtin(_) | Source::Machine(_) => None,
    });
    files.collect()
}

fn home(base: &Base, trusted: &[Fragment], narrowing: &[Fragment], findings: &mut Vec<Finding>) -> Home {
    let default = (HomeMode::Private, Origin::builtin("home"));
    let strongest = trusted.iter().find(|f| f.home.is_some()).map(|f| f.layer);
    let said = trusted.iter().filter(|f| Some(f.layer) == strongest).filter_map(|f| f.home.clone()).min();
    let (mut mode, mut origin) = said.unwrap_or(default);
    for (wanted, by) in narrowing.iter().filter_map(|f| f.home.clone()) {
        if wanted < mode {
            (mode, origin) = (wanted, by);
        } else if wanted > mode {
            findings.push(narrow::dropped("home", &by));
        }
    }
    if base.home.depth() == 0 && mode != HomeMode::Visible {
        findings.push(Finding {
            code: "RF0310",
            message: "the home folder is `/`; it cannot be private, because everything lies in it".to_owned(),
            origin: origin.clone(),
            hint: Some("set HOME to a folder of its own".to_owned()),
        });
        mode = HomeMode::Visible;
    }
    Home { path: base.home.clone(), mode, origin }
}

fn protected(fragments: &[Fragment], findings: &mut Vec<Finding>) -> Vec<ProtectedName> {
    let mut names = all(fragments, |f| &f.protected);
    for (pattern, origin) in all(fragments, |f| &f.unprotect) {
        let wanted = pattern.trim_matches('/');
        let before = names.len();
        names.retain(|name| {
            let below = name.pattern.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            name.origin.layer != Layer::Builtin || !below
        });
        if names.len() < before {
            findings.push(Finding {
                code: "RF0312",
                message: format!(
                    "`{pattern}` is no longer protected: a program of the host may run what is written there"
                ),
                origin,
                hint: None,
            });
        } else {
            findings.push(Finding {
                code: "RF0304",
                message: format!("`unprotect` names `{pattern}`, which is no built-in protected name"),
                origin,
                hint: Some("ringfence explain lists the protected names".to_owned()),
            });
        }
    }
    sorted(names, |n| (n.origin.clone(), n.pattern.clone(), n.kind, n.why.clone()))
}

fn env(fragments: &[Fragment], findings: &mut Vec<Finding>) -> EnvPolicy {
    let key = |r: &crate::EnvRule| (r.origin.clone(), r.pattern.clone());
    let mut set: Vec<EnvSet> = Vec::new();
    // Strongest first, so the first value of a name stays.
    let mut wanted = all(fragments, |f| &f.env_set);
    wanted.sort_by(|a, b| {
        (a.origin.layer, &a.name, &a.value, &a.origin).cmp(&(b.origin.layer, &b.name, &b.value, &b.origin))
    });
    for entry in wanted {
        match set.iter().find(|first| first.name == entry.name) {
            Some(first) if first.origin.layer == entry.origin.layer && first.value != entry.value => {
                findings.push(Finding {
                    code: "RF0311",
                    message: format!("two sources of one layer set `{}` to different values", entry.name),
                    origin: entry.origin,
                    hint: Some(format!("the value of {} is used", first.origin)),
                });
            }
            Some(_) => {}
            None => set.push(entry),
        }
    }
    set.sort_by(|a, b| a.name.cmp(&b.name));
    EnvPolicy {
        deny: sorted(all(fragments, |f| &f.env_deny), key),
        pass: sorted(all(fragments, |f| &f.env_pass), key),
        set,
    }
}

fn limits(trusted: &[Fragment], narrowing: &[Fragment], findings: &mut Vec<Finding>) -> Limits {
    Limits {
        memory: limit(trusted, narrowing, "memory", |l| &l.memory, findings),
        pids: limit(trusted, narrowing, "pids", |l| &l.pids, findings),
        disk: limit(trusted, narrowing, "disk", |l| &l.disk, findings),
        wall: limit(trusted, narrowing, "wall", |l| &l.wall, findings),
        cpu: limit(trusted, narrowing, "cpu", |l| &l.cpu, findings),
        open_files: limit(trusted, narrowing, "open_files", |l| &l.open_files, findings),
    }
}

fn limit<T: Ord + Clone>(
    trusted: &[Fragment],
    narrowing: &[Fragment],
    name: &str,
    get: impl Fn(&Limits) -> &Option<Limit<T>>,
    findings: &mut Vec<Finding>,
) -> Option<Limit<T>> {
    let smaller = |a: &Limit<T>, b: &Limit<T>| (&a.value, &a.origin).cmp(&(&b.value, &b.origin));
    let strongest = trusted.iter().find(|f| get(&f.limits).is_some()).map(|f| f.layer);
    let said = trusted.iter().filter(|f| Some(f.layer) == strongest);
    let mut chosen = said.filter_map(|f| get(&f.limits).clone()).min_by(smaller);
    for wanted in narrowing.iter().filter_map(|f| get(&f.limits).clone()) {
        match &chosen {
            Some(limit) if wanted.value > limit.value => {
                findings.push(narrow::dropped(&format!("limit {name}"), &wanted.origin))
            }
            Some(limit) if smaller(&wanted, limit).is_ge() => {}
            _ => chosen = Some(wanted),
        }
    }
    chosen
}

fn presets(fragments: &[Fragment]) -> Vec<PresetUse> {
    let mut uses: Vec<PresetUse> = Vec::new();
    for (name, origin) in all(fragments, |f| &f.presets) {
        if !uses.iter().any(|first| first.name == name) {
            uses.push(PresetUse { name, origin });
        }
    }
    uses
}
