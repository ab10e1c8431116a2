//! Errors and warnings, as text with the place in the file, or as JSON lines.

use annotate_snippets::{Annotation, AnnotationKind, Level, Renderer, Snippet};
use ringfence::{Diagnostic, Label, Severity};
use std::ffi::OsStr;
use std::io::IsTerminal as _;

/// In which form to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Form {
    /// From the flag `--json`.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Whether standard error may be coloured: it is a terminal, and neither `NO_COLOR` (any value but the empty one, as
/// no-color.org says) nor a terminal without capabilities says otherwise.
fn colour() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    std::io::stderr().is_terminal() && set("NO_COLOR").is_none() && set("TERM").as_deref() != Some(OsStr::new("dumb"))
}

/// Says problems on standard error, all at once.
pub(crate) fn say(problems: &[Diagnostic], form: Form) {
    let text: String = match form {
        Form::Text => problems.iter().map(|problem| as_text(problem, colour())).collect(),
        Form::Json => problems.iter().map(as_json).collect(),
    };
    super::stderr(&text);
}

fn as_json(problem: &Diagnostic) -> String {
    // A diagnostic is strings and numbers, which always have a JSON form.
    serde_json::to_string(problem).map(|json| json + "\n").unwrap_or_default()
}

fn as_text(problem: &Diagnostic, colour: bool) -> String {
    let title = super::lines::plain(&problem.message);
    let hint = problem.hint.as_deref().map(super::lines::plain);
    let manual = format!("ringfence explain {}", problem.code);
    let help = hint.iter().chain([&manual]);
    if problem.labels.is_empty() {
        let (bold, plain) = if colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let head = format!("{bold}{}[{}]{plain}: {title}\n", problem.severity, problem.code);
        return help.fold(head, |text, help| text + "  = help: " + help + "\n");
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let group = level.primary_title(&title).id(problem.code.as_text()).elements(snippets(&problem.labels));
    let group = help.fold(group, |group, help| group.element(Level::HELP.message(help)));
    let mut text = renderer.render(&[group]).to_string();
    text.push('\n');
    text
}

/// One excerpt for each run of labels in the same text; the first label of all is the place itself.
fn snippets(labels: &[Label]) -> Vec<Snippet<'_, Annotation<'_>>> {
    let mut out = Vec::new();
    for (run, same) in labels.chunk_by(|a, b| a.source == b.source).enumerate() {
        let Some(first) = same.first() else { continue };
        let annotations = same.iter().enumerate().map(|(at, label)| {
            let kind = if run == 0 && at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let annotation = kind.span(label.span.clone());
            if label.text.is_empty() { annotation } else { annotation.label(&label.text) }
        });
        out.push(Snippet::source(first.source.text()).path(first.source.name()).annotations(annotations));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence::{SourceText, codes};
    use std::sync::Arc;

    fn unknown_key() -> Diagnostic {
        let text = "version = 1\n[network]\nallow_hosts = [\"api.example.com\"]\n";
        let start = text.find("allow_hosts").unwrap();
        let source = Arc::new(SourceText::new("ringfence.toml", text));
        let label = Label::new(&source, start..start + "allow_hosts".len(), "did you mean `allow`?");
        Diagnostic::error(codes::UNKNOWN_KEY, "unknown key `allow_hosts` in [network]").at(label)
    }

    #[test]
    fn a_diagnostic_shows_file_line_caret_and_hint() {
        assert_eq!(
            as_text(&unknown_key(), false),
            "\
error[RF0103]: unknown key `allow_hosts` in [network]
 --> ringfence.toml:3:1
  |
3 | allow_hosts = [\"api.example.com\"]
  | ^^^^^^^^^^^ did you mean `allow`?
  |
  = help: ringfence explain RF0103
"
        );
    }

    #[test]
    fn json_has_the_same_facts_on_one_line() {
        let line = as_json(&unknown_key());
        assert_eq!(line.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["code"], "RF0103");
        assert_eq!(value["labels"][0]["line"], 3);
        assert_eq!(value["severity"], "error");
    }

    #[test]
    fn a_diagnostic_without_a_place_is_a_line_and_its_help() {
        let problem = Diagnostic::error(codes::WORKSPACE, "the working directory was deleted").hint("name one");
        assert_eq!(
            as_text(&problem, false),
            "error[RF0002]: the working directory was deleted\n  = help: name one\n  = help: ringfence explain RF0002\n"
        );
    }

    #[test]
    fn a_message_cannot_write_to_the_terminal() {
        let problem = Diagnostic::error(codes::PATH, "no file `a\u{1b}[31m`").hint("b\u{1b}[31m");
        assert!(!as_text(&problem, false).contains('\u{1b}'));
    }
}
