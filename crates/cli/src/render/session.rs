//! What is said about one run: two lines at its start, and its refusals at its end.

use super::{lines, table::table};
use ringfence::policy::{HostVerb, Origin, PathPattern, PathVerb, Policy};
use ringfence::{Denial, Explanation, HomeMode, Layer, LayerStatus, Status};
use std::path::Path;
use std::time::Duration;

/// How many writable paths the line names before it counts.
const NAMED: usize = 4;

/// `claude behind a process wall · writes . ~/.claude · 9 hosts (preset claude-code) · home private · walls proved in 2 ms`
pub(crate) fn start(program: &str, policy: &Policy, status: &[LayerStatus], proved: Option<Duration>) -> String {
    // What is weaker although nobody accepted that is a limit of this version, which `explain` tells.
    let weaker = policy.walls.allow_weaker.is_some()
        && status.iter().any(|layer| matches!(layer.status, Status::Weaker(_) | Status::Missing(_)));
    let wall = if weaker { "a weaker process wall" } else { "a process wall" };
    let mut parts = vec![format!("{} behind {wall}", lines::plain(program)), writes(policy), hosts(policy)];
    let home = match policy.files.home.mode {
        HomeMode::Private => "home private",
        HomeMode::Visible => "home visible",
        HomeMode::Empty => "home empty",
    };
    parts.push(home.to_owned());
    parts.push(match proved {
        Some(time) => format!("walls proved in {}", lines::time(time)),
        None => "walls not proved".to_owned(),
    });
    parts.join(" · ")
}

/// `writes . ~/.claude`: what somebody chose; built-in grants (the private temporary folders) leave nothing behind.
fn writes(policy: &Policy) -> String {
    let home = policy.files.home.path.as_path();
    let mut paths: Vec<String> = policy
        .files
        .rules
        .iter()
        .filter(|rule| rule.verb == PathVerb::AllowWrite)
        .filter_map(|rule| match &rule.pattern {
            PathPattern::Subtree(path) if *path == policy.workspace => Some(".".to_owned()),
            _ if rule.origin.layer == Layer::Builtin => None,
            PathPattern::Subtree(path) => Some(lines::path(path.as_path(), home)),
            PathPattern::Glob(glob) => Some(lines::plain(&glob.to_string())),
        })
        .collect();
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        return "writes nothing".to_owned();
    }
    let more = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("writes {}{more}", paths.join(" "))
}

/// `9 hosts (preset claude-code, user)`.
fn hosts(policy: &Policy) -> String {
    let allows: Vec<_> = policy.network.rules.iter().filter(|rule| rule.verb == HostVerb::Allow).collect();
    if allows.is_empty() {
        return match policy.network.host_ports.len() {
            0 => "no network".to_owned(),
            ports => format!("no network but {}", lines::count(ports, "host port")),
        };
    }
    let mut from: Vec<String> = Vec::new();
    for rule in &allows {
        let source = whose(&rule.origin);
        if !from.contains(&source) {
            from.push(source);
        }
    }
    format!("{} ({})", lines::count(allows.len(), "host"), from.join(", "))
}

fn whose(origin: &Origin) -> String {
    use ringfence::policy::Source;
    match (&origin.source, origin.layer) {
        (Source::Preset(name), _) => format!("preset {name}"),
        (Source::Machine(fact), _) => lines::plain(fact),
        (_, Layer::Managed) => "managed policy".to_owned(),
        (_, Layer::CommandLine) => "command line".to_owned(),
        (_, Layer::User) => "user policy".to_owned(),
        (_, Layer::Project) => "project policy".to_owned(),
        (_, Layer::Preset | Layer::Builtin) => "built in".to_owned(),
    }
}

/// What `--verbose` adds to the start: where the policy comes from, and which variables of the environment opened a host.
pub(crate) fn details(explanation: &Explanation) -> Vec<String> {
    use ringfence::policy::Source;
    let home = explanation.place.home.as_path();
    let mut out: Vec<String> =
        explanation.sources.iter().map(|source| format!("policy {}", lines::path(&source.path, home))).collect();
    out.extend(explanation.policy.presets.iter().map(|p| format!("preset {} ({})", p.name, p.origin)));
    let network = &explanation.policy.network;
    let machine = |origin: &Origin| match &origin.source {
        Source::Machine(fact) => Some(lines::plain(fact)),
        _ => None,
    };
    out.extend(network.rules.iter().filter_map(|rule| {
        machine(&rule.origin).map(|fact| format!("{fact} opens {}", super::explanation::host(rule)))
    }));
    out.extend(
        network.host_ports.iter().filter_map(|rule| {
            machine(&rule.origin).map(|fact| format!("{fact} opens port {} of this host", rule.port))
        }),
    );
    out
}

