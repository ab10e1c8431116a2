//! The effective policy, the plan and the status of each wall, as text.

use super::{lines, table::table};
use ringfence::policy::{
    HostPattern, HostRule, HostVerb, Origin, PathPattern, PathRule, PathVerb, Policy, PortSet, limits::Limit,
};
use ringfence::{Explanation, HomeMode, Layer, LayerStatus, Status};
use std::fmt::Write as _;
use std::path::Path;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Entries of the built-in tables are put together by their reason.
    Grouped,
    /// Every entry.
    All,
}

/// How many paths of a built-in table are named before they are counted.
const NAMED: usize = 3;

/// Everything about a run that has not begun.
pub(crate) fn text(explanation: &Explanation, detail: Detail) -> String {
    let home = explanation.place.home.as_path();
    let mut out = String::new();
    out.push_str(&table(&head(explanation, home), 0));
    section(&mut out, "files", file_rows(&explanation.policy, home, detail));
    section(&mut out, "network", network_rows(&explanation.policy));
    section(&mut out, "unix sockets of the host", unix_rows(&explanation.policy, home));
    section(&mut out, "environment", env_rows(&explanation.policy, detail));
    section(&mut out, "limits", limit_rows(&explanation.policy));
    section(&mut out, "ceilings", ceiling_rows(&explanation.policy));
    if let Some(plan) = &explanation.plan {
        section(&mut out, "walls", status_rows(&plan.status));
        out.push_str("\nplan\n");
        for line in ringfence::plan_lines(plan) {
            let _ = writeln!(out, "  {}", lines::plain(&line));
        }
    }
    out
}

fn section(out: &mut String, title: &str, rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        let _ = write!(out, "\n{title}\n{}", table(&rows, 2));
    }
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| lines::plain(cell)).collect()
}

fn head(explanation: &Explanation, home: &Path) -> Vec<Vec<String>> {
    let policy = &explanation.policy;
    let mut rows = vec![row(&["workspace", &lines::path(policy.workspace.as_path(), home)])];
    let mode = match policy.files.home.mode {
        HomeMode::Private => {
            format!("private: {}", lines::path(explanation.private_home.as_path(), home))
        }
        HomeMode::Visible => "visible, read-only, without the credential stores".to_owned(),
        HomeMode::Empty => "empty, gone at the end".to_owned(),
    };
    rows.push(row(&["home", &format!("{mode} ({})", policy.files.home.origin)]));
    for source in &explanation.sources {
        let trusted = if source.trusted { "" } else { ", not trusted: only its denials hold (ringfence trust)" };
        let layer = layer(source.layer);
        rows.push(row(&["policy", &format!("{} ({layer}{trusted})", lines::path(&source.path, home))]));
    }
    for preset in &policy.presets {
        rows.push(row(&["preset", &format!("{} ({})", preset.name, preset.origin)]));
    }
    rows
}

fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Managed => "managed",
        Layer::CommandLine => "command line",
        Layer::User => "user",
        Layer::Project => "project",
        Layer::Preset => "preset",
        Layer::Builtin => "built in",
    }
}

/// Origin, with the reason behind it where one is given.
fn origin(origin: &Origin, why: Option<&str>) -> String {
    match (why, origin.layer) {
        (Some(why), Layer::Builtin) => format!("{why} (built in)"),
        (Some(why), _) => format!("{origin}: {why}"),
        (None, _) => origin.to_string(),
    }
}

fn verb(verb: PathVerb) -> &'static str {
    match verb {
        PathVerb::AllowRead => "read",
        PathVerb::AllowWrite => "write",
        PathVerb::DenyRead => "deny read",
        PathVerb::DenyWrite => "deny write",
    }
}

/// A rule over paths in a few words: `deny read ~/.ssh`.
pub(crate) fn path_rule(rule: &PathRule, home: &Path) -> String {
    format!("{} {}", verb(rule.verb), pattern(&rule.pattern, home))
}

