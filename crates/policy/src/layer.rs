//! Merging fragments into a policy: who may widen what.
//!
//! Rules are united; of settings that have one value, the strongest layer that sets it wins. A project file that is not
//! trusted keeps what narrows and loses the rest, and ceilings of managed sources bound everybody. What is lost is a
//! [`Finding`], never silence.

mod ceilings;
mod narrow;

use crate::env_rule::{EnvPolicy, EnvRule, EnvSet};
use crate::fragment::Fragment;
use crate::limits::{Limit, Limits};
use crate::origin::{Layer, Origin, Source};
use crate::path_rule::{HostPath, PathPattern, PathRule, PathVerb};
use crate::{
    FilePolicy, Home, HomeMode, HostRule, NetworkPolicy, Policy, PortRule, PresetUse, ProtectedName, WallPolicy,
    defaults,
};
use serde::Serialize;
use std::cmp::Ordering;
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
    merge_with(base, fragments, Tables::Whole)
}

/// The same for a run, which starts sooner with fewer rules: of a home folder that is not shown, stores that nothing shown
/// lies near are left out, since no path of theirs is seen. Every decision has the same verdict as after [`merge`]; what is
/// left out is missing only in lists, and in the reasons for what is private anyhow.
pub fn merge_for_run(base: &Base, fragments: Vec<Fragment>) -> (Policy, Vec<Finding>) {
    merge_with(base, fragments, Tables::Needed)
}

/// How much of the built-in tables a policy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    Whole,
    Needed,
}

/// The stores that can decide anything.
fn stores(base: &Base, home: &Home, said: &[Fragment], tables: Tables) -> defaults::Stores {
    if tables == Tables::Whole || home.mode == HomeMode::Visible {
        return defaults::Stores::All;
    }
    let granted = said.iter().flat_map(|f| &f.paths).filter(|rule| !rule.verb.is_deny());
    let granted = granted.map(|rule| match &rule.pattern {
        // It matches wherever it matches, also inside.
        PathPattern::Glob(glob) if base.home.is_within(&glob.base) => &base.home,
        pattern => pattern.base(),
    });
    let shown = granted.chain([&base.workspace]).chain(&base.git_dirs);
    let below = shown.filter_map(|path| path.as_path().strip_prefix(base.home.as_path()).ok());
    let below = below.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
    defaults::Stores::Near(below.chain(defaults::shown_at_home().map(|path| path.as_bytes().to_vec())).collect())
}

fn merge_with(base: &Base, fragments: Vec<Fragment>, tables: Tables) -> (Policy, Vec<Finding>) {
    let mut findings = Vec::new();
    // What a narrowing source wants to be one value is compared with what the others made of it.
    let mut narrowing = Vec::new();
    let mut said = Vec::new();
    for fragment in fragments {
        let (grants, narrows) = narrow::split(fragment, &mut findings);
        said.push(grants);
        narrowing.extend(narrows);
    }
    // Strongest first; within a layer the contents decide, so that the order of the sources does not.
    said.sort_by(narrow::order);
    let home = home(base, &said, &narrowing, &mut findings);
    // The tables are many and in order already: they are appended, never sorted.
    let built_in = defaults::with_stores(base, &stores(base, &home, &said, tables));
    let mut policy = Policy {
        workspace: base.workspace.clone(),
        files: FilePolicy {
            rules: path_rules(base, &mut said, built_in.paths, &home).into(),
            home,
            protected: protected(&mut said, built_in.protected, &mut findings).into(),
            copies: gather(&mut said, |f| &mut f.copies, |a, b| (&a.path, &a.origin).cmp(&(&b.path, &b.origin))),
            private: defaults::private_folders(),
        },
        network: NetworkPolicy {
            rules: gather(&mut said, |f| &mut f.hosts, by_rule).into(),
            requests: gather(
                &mut said,
                |f| &mut f.requests,
                |a, b| (&a.origin, &a.host, &a.methods, &a.paths).cmp(&(&b.origin, &b.host, &b.methods, &b.paths)),
            ),
            publish: gather(&mut said, |f| &mut f.publish, by_port),
            host_ports: gather(&mut said, |f| &mut f.host_ports, by_port),
            upstream: said.iter().find_map(|f| f.upstream.clone()),
        },
        credentials: gather(&mut said, |f| &mut f.credentials, |a, b| (&a.origin, &a.name).cmp(&(&b.origin, &b.name))),
        unix: gather(&mut said, |f| &mut f.unix, |a, b| (&a.path, &a.origin).cmp(&(&b.path, &b.origin))),
        env: env(&mut said, (built_in.env_deny, built_in.env_pass), &mut findings),
        limits: limits(&said, &narrowing, &mut findings),
        walls: WallPolicy {
            allow_weaker: said.iter().find_map(|f| f.allow_weaker.clone()),
            skip_proof: said.iter().find_map(|f| f.skip_proof.clone()),
        },
        ceilings: Vec::new(),
        presets: presets(&said),
    };
    policy.network.publish.dedup_by_key(|p| p.port);
    policy.network.host_ports.dedup_by_key(|p| p.port);
    policy.unix.dedup_by(|later, first| later.path == first.path);
    policy.files.copies.dedup_by(|later, first| later.path == first.path);
    let ceilings = said.into_iter().filter_map(|f| f.ceiling).collect();
    ceilings::apply(&mut policy, ceilings, &mut findings);
    findings.sort();
    findings.dedup();
    (policy, findings)
}