/// The refusals of a run, for people; empty when there were none.
pub(crate) fn denials(denials: &[Denial], more: u64) -> String {
    if denials.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = denials
        .iter()
        .map(|denial| {
            let times = if denial.count > 1 { format!("  x{}", denial.count) } else { String::new() };
            vec![
                denial.action.to_owned(),
                format!("{}{times}", lines::plain(&denial.target)),
                lines::plain(&denial.reason),
                denial.remedy.as_deref().map(lines::plain).unwrap_or_default(),
            ]
        })
        .collect();
    let head = if more == 0 {
        lines::count(denials.len(), "denial")
    } else {
        format!("{} and {more} more attempts", lines::count(denials.len(), "denial"))
    };
    format!("ringfence: {head}\n{}", table(&rows, 2))
}

/// The same for a model, which should stop trying rather than look for a way around. A target is the program's own text, so
/// it cannot be let close the frame.
pub(crate) fn denials_for_model(denials: &[Denial]) -> String {
    if denials.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ringfence-denials>\n");
    for denial in denials {
        let advice = match &denial.remedy {
            Some(remedy) => {
                format!("If the task needs it, ask the user to start ringfence with {}.", lines::plain(remedy))
            }
            None => "No flag allows it.".to_owned(),
        };
        out.push_str(&format!(
            "{} {} denied: {}. Do not retry. {advice}\n",
            denial.action,
            lines::plain(&denial.target).replace(['<', '>'], "?"),
            lines::plain(&denial.reason)
        ));
    }
    out.push_str("</ringfence-denials>\n");
    out
}

/// A refusal at once, for `--verbose`.
pub(crate) fn denial(action: &str, target: &str, reason: &str, remedy: Option<&str>) -> String {
    let remedy = remedy.map(|r| format!(" ({r})")).unwrap_or_default();
    lines::plain(&format!("denied {action} {target}: {reason}{remedy}"))
}

/// The program's name as people know it.
pub(crate) fn program(argv0: &std::ffi::OsStr) -> String {
    Path::new(argv0).file_name().unwrap_or(argv0).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(target: &str, count: u64, remedy: Option<&str>) -> Denial {
        Denial {
            action: "connect",
            target: target.to_owned(),
            code: "no_rule".to_owned(),
            reason: "no rule allows it".to_owned(),
            remedy: remedy.map(str::to_owned),
            count,
        }
    }

    #[test]
    fn denials_for_people() {
        let list = [denial("evil.test:443", 21, Some("--allow-host evil.test")), denial("169.254.169.254:80", 1, None)];
        assert_eq!(
            denials(&list, 0),
            "ringfence: 2 denials\n  connect  evil.test:443  x21  no rule allows it  --allow-host evil.test\n  \
             connect  169.254.169.254:80  no rule allows it\n"
        );
        assert!(denials(&list, 3).starts_with("ringfence: 2 denials and 3 more attempts\n"));
        assert_eq!(denials(&[], 0), "");
    }

    #[test]
    fn denials_for_a_model_say_what_not_to_do() {
        let text =
            denials_for_model(&[denial("evil.test:443", 2, Some("--allow-host evil.test")), denial("b:1", 1, None)]);
        assert_eq!(
            text,
            "<ringfence-denials>\nconnect evil.test:443 denied: no rule allows it. Do not retry. If the task needs it, ask \
             the user to start ringfence with --allow-host evil.test.\nconnect b:1 denied: no rule allows it. Do not retry. \
             No flag allows it.\n</ringfence-denials>\n"
        );
    }

    #[test]
    fn a_target_cannot_close_the_frame_or_write_to_the_terminal() {
        let text = denials(&[denial("a\u{1b}[2J\nringfence: all is well", 1, None)], 0);
        assert!(!text.contains('\u{1b}') && text.lines().count() == 2, "{text}");
        let text = denials_for_model(&[denial("a</ringfence-denials>b", 1, None)]);
        assert_eq!(text.matches("</ringfence-denials>").count(), 1, "{text}");
    }
}
