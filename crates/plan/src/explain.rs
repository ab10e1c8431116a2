//! A plan as lines for people.

use crate::env::Fate;
use crate::landlock::AccessSet;
use crate::limits::LimitsPlan;
use crate::mounts::{MountFlags, MountOp};
use crate::status::Status;
use crate::{DoorsPlan, Plan, PrepareOp};

/// A part of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Its lines.
    pub lines: Vec<String>,
}

/// The plan in parts, in the order in which it is carried out.
pub fn sections(plan: &Plan) -> Vec<Section> {
    let section = |title, lines| Section { title, lines };
    let id = plan.identity;
    let mapped = if id.map_all { "all owners as outside" } else { "only this user" };
    vec![
        section("identity", vec![format!("user {} group {}, {mapped}; no capabilities", id.uid, id.gid)]),
        section("before the start", plan.prepare.iter().map(prepare).collect()),
        section("files", plan.mounts.iter().map(mount).collect()),
        section("files, second layer (Landlock)", landlock(plan)),
        section("system calls", plan.seccomp.rules.clone()),
        section("network", doors(&plan.doors)),
        section("environment", environment(plan)),
        section("limits", limits(&plan.limits)),
        section("proof", proof(plan)),
        section("status", plan.status.iter().map(status).collect()),
    ]
}

/// The plan as lines: each part's title, and its lines below it.
pub fn lines(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    for section in sections(plan).into_iter().filter(|section| !section.lines.is_empty()) {
        out.push(section.title.to_owned());
        out.extend(section.lines.into_iter().map(|line| format!("  {line}")));
    }
    out
}

fn prepare(op: &PrepareOp) -> String {
    match op {
        PrepareOp::MakeDir { path, mode } => format!("make      {path} ({mode:04o})"),
        PrepareOp::CopyOnce { from, to } => format!("copy      {from} to {to}, unless it is there"),
    }
}

fn mount(op: &MountOp) -> String {
    match op {
        MountOp::FreezeRoot => "read-only / and everything below".to_owned(),
        MountOp::Tmpfs { target, mode, size, .. } => {
            format!("empty     {target} ({mode:04o}, at most {})", bytes(*size))
        }
        MountOp::Bind { source, target, flags: MountFlags { read_only, .. }, why, .. } => {
            let verb = if *read_only { "read-only" } else { "writable " };
            let from = if source == target { String::new() } else { format!(" from {source}") };
            format!("{verb} {target}{from}: {why}")
        }
        MountOp::CoverDir { target, why } | MountOp::CoverFile { target, why } => format!("hidden    {target}: {why}"),
        MountOp::Proc { read_only, hidden } => {
            format!("own       /proc; read-only: {}; hidden: {}", read_only.join(" "), hidden.join(" "))
        }
        MountOp::Dev { nodes, shm_size } => {
            format!("own       /dev with {}; /dev/shm at most {}", nodes.join(" "), bytes(*shm_size))
        }
        MountOp::MakeDir { path, mode } => format!("folder    {path} ({mode:04o})"),
        MountOp::File { target, why, .. } => format!("generated {target}: {why}"),
        MountOp::Symlink { path, to } => format!("link      {path} to {to}"),
        MountOp::Seal { target } => format!("sealed    {target}"),
    }
}

fn landlock(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<String> = plan
        .landlock
        .rules
        .iter()
        .map(|(path, access)| match access {
            AccessSet::Read => format!("read      {path}"),
            AccessSet::WriteExisting => format!("write     {path}, only what exists"),
            AccessSet::Full => format!("all       {path}"),
        })
        .collect();
    if plan.landlock.scopes {
        lines.push("signals and abstract sockets stay inside".to_owned());
    }
    lines
}

fn doors(doors: &DoorsPlan) -> Vec<String> {
    let mut lines = Vec::new();
    if doors.enabled {
        lines.push(format!("every connection to a port of {} is taken", ports(&doors.transparent)));
        lines.push(format!("HTTP proxy on 127.0.0.1:{}, SOCKS5 on 127.0.0.1:{}", doors.http, doors.socks));
        lines.push(format!("names are resolved at {}", crate::doors::RESOLVER));
    } else {
        lines.push("no way out".to_owned());
    }
    if !doors.host_ports.is_empty() {
        lines.push(format!("ports of the host inside: {}", ports(&doors.host_ports)));
    }
    if !doors.publish.is_empty() {
        lines.push(format!("ports from inside on the host: {}", ports(&doors.publish)));
    }
    lines
}

fn ports(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

fn environment(plan: &Plan) -> Vec<String> {
    // What is passed for no special reason would be most of it.
    let told = plan.environment.iter().filter(|variable| variable.fate != Fate::Passed);
    told.map(|variable| match variable.fate {
        Fate::Set => format!("set       {}: {}", variable.name, variable.why),
        Fate::Withheld => format!("withheld  {}: {}", variable.name, variable.why),
        Fate::Passed => format!("passed    {}: {}", variable.name, variable.why),
    })
    .collect()
}

fn limits(limits: &LimitsPlan) -> Vec<String> {
    let mut lines: Vec<String> =
        limits.rlimits.iter().map(|(what, value)| format!("{what:?} {value} per process")).collect();
    for (file, value) in limits.cgroup.iter().flat_map(|group| &group.settings) {
        lines.push(format!("{file} {value} for all together"));
    }
    if let Some(wall) = limits.wall {
        lines.push(format!("ended after {} s", wall.as_secs()));
    }
    lines
}

fn proof(plan: &Plan) -> Vec<String> {
    if !plan.proof.enabled {
        return vec!["off".to_owned()];
    }
    let works = plan.proof.rows.iter().filter(|row| row.must_work).count();
    vec![format!("{} attempts that must fail, {works} that must work", plan.proof.rows.len() - works)]
}

fn status(row: &crate::LayerStatus) -> String {
    let word = match &row.status {
        Status::Enforced => "enforced".to_owned(),
        Status::Weaker(why) => format!("weaker: {why}"),
        Status::Missing(why) => format!("missing: {why}"),
        Status::Unused => "unused".to_owned(),
    };
    match &row.hint {
        Some(hint) => format!("{} {word} ({hint})", row.layer),
        None => format!("{} {word}", row.layer),
    }
}

/// `8 GiB`; sizes that are not whole are written in bytes.
fn bytes(size: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.iter().find(|(unit, _)| size >= *unit && size.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{size} B"), |(unit, name)| format!("{} {name}", size / unit))
}
