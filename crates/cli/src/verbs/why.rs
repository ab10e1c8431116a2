//! `ringfence why`: the rule that decides about one path or one host, and what would change that.

use super::options;
use crate::args::WhyArgs;
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::{self, complain, lines};
use ringfence::policy::{Access, Verdict};
use ringfence::{Explanation, HostAnswer, PathAnswer};
use serde::Serialize;
use std::path::Path;

pub(crate) fn why(args: WhyArgs) -> Exit {
    let command: Vec<_> = args.program.iter().cloned().collect();
    let explanation = match options::describe(args.policy, &command).explain() {
        Ok(explanation) => explanation,
        Err(error) => {
            diagnostic::say(&error.diagnostics(), Form::of(args.json));
            return Exit::Refused;
        }
    };
    let form = Form::of(args.json);
    match (args.question.to_str(), &args.path) {
        (Some("read"), Some(path)) => about_path(&explanation, path, Access::Read, form),
        (Some("write"), Some(path)) => about_path(&explanation, path, Access::Write, form),
        (Some("read" | "write"), None) => refuse("which path? (ringfence why read PATH)"),
        (Some(host), None) => about_host(&explanation, host, form),
        (_, Some(_)) => refuse("ask `read PATH`, `write PATH` or one HOST:PORT"),
        (None, None) => refuse("the host is not UTF-8"),
    }
}

fn refuse(message: &str) -> Exit {
    complain(message);
    Exit::Refused
}

fn about_path(explanation: &Explanation, path: &Path, access: Access, form: Form) -> Exit {
    match explanation.why_path(path, access) {
        Ok(answer) => {
            answered(answer.decision.verdict, &answer, form, || path_text(&answer, explanation.place.home.as_path()))
        }
        Err(error) => {
            diagnostic::say(&error.diagnostics(), form);
            Exit::Refused
        }
    }
}

fn about_host(explanation: &Explanation, host: &str, form: Form) -> Exit {
    match explanation.why_host(host) {
        Ok(answer) => answered(answer.decision.verdict, &answer, form, || host_text(&answer)),
        Err(error) => refuse(&format!("`{}` is no host: {error}", lines::plain(host))),
    }
}

/// Prints the answer; the exit status is the answer, too.
fn answered(verdict: Verdict, answer: &impl Serialize, form: Form, text: impl FnOnce() -> String) -> Exit {
    let printed = render::stdout(|out| match form {
        Form::Text => out.write_all(text().as_bytes()),
        Form::Json => {
            serde_json::to_writer(&mut *out, answer)?;
            writeln!(out)
        }
    });
    match (printed, verdict) {
        (Exit::Success, Verdict::Denied) => Exit::No,
        (printed, _) => printed,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Denied => "denied",
        Verdict::Private => "private",
    }
}

/// The verdict and its reason on the first line, what explains it below, aligned.
fn lines_of(verdict: Verdict, reason: &str, below: &[String]) -> String {
    let mut out = format!("{:<8}{}\n", word(verdict), lines::plain(reason));
    for line in below {
        out.push_str(&format!("{:<8}{}\n", "", lines::plain(line)));
    }
    out
}

fn path_text(answer: &PathAnswer, home: &Path) -> String {
    let mut below = Vec::new();
    if let Some(link) = &answer.link {
        below.push(format!("{} is {}", lines::path(link.as_path(), home), lines::path(answer.path.as_path(), home)));
    }
    let decision = &answer.decision;
    match &decision.rule {
        Some(rule) => {
            below.push(format!("most specific rule: {} ({})", render::explanation::path_rule(rule, home), rule.origin))
        }
        None => below.push(format!("from: {}", decision.origin)),
    }
    below.extend(decision.remedy.as_ref().map(|remedy| format!("to allow: {remedy}")));
    lines_of(decision.verdict, &decision.reason, &below)
}

fn host_text(answer: &HostAnswer) -> String {
    let decision = &answer.decision;
    let mut below = vec![format!("{} ({})", answer.destination, decision.origin)];
    below.extend(decision.remedy.as_ref().map(|remedy| format!("to allow: {remedy}")));
    lines_of(decision.verdict, &decision.reason, &below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_align() {
        let text = lines_of(Verdict::Denied, "no rule allows it", &["to allow: --allow-host a.test".to_owned()]);
        assert_eq!(text, "denied  no rule allows it\n        to allow: --allow-host a.test\n");
        assert!(lines_of(Verdict::Private, "x", &[]).starts_with("private x"));
    }
}
