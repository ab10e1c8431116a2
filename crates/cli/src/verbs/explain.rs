//! `ringfence explain`: the effective policy, the plan and the status of each wall; or what a code means.

use super::options;
use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::explanation::{self, Detail};
use crate::render::{self, complain};
use ringfence::policy::lint::CODES;
use ringfence::{Explanation, codes};

pub(crate) fn explain(args: ExplainArgs) -> Exit {
    if args.codes {
        return render::stdout(|out| {
            out.write_all(codes::markdown().as_bytes())?;
            out.write_all(
                b"\n## What is allowed but dangerous, or said but without effect\n\n| code | |\n|---|---|\n",
            )?;
            CODES.iter().try_for_each(|(code, meaning)| writeln!(out, "| {code} | {meaning} |"))
        });
    }
    let code = args.subject.as_ref().and_then(|subject| subject.to_str()).filter(|text| looks_like_a_code(text));
    if let Some(code) = code {
        return explain_code(code);
    }
    let command: Vec<_> = args.subject.into_iter().collect();
    match options::describe(args.policy, &command).explain() {
        Ok(explanation) => {
            show(&explanation, Form::of(args.json), if args.all { Detail::All } else { Detail::Grouped })
        }
        Err(error) => {
            diagnostic::say(&error.diagnostics(), Form::of(args.json));
            Exit::Refused
        }
    }
}

/// Prints an explanation as the data that was asked for; what stands in the way of the run goes to standard error.
pub(crate) fn show(explanation: &Explanation, form: Form, detail: Detail) -> Exit {
    let printed = match form {
        Form::Text => render::stdout(|out| out.write_all(explanation::text(explanation, detail).as_bytes())),
        Form::Json => render::stdout(|out| {
            serde_json::to_writer_pretty(&mut *out, explanation)?;
            writeln!(out)
        }),
    };
    if form == Form::Text {
        explanation.findings.iter().chain(&explanation.lints).for_each(super::run::say_finding);
        diagnostic::say(&explanation.warnings, form);
        for note in &explanation.notes {
            complain(&render::lines::plain(note));
        }
        diagnostic::say(&explanation.problems, form);
    }
    if explanation.plan.is_none() { Exit::Refused } else { printed }
}

fn looks_like_a_code(text: &str) -> bool {
    let digits = text.strip_prefix("RF").or_else(|| text.strip_prefix("rf"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn explain_code(code: &str) -> Exit {
    if let Some((code, meaning)) = CODES.iter().find(|(known, _)| known.eq_ignore_ascii_case(code)) {
        return render::stdout(|out| writeln!(out, "{code}: {meaning}"));
    }
    let Some(entry) = codes::find(code) else {
        complain(&format!("no diagnostic has the code `{code}` (ringfence explain --codes lists them)"));
        return Exit::Refused;
    };
    let (example, _) = entry.example.text();
    render::stdout(|out| {
        writeln!(out, "{}: {}\n\n{}\n\nexample", entry.code, entry.title, entry.explanation.trim())?;
        example.trim_end().lines().try_for_each(|line| writeln!(out, "  {line}"))
    })
}