/// Takes all entries of one kind, in an order that does not depend on the order of the sources, each once.
fn gather<T: PartialEq>(
    fragments: &mut [Fragment],
    get: impl Fn(&mut Fragment) -> &mut Vec<T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut entries: Vec<T> = fragments.iter_mut().flat_map(|f| std::mem::take(get(f))).collect();
    entries.sort_by(order);
    entries.dedup();
    entries
}

fn by_rule(a: &HostRule, b: &HostRule) -> Ordering {
    (&a.origin, &a.host, &a.ports, a.verb, &a.addresses, &a.why).cmp(&(
        &b.origin,
        &b.host,
        &b.ports,
        b.verb,
        &b.addresses,
        &b.why,
    ))
}

fn by_port(a: &PortRule, b: &PortRule) -> Ordering {
    (a.port, &a.origin).cmp(&(b.port, &b.origin))
}

fn path_rules(base: &Base, said: &mut [Fragment], built_in: Vec<PathRule>, home: &Home) -> Vec<PathRule> {
    let files = policy_files(said);
    // The machine's rules are many and made in order, and their layer comes last anyhow: appended, as the tables are.
    let machine = said.iter_mut().filter(|f| f.layer == Layer::Builtin);
    let machine: Vec<_> = machine.map(|f| std::mem::take(&mut f.paths)).collect();
    let mut rules = gather(
        said,
        |f| &mut f.paths,
        |a, b| (&a.origin, &a.pattern, a.verb, &a.why).cmp(&(&b.origin, &b.pattern, b.verb, &b.why)),
    );
    rules.extend(machine.into_iter().flatten());
    // A policy that the command could write would decide on the next run.
    for file in files {
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
    rules.extend(built_in);
    rules
}

/// Every file in which a rule of this run was written.
fn policy_files(fragments: &[Fragment]) -> BTreeSet<HostPath> {
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

fn protected(said: &mut [Fragment], built_in: Vec<ProtectedName>, findings: &mut Vec<Finding>) -> Vec<ProtectedName> {
    let mut names = gather(
        said,
        |f| &mut f.protected,
        |a, b| (&a.origin, &a.pattern, a.kind, &a.why).cmp(&(&b.origin, &b.pattern, b.kind, &b.why)),
    );
    names.extend(built_in);
    for (pattern, origin) in gather(said, |f| &mut f.unprotect, Ord::cmp) {
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
    names
}

fn env(said: &mut [Fragment], built_in: (Vec<EnvRule>, Vec<EnvRule>), findings: &mut Vec<Finding>) -> EnvPolicy {
    let order = |a: &EnvRule, b: &EnvRule| (&a.origin, &a.pattern).cmp(&(&b.origin, &b.pattern));
    let mut deny = gather(said, |f| &mut f.env_deny, order);
    let mut pass = gather(said, |f| &mut f.env_pass, order);
    deny.extend(built_in.0);
    pass.extend(built_in.1);
    let mut set: Vec<EnvSet> = Vec::new();
    // Strongest first, so the first value of a name stays.
    let wanted = gather(
        said,
        |f| &mut f.env_set,
        |a, b| (a.origin.layer, &a.name, &a.value, &a.origin).cmp(&(b.origin.layer, &b.name, &b.value, &b.origin)),
    );
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
    EnvPolicy { deny, pass, set }
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

fn presets(said: &[Fragment]) -> Vec<PresetUse> {
    let mut uses: Vec<PresetUse> = Vec::new();
    for (name, origin) in said.iter().flat_map(|f| &f.presets) {
        if !uses.iter().any(|first| first.name == *name) {
            uses.push(PresetUse { name: name.clone(), origin: origin.clone() });
        }
    }
    uses
}
