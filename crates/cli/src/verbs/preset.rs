//! `ringfence preset`: what is built in.

use crate::args::{PresetAction, PresetArgs};
use crate::exit::Exit;
use crate::render::{self, complain, table::table};
use serde_json::json;

pub(crate) fn preset(args: PresetArgs) -> Exit {
    match args.action {
        PresetAction::List { json } => list(json),
        PresetAction::Show { name } => show(&name),
    }
}

fn list(json: bool) -> Exit {
    let presets = ringfence::presets::ALL;
    render::stdout(|out| {
        if json {
            let rows: Vec<_> = presets
                .iter()
                .map(|p| json!({ "name": p.name, "about": p.description(), "programs": p.programs }))
                .collect();
            return writeln!(out, "{}", json!(rows));
        }
        let rows: Vec<_> = presets.iter().map(|p| vec![p.name.to_owned(), p.description().to_owned()]).collect();
        write!(out, "{}", table(&rows, 0))
    })
}

fn show(name: &str) -> Exit {
    match ringfence::presets::find(name) {
        Some(preset) => render::stdout(|out| out.write_all(preset.text.as_bytes())),
        None => {
            complain(&format!("no preset is named `{name}` (ringfence preset list)"));
            Exit::Refused
        }
    }
}
