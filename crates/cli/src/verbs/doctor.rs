//! `ringfence doctor`: what this host can do, and the remedy for what it cannot.

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::{self, lines, table::table};
use ringfence::doctor::{Health, Report, examine};

pub(crate) fn doctor(args: DoctorArgs) -> Exit {
    let report = match examine() {
        Ok(report) => report,
        Err(error) => {
            diagnostic::say(&error.diagnostics(), Form::of(args.json));
            return Exit::Refused;
        }
    };
    let printed = render::stdout(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            return writeln!(out);
        }
        out.write_all(text(&report).as_bytes())
    });
    match (printed, report.can_build) {
        (Exit::Success, false) => Exit::No,
        (printed, _) => printed,
    }
}

fn text(report: &Report) -> String {
    let mut rows = vec![["mechanism", "status", "because"].map(str::to_owned).to_vec()];
    rows.extend(report.rows.iter().map(|row| {
        let status = match row.status {
            Health::Ok => "ok",
            Health::Weaker => "weaker",
            Health::Missing => "missing",
        };
        vec![row.name.to_owned(), status.to_owned(), lines::plain(&row.because)]
    }));
    let mut out = table(&rows, 0);
    for row in &report.rows {
        if let Some(remedy) = &row.remedy {
            out.push_str(&format!("\n{}: {}\n", row.name, lines::plain(remedy)));
        }
    }
    if let Some(profile) = &report.apparmor_profile {
        out.push_str("\nsave this as /etc/apparmor.d/ringfence and load it (sudo apparmor_parser -r /etc/apparmor.d/ringfence)\n");
        out.extend(profile.lines().map(|line| format!("  {line}\n")));
    }
    let verdict = match (report.can_build, report.can_build_weaker) {
        (true, _) => "exit 0 (the default wall can be built)",
        (false, true) => "exit 1 (only a weaker wall can be built: --allow-weaker)",
        (false, false) => "exit 1 (no wall can be built)",
    };
    out.push_str(&format!("\nchecked in {}; {verdict}\n", lines::time(report.took)));
    out
}
