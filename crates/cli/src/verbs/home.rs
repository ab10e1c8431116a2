//! `ringfence home`: the private home folders.

use crate::args::{HomeAction, HomeArgs};
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::{self, complain, lines, table::table};
use ringfence::Error;
use ringfence::homes::{self, HomeEntry, Which};
use serde_json::json;
use std::path::Path;
use std::time::SystemTime;

pub(crate) fn home(args: HomeArgs) -> Exit {
    let done = match args.action {
        HomeAction::List { json } => list(json),
        HomeAction::Clean { orphans: true, .. } => clean(&Which::Orphans),
        HomeAction::Clean { all: true, .. } => clean(&Which::All),
        HomeAction::Clean { workspace, .. } => {
            homes::workspace(workspace.as_deref()).and_then(|workspace| clean(&Which::Workspace(workspace)))
        }
    };
    done.unwrap_or_else(|error| {
        diagnostic::say(&error.diagnostics(), Form::Text);
        Exit::Refused
    })
}

fn list(json: bool) -> Result<Exit, Error> {
    let (entries, home) = homes::list()?;
    Ok(render::stdout(|out| {
        if json {
            let rows: Vec<_> = entries.iter().map(as_json).collect();
            return writeln!(out, "{}", json!(rows));
        }
        let rows: Vec<_> = entries.iter().map(|entry| row(entry, home.as_path())).collect();
        write!(out, "{}", table(&rows, 0))
    }))
}

fn as_json(entry: &HomeEntry) -> serde_json::Value {
    json!({
        "id": entry.id,
        "workspace": entry.workspace.as_ref().map(ToString::to_string),
        "workspace_exists": entry.workspace_exists,
        "home": entry.home.to_string(),
        "bytes": entry.size(),
        "in_use": entry.in_use,
        "unused_seconds": entry.last_used.and_then(age),
    })
}

fn age(time: SystemTime) -> Option<u64> {
    time.elapsed().ok().map(|idle| idle.as_secs())
}

fn row(entry: &HomeEntry, home: &Path) -> Vec<String> {
    let workspace = match &entry.workspace {
        Some(path) => lines::path(path.as_path(), home),
        None => "(unknown)".to_owned(),
    };
    let state = match (entry.in_use, entry.workspace_exists) {
        (true, _) => "in use".to_owned(),
        (false, false) => "workspace is gone".to_owned(),
        (false, true) => match entry.last_used.and_then(age) {
            Some(seconds) => format!("used {} ago", lines::age(seconds)),
            None => "never used".to_owned(),
        },
    };
    vec![lines::size(entry.size()), workspace, lines::path(entry.home.as_path(), home), state]
}

fn clean(which: &Which) -> Result<Exit, Error> {
    let cleaned = homes::clean(which)?;
    let about = |entry: &HomeEntry| lines::plain(&entry.home.to_string());
    for entry in &cleaned.in_use {
        complain(&format!("left {}: a run uses it", about(entry)));
    }
    for (entry, error) in &cleaned.failed {
        complain(&format!("cannot remove {}: {error} ({})", about(entry), error.hint()));
    }
    complain(&format!("removed {}", lines::count(cleaned.removed.len(), "private home")));
    Ok(if cleaned.failed.is_empty() && cleaned.in_use.is_empty() { Exit::Success } else { Exit::No })
}