fn file_rows(policy: &Policy, home: &Path, detail: Detail) -> Vec<Vec<String>> {
    let mut rules: Vec<&PathRule> = policy.files.rules.iter().collect();
    // What a person wrote comes first; a stable sort keeps the order within a layer.
    rules.sort_by_key(|rule| rule.origin.layer);
    let mut lines: Vec<Line> = rules
        .into_iter()
        .map(|rule| Line {
            verb: verb(rule.verb),
            what: pattern(&rule.pattern, home),
            from: origin(&rule.origin, rule.why.as_deref()),
            layer: rule.origin.layer,
        })
        .collect();
    lines.extend(policy.files.private.iter().map(|path| Line {
        verb: "private",
        what: path.to_string(),
        from: "empty at start, gone at the end (built in)".to_owned(),
        layer: Layer::Builtin,
    }));
    lines.extend(policy.files.protected.iter().map(|name| Line {
        verb: "protected",
        what: name.pattern.clone(),
        from: origin(&name.origin, Some(&name.why)),
        layer: name.origin.layer,
    }));
    lines.extend(policy.files.copies.iter().map(|copy| Line {
        verb: "copied in",
        what: lines::path(copy.path.as_path(), home),
        from: origin(&copy.origin, Some(&copy.why)),
        layer: copy.origin.layer,
    }));
    rows_of(lines, detail)
}

/// One entry of a table.
struct Line {
    verb: &'static str,
    what: String,
    from: String,
    layer: Layer,
}

/// Entries as rows. Those of the built-in tables that have the same reason make one row, unless all are wanted: the tables
/// hold hundreds of names, and what is interesting is why they are there.
fn rows_of(lines: Vec<Line>, detail: Detail) -> Vec<Vec<String>> {
    let mut groups: Vec<(Line, Vec<String>)> = Vec::new();
    for line in lines {
        let same = |(first, _): &&mut (Line, Vec<String>)| {
            detail == Detail::Grouped
                && line.layer == Layer::Builtin
                && first.layer == Layer::Builtin
                && (first.verb, &first.from) == (line.verb, &line.from)
        };
        match groups.iter_mut().find(same) {
            Some((_, more)) => more.push(line.what),
            None => groups.push((line, Vec::new())),
        }
    }
    groups
        .into_iter()
        .map(|(first, more)| {
            let mut what =
                std::iter::once(first.what).chain(more.iter().take(NAMED - 1).cloned()).collect::<Vec<_>>().join(" ");
            if more.len() >= NAMED {
                what.push_str(&format!(" and {} more", more.len() - (NAMED - 1)));
            }
            row(&[first.verb, &what, &first.from])
        })
        .collect()
}

fn pattern(pattern: &PathPattern, home: &Path) -> String {
    match pattern {
        PathPattern::Subtree(path) => lines::path(path.as_path(), home),
        PathPattern::Glob(glob) => {
            let base = lines::path(glob.base.as_path(), home);
            format!("{}/{}", base.trim_end_matches('/'), glob.pattern)
        }
    }
}

fn network_rows(policy: &Policy) -> Vec<Vec<String>> {
    let network = &policy.network;
    let mut rules: Vec<&HostRule> = network.rules.iter().collect();
    rules.sort_by_key(|rule| (rule.origin.layer, rule.verb == HostVerb::Allow));
    let mut rows: Vec<_> = rules
        .into_iter()
        .map(|rule| {
            let verb = match rule.verb {
                HostVerb::Allow => "allow",
                HostVerb::Deny => "deny",
            };
            row(&[verb, &host(rule), &origin(&rule.origin, rule.why.as_deref())])
        })
        .collect();
    if !network.rules.iter().any(|rule| rule.verb == HostVerb::Allow) {
        rows.push(row(&["no host", "nothing is reachable, because no rule allows a host"]));
    }
    rows.extend(network.publish.iter().map(|p| row(&["publish", &p.port.to_string(), &origin(&p.origin, None)])));
    rows.extend(network.host_ports.iter().map(|p| row(&["host port", &p.port.to_string(), &origin(&p.origin, None)])));
    rows.extend(network.upstream.iter().map(|u| row(&["upstream", &u.url, &origin(&u.origin, None)])));
    rows
}

