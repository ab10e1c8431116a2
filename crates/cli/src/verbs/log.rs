//! `ringfence log`: reads an audit file.

use crate::args::LogArgs;
use crate::exit::Exit;
use crate::render::{self, complain, lines};
use ringfence::log::{Filter, Follow, Record};
use serde_json::Value;
use std::ops::ControlFlow;

pub(crate) fn log(args: LogArgs) -> Exit {
    let filter = Filter { denied: args.denied, host: args.host, run: args.run };
    let follow = if args.follow { Follow::Yes } else { Follow::No };
    let mut read = Ok(());
    let printed = render::stdout(|out| {
        let mut written = Ok(());
        let mut each = |record: &Record| {
            let line = if args.json { record.line.trim_end().to_owned() } else { readable(&record.json) };
            // A reader that follows wants each line when it comes.
            written = writeln!(out, "{line}").and_then(|()| if args.follow { out.flush() } else { Ok(()) });
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        read = ringfence::log::read(args.file.as_deref(), &filter, follow, &mut each).map(|summary| {
            if summary.damaged > 0 {
                complain(&format!("{} are damaged", lines::count_of(summary.damaged, "line")));
            }
        });
        written
    });
    match read {
        Ok(()) => printed,
        Err(error) => {
            render::diagnostic::say(&error.diagnostics(), render::diagnostic::Form::Text);
            Exit::Refused
        }
    }
}

/// One event as a line for people.
fn readable(event: &Value) -> String {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(lines::plain);
    let number = |key: &str| event.get(key).and_then(Value::as_u64);
    let mut parts = vec![text("time").unwrap_or_else(|| "-".to_owned())];
    let kind = text("event").unwrap_or_else(|| "-".to_owned());
    parts.push(format!("{kind:<7}"));
    match kind.as_str() {
        "started" => {
            parts.push(text("program").unwrap_or_default());
            parts.push(format!("in {}", text("workspace").unwrap_or_default()));
        }
        "proved" => parts.push(format!("{} attempts", number("rows").unwrap_or_default())),
        "exited" => {
            let status = event.get("status").and_then(Value::as_i64).unwrap_or_default();
            parts.push(format!("status {status} after {} ms", number("millis").unwrap_or_default()));
        }
        _ => {
            parts.push(format!("{:<11}", text("door").unwrap_or_default()));
            parts.push(text("destination").unwrap_or_default());
            parts.extend(text("method"));
            parts.extend(text("path"));
            if let (Some(sent), Some(received)) = (number("sent"), number("received")) {
                parts.push(format!("sent {} received {}", lines::size(sent), lines::size(received)));
            }
            parts.extend(text("reason"));
            parts.extend(event.get("rule").and_then(origin).map(|rule| format!("({rule})")));
            parts.extend(text("error").map(|error| format!("error: {error}")));
        }
    }
    parts.join("  ")
}

/// The origin of a rule, as people read it; a file's line where there is one.
fn origin(rule: &Value) -> Option<String> {
    if let Some(text) = rule.as_str() {
        return Some(lines::plain(text));
    }
    let (kind, name) = rule.get("source")?.as_object()?.iter().next()?;
    let name = lines::plain(name.as_str()?);
    let place = match kind.as_str() {
        "preset" => format!("preset {name}"),
        "builtin" => format!("built in: {name}"),
        "machine" => format!("this machine: {name}"),
        _ => name,
    };
    Some(match rule.get("line").and_then(Value::as_u64) {
        Some(line) => format!("{place}:{line}"),
        None => place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: &str) -> String {
        readable(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn lines_for_people() {
        assert_eq!(
            line(
                r#"{"time":"2026-01-02T03:04:05.678Z","event":"denied","door":"connect","destination":"evil.test:443","code":"no_rule","reason":"no rule allows it"}"#
            ),
            "2026-01-02T03:04:05.678Z  denied   connect      evil.test:443  no rule allows it"
        );
        assert_eq!(
            line(
                r#"{"time":"2026-01-02T03:04:06.000Z","event":"allowed","door":"http","destination":"api.test:80","rule":{"layer":"user","source":{"file":"/p.toml"},"line":7},"method":"GET","path":"/a"}"#
            ),
            "2026-01-02T03:04:06.000Z  allowed  http         api.test:80  GET  /a  (/p.toml:7)"
        );
        assert_eq!(
            line(r#"{"time":"t","event":"exited","status":137,"signal":9,"millis":12}"#),
            "t  exited   status 137 after 12 ms"
        );
    }

    #[test]
    fn a_line_cannot_write_to_the_terminal() {
        let text = line(r#"{"time":"t","event":"denied","door":"dns","destination":"a\u001b[2J\n","reason":"x"}"#);
        assert!(!text.contains('\u{1b}') && !text.contains('\n'), "{text}");
    }
}
