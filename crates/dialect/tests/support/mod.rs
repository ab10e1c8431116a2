//! What the tests of this crate share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "each test binary uses a part"
)]

use ringfence_dialect::{Diagnostic, ParseContext, Parsed, SetAnswer, native};
use ringfence_policy::host_rule::Wide;
use ringfence_policy::{HostPath, HostPattern, HostRule, HostVerb, Layer, Origin};
use std::path::Path;

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

/// Every set is a mirror of the same name; `@debian` stands for nothing.
pub(crate) fn mirrors(set: &str) -> SetAnswer {
    if set == "debian" {
        return Err("no apt here".to_owned());
    }
    let (host, ports) = HostPattern::parse(&format!("{set}.mirror.test:8443"), Wide::Refused).unwrap();
    let (verb, addresses, origin) = (HostVerb::Allow, Vec::new(), Origin::builtin("test"));
    Ok(vec![HostRule { host, ports, verb, addresses, origin, why: Some(format!("{set} in its rc file")) }])
}

pub(crate) fn parse_as(layer: Layer, text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    let (home, base) = (path("/home/u"), path("/home/u/w"));
    let context = ParseContext::file(layer, Path::new("/home/u/w/ringfence.toml"), &home, &base, &mirrors);
    native::parse(text, "ringfence.toml", &context)
}

pub(crate) fn parse(text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    parse_as(Layer::User, text)
}

/// The problems as a terminal would show them, in plain text.
pub(crate) fn render(problems: &[Diagnostic]) -> String {
    let mut out = String::new();
    for problem in problems {
        out.push_str(&format!("{}[{}]: {}\n", problem.severity, problem.code, problem.message));
        for label in &problem.labels {
            let (line, column) = label.source.position(label.span.start);
            let row = label.source.text().lines().nth(line as usize - 1).unwrap_or("");
            let width = label.source.text()[label.span.clone()].chars().take_while(|c| *c != '\n').count().max(1);
            out.push_str(&format!("  --> {}:{line}:{column}\n", label.source.name()));
            out.push_str(&format!("   | {row}\n"));
            let caret = format!("{}{} {}", " ".repeat(column as usize - 1), "^".repeat(width), label.text);
            out.push_str(&format!("   | {}\n", caret.trim_end()));
        }
        if let Some(hint) = &problem.hint {
            out.push_str(&format!("   = help: {hint}\n"));
        }
    }
    out
}
