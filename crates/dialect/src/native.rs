//! Ringfence's own format: TOML, `version = 1`.
//!
//! The document is walked by hand and not by a derive, so that all problems are reported at once, each with its place,
//! and so that a key that is not known is never skipped.

mod credential;
mod entry;
mod files;
mod network;
mod rest;
mod walk;

use crate::codes;
use crate::context::{ParseContext, Parsed, Trust};
use crate::source::{Diagnostic, Label, Severity, SourceText};
use crate::value::shown;
use ringfence_policy::{Fragment, HostPath, Layer};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::de::DeTable;
use walk::Walk;

/// A policy is a page or two.
const MAX_BYTES: usize = 1 << 20;

/// Keys of the document itself.
pub(crate) const TOP_KEYS: &[&str] = &[
    "version",
    "description",
    "preset",
    "files",
    "network",
    "credential",
    "unix",
    "env",
    "limits",
    "walls",
    "ceiling",
];

/// Every table of the format with the keys that it knows; an empty step is an entry of an array of tables.
#[cfg(all(test, feature = "schema"))]
pub(crate) fn keys() -> Vec<(&'static [&'static str], &'static [&'static str])> {
    vec![
        (&[], TOP_KEYS),
        (&["files"], files::FILE_KEYS),
        (&["network"], network::NETWORK_KEYS),
        (&["network", "ports"], network::PORT_KEYS),
        (&["network", "rule", ""], network::REQUEST_KEYS),
        (&["credential", ""], credential::CREDENTIAL_KEYS),
        (&["credential", "", "source"], credential::SOURCE_KEYS),
        (&["credential", "", "inject"], credential::INJECT_KEYS),
        (&["credential", "", "phantom"], credential::PHANTOM_KEYS),
        (&["unix"], rest::UNIX_KEYS),
        (&["env"], rest::ENV_KEYS),
        (&["limits"], rest::LIMIT_KEYS),
        (&["walls"], rest::WALL_KEYS),
        (&["ceiling"], rest::CEILING_KEYS),
        (&["ceiling", "limits"], rest::LIMIT_KEYS),
    ]
}

/// Reads a policy file. `name` is how people know it, such as its path from the working directory.
///
/// # Errors
/// All problems of the text, from its beginning to its end.
pub fn parse(text: &str, name: &str, context: &ParseContext<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let source = Arc::new(SourceText::new(name, ""));
        let problem = Diagnostic::error(codes::TOO_LARGE, format!("the policy has {} bytes", text.len()))
            .at(Label::new(&source, 0..0, ""))
            .hint("a policy of more than a megabyte is a mistake");
        return Err(vec![problem]);
    }
    let source = Arc::new(SourceText::new(name, text));
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems = syntax_errors(&source, &errors);
    let broken: BTreeSet<u32> = problems.iter().flat_map(|p| p.labels.first()).map(Label::line).collect();
    // Where a header cannot be read, or was taken for a part of a list, the lines behind it stand in a table that nobody
    // knows.
    let lost = broken.iter().find(|line| source.row(**line).trim_start().starts_with('['));
    let lost = lost.copied().unwrap_or(u32::MAX);

    let mut walk = Walk::new(Arc::clone(&source), context);
    walk.document(document.get_ref());
    let (fragment, found) = walk.finish();
    problems.extend(found.into_iter().filter(|problem| {
        // Behind a syntax error the parser guesses; what is missing may stand in what it could not read.
        let missing = problem.code == codes::VERSION_MISSING || problem.code == codes::KEY_MISSING;
        let line = problem.labels.first().map_or(0, Label::line);
        broken.is_empty() || !(missing || broken.contains(&line) || line > lost)
    }));
    Diagnostic::sort(&mut problems);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    Ok(Parsed { fragment, warnings: problems })
}

/// Reads a policy file whose bytes may be anything.
///
/// # Errors
/// As [`parse`]; bytes that are not UTF-8 are one problem.
pub fn parse_bytes(bytes: &[u8], name: &str, context: &ParseContext<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, name, context),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(MAX_BYTES)).unwrap_or(bytes)).into_owned();
            let at = error.valid_up_to();
            let source = Arc::new(SourceText::new(name, text));
            let problem = Diagnostic::error(codes::NOT_UTF8, format!("byte {at} is not UTF-8"))
                .at(Label::new(&source, at..at + char::REPLACEMENT_CHARACTER.len_utf8(), "this byte"))
                .hint("save the file as UTF-8");
            Err(vec![problem])
        }
    }
}

/// The errors of the TOML parser, without those that only follow from a list that is not closed.
fn syntax_errors(source: &Arc<SourceText>, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let row = source.line_text(span.start).trim_start();
        let statement = row.starts_with('[') || row.split_once('=').is_some_and(|(key, _)| is_bare_key(key.trim()));
        if error.message().starts_with("missing comma between array elements") && statement {
            let problem = Diagnostic::error(codes::SYNTAX, "a list is not closed before this line").at(Label::new(
                source,
                span,
                "expected `]` above",
            ));
            problems.push(problem);
            break;
        }
        problems.push(syntax(source, error, span));
    }
    problems
}

fn is_bare_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn syntax(source: &Arc<SourceText>, error: &toml::de::Error, span: Range<usize>) -> Diagnostic {
    let message = error.message();
    let written = shown(source.slice(span.clone()));
    if message == "duplicate key" {
        return Diagnostic::error(codes::DUPLICATE_KEY, format!("`{written}` is written twice"))
            .at(Label::new(source, span, "the second"))
            .hint("write one value");
    }
    let (problem, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let label = match (problem, expected) {
        ("string values must be quoted", _) => format!("write `\"{written}\"`"),
        (_, "") => "here".to_owned(),
        (_, expected) => format!("expected {expected}"),
    };
    let problem = if problem.is_empty() { "the file is not TOML" } else { problem };
    Diagnostic::error(codes::SYNTAX, problem).at(Label::new(source, span, label))
}

/// For the fuzzer: reads any bytes under every layer; must return.
pub fn fuzz_native(bytes: &[u8]) {
    let (Ok(home), Ok(base)) = (HostPath::new("/home/u"), HostPath::new("/home/u/w")) else { return };
    let none = |_: &str| Err("fuzz".to_owned());
    for layer in [Layer::Managed, Layer::User, Layer::Project] {
        let context =
            ParseContext::file(layer, Path::new("fuzz.toml"), &home, &base, &none).with_trust(Trust::Untrusted);
        if let Err(problems) = parse_bytes(bytes, "fuzz.toml", &context) {
            for problem in problems {
                for label in &problem.labels {
                    let _ = label.source.position(label.span.end);
                }
                let _ = problem.to_string();
            }
        }
    }
}

/// What an empty source says, under a context.
fn fragment_of(context: &ParseContext<'_>) -> Fragment {
    let mut fragment = Fragment::empty(context.layer);
    fragment.trusted = context.trust == Trust::Trusted;
    fragment
}