/// A rule's hosts and ports, as they are written.
pub(crate) fn host(rule: &HostRule) -> String {
    let host = match &rule.host {
        HostPattern::Exact(name) => name.as_text().to_owned(),
        HostPattern::Below(name) => format!("*.{}", name.as_text()),
        HostPattern::Network(net) if net.prefix_len() == net.max_prefix_len() => net.addr().to_string(),
        HostPattern::Network(net) => net.to_string(),
        HostPattern::Any => "*".to_owned(),
    };
    match (&rule.ports, rule.verb) {
        (PortSet::Default, _) => host,
        (PortSet::All, _) => format!("{host}:*"),
        (PortSet::List(ports), _) => {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            format!("{host}:{}", ports.join(","))
        }
    }
}

fn unix_rows(policy: &Policy, home: &Path) -> Vec<Vec<String>> {
    let rules = policy.unix.iter();
    rules.map(|rule| row(&["allow", &lines::path(rule.path.as_path(), home), &origin(&rule.origin, None)])).collect()
}

fn env_rows(policy: &Policy, detail: Detail) -> Vec<Vec<String>> {
    let env = &policy.env;
    let line = |verb, what: &str, from: &Origin| Line {
        verb,
        what: what.to_owned(),
        from: origin(from, None),
        layer: from.layer,
    };
    let mut lines: Vec<Line> = env.set.iter().map(|set| line("set", &set.name, &set.origin)).collect();
    lines.extend(env.pass.iter().map(|rule| line("pass", &rule.pattern, &rule.origin)));
    lines.extend(env.deny.iter().map(|rule| line("withhold", &rule.pattern, &rule.origin)));
    rows_of(lines, detail)
}

fn limit_rows(policy: &Policy) -> Vec<Vec<String>> {
    fn limit<T>(name: &str, limit: Option<&Limit<T>>, show: impl Fn(&T) -> String) -> Option<Vec<String>> {
        limit.map(|limit| row(&[name, &show(&limit.value), &origin(&limit.origin, None)]))
    }
    let limits = &policy.limits;
    let size = |bytes: &u64| lines::size(*bytes);
    let number = |n: &u64| n.to_string();
    let time = |t: &std::time::Duration| lines::time(*t);
    [
        limit("memory", limits.memory.as_ref(), size),
        limit("pids", limits.pids.as_ref(), number),
        limit("disk", limits.disk.as_ref(), size),
        limit("wall time", limits.wall.as_ref(), time),
        limit("cpu time", limits.cpu.as_ref(), time),
        limit("open files", limits.open_files.as_ref(), number),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn ceiling_rows(policy: &Policy) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for ceiling in &policy.ceilings {
        let from = origin(&ceiling.origin, None);
        let mut add = |what: &str, value: String| rows.push(row(&[what, &value, &from]));
        if let Some(write) = &ceiling.write {
            let list: Vec<_> = write.iter().map(|rule| pattern(&rule.pattern, Path::new("/"))).collect();
            add("write", list.join(" "));
        }
        if let Some(hosts) = &ceiling.hosts {
            let list: Vec<_> = hosts.iter().map(host).collect();
            add("hosts", list.join(" "));
        }
        if let Some(home) = ceiling.home {
            add("home", format!("{home:?}").to_lowercase());
        }
        for (what, may) in
            [("weaker walls", ceiling.allow_weaker), ("ports", ceiling.ports), ("unix sockets", ceiling.unix)]
        {
            if !may {
                add(what, "no".to_owned());
            }
        }
    }
    rows
}

/// The walls and how well they hold.
pub(crate) fn status_rows(status: &[LayerStatus]) -> Vec<Vec<String>> {
    status
        .iter()
        .map(|layer| {
            let why = match &layer.status {
                Status::Weaker(why) | Status::Missing(why) => why.as_str(),
                Status::Enforced | Status::Unused => "",
            };
            row(&[layer.layer, layer.status.word(), why, layer.hint.as_deref().unwrap_or("")])
        })
        .collect()
}
