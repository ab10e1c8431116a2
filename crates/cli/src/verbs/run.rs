//! `ringfence run`: a program behind walls. [`launch`] is the same for every verb that runs something.

use super::options;
use crate::args::{LaunchArgs, PolicyArgs, Reader, RunArgs};
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::explanation::Detail;
use crate::render::{complain, lines, session, stderr};
use ringfence::policy::event::EventKind;
use ringfence::policy::{Event, EventSink};
use ringfence::{Builder, Ending, Error, Explanation, Finding, Layer, TerminalPolicy, action};
use std::ffi::OsString;
use std::sync::Arc;

pub(crate) fn run(args: RunArgs) -> Exit {
    launch(args.policy, args.launch, args.command, Greeting::Spoken)
}

/// Whether a run is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// By a line at its start.
    Spoken,
    /// Not at all: a harness that runs hundreds of commands reads each line.
    Silent,
}

/// Runs a command as the flags say, and returns its status.
pub(crate) fn launch(policy: PolicyArgs, launch: LaunchArgs, command: Vec<OsString>, greeting: Greeting) -> Exit {
    let form = Form::of(launch.json);
    let name = command.first().map(|program| session::program(program)).unwrap_or_default();
    let mut run = options::describe(policy, &command);
    if launch.dry_run {
        return dry_run(&run, form);
    }
    if let Some(file) = &launch.audit {
        run = run.audit(file);
    }
    if launch.no_pty {
        run = run.terminal(TerminalPolicy::Inherit);
    }
    match (form, launch.verbose) {
        (Form::Json, _) => run = run.events(Arc::new(JsonLines)),
        (Form::Text, true) => run = run.events(Arc::new(AtOnce)),
        (Form::Text, false) => {}
    }
    match attempt(run, &launch, &name, form, greeting) {
        Ok(exit) => exit,
        Err(error) => {
            diagnostic::say(&error.diagnostics(), form);
            match error.exit_code() {
                126 => Exit::CannotExecute,
                127 => Exit::NotFound,
                125 => Exit::Refused,
                status => Exit::Command(status),
            }
        }
    }
}

fn dry_run(run: &Builder, form: Form) -> Exit {
    match run.explain() {
        Ok(explanation) => super::explain::show(&explanation, form, Detail::Grouped),
        Err(error) => {
            diagnostic::say(&error.diagnostics(), form);
            Exit::Refused
        }
    }
}

fn attempt(run: Builder, launch: &LaunchArgs, name: &str, form: Form, greeting: Greeting) -> Result<Exit, Error> {
    let sandbox = run.build()?;
    let speaks = !launch.quiet && form == Form::Text;
    if !launch.quiet {
        warn(sandbox.explanation(), launch.verbose, form);
    }
    // Before the start, because afterwards standard error is the command's; the time of the proof comes with it.
    let explanation = sandbox.explanation().clone();
    let running = sandbox.spawn()?;
    if speaks && greeting == Greeting::Spoken {
        greet(&explanation, running.proved().map(|proved| proved.time), name, launch.verbose);
    }
    drop(explanation);
    let ending = running.wait()?;
    if speaks {
        sum_up(&ending, launch.explain);
    }
    Ok(Exit::Command(ending.status))
}

/// What the policy says and does not mean.
fn warn(explanation: &Explanation, verbose: bool, form: Form) {
    if form == Form::Json {
        diagnostic::say(&explanation.warnings, form);
        return;
    }
    explanation.findings.iter().for_each(say_finding);
    // Of the judgements only this one is news at a start: the others are what somebody wanted.
    let own = |finding: &&Finding| finding.code == "RF0327" && finding.origin.layer != Layer::Project;
    explanation.lints.iter().filter(|finding| verbose || own(finding)).for_each(say_finding);
    for warning in &explanation.warnings {
        let hint = warning.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        complain(&lines::plain(&format!("{}{hint}", warning.message)));
    }
    if verbose {
        explanation.notes.iter().for_each(|note| complain(&lines::plain(note)));
    }
}

pub(crate) fn say_finding(finding: &Finding) {
    let hint = finding.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    complain(&lines::plain(&format!("{}: {}{hint}", finding.origin, finding.message)));
}

fn greet(explanation: &Explanation, proved: Option<std::time::Duration>, name: &str, verbose: bool) {
    let policy = &explanation.policy;
    let status = explanation.plan.as_ref().map(|plan| plan.status.as_slice()).unwrap_or_default();
    complain(&session::start(name, policy, status, proved));
    complain(&format!("residual risk: {}", policy.residual_risk()));
    if verbose {
        session::details(explanation).iter().for_each(|line| complain(line));
    }
}

fn sum_up(ending: &Ending, reader: Reader) {
    if ending.timed_out {
        complain(&format!("the time limit ended it after {}", lines::time(ending.time)));
    }
    if ending.collapsed {
        complain("the sandbox ended before the command did");
    }
    let denials = ending.denials.distinct();
    stderr(&match reader {
        Reader::Person => session::denials(&denials, ending.denials.more()),
        Reader::Model => session::denials_for_model(&denials),
    });
}

/// Says every refusal when it happens.
struct AtOnce;

impl EventSink for AtOnce {
    fn record(&self, event: &Event) {
        if let EventKind::Denied { door, destination, reason, remedy, .. } = &event.kind {
            complain(&session::denial(action(*door), destination, reason, remedy.as_deref()));
        }
    }
}

/// Says every event as data.
struct JsonLines;

impl EventSink for JsonLines {
    fn record(&self, event: &Event) {
        if let Some(line) = ringfence::log::line(event, "") {
            stderr(&line);
        }
    }
}
