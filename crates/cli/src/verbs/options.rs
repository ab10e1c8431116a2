//! From flags to the description of a run.

use crate::args::{Home, PolicyArgs};
use ringfence::{Builder, HomeMode, LimitFlags, ProgramPreset, Sandbox, WideWorkspace};
use std::ffi::OsString;

/// The run that the policy flags describe, of this command (empty where none is run).
pub(crate) fn describe(args: PolicyArgs, command: &[OsString]) -> Builder {
    let mut run = match &args.file {
        Some(file) => Sandbox::from_policy(file),
        None => Sandbox::builder(),
    };
    run = run.program_preset(if args.no_preset { ProgramPreset::Ignore } else { ProgramPreset::Pick });
    if let Some(workspace) = &args.workspace {
        run = run.workspace(workspace);
    }
    if args.allow_wide_workspace {
        run = run.wide_workspace(WideWorkspace::Accept);
    }
    run = each(run, &args.presets, Builder::preset);
    run = each(run, &args.write, Builder::write);
    run = each(run, &args.read, Builder::read);
    run = each(run, &args.deny_read, Builder::deny_read);
    run = each(run, &args.deny_write, Builder::deny_write);
    run = each(run, &args.allow_host, Builder::allow_host);
    run = each(run, &args.deny_host, Builder::deny_host);
    run = each(run, &args.publish, Builder::publish);
    run = each(run, &args.host_port, Builder::host_port);
    run = each(run, &args.unix, Builder::unix);
    run = each(run, &args.env, Builder::env);
    run = each(run, &args.env_deny, Builder::env_deny);
    if let Some(home) = args.home {
        run = run.home(match home {
            Home::Private => HomeMode::Private,
            Home::Visible => HomeMode::Visible,
            Home::Empty => HomeMode::Empty,
        });
    }
    if args.allow_weaker {
        run = run.allow_weaker();
    }
    if args.no_prove {
        run = run.skip_proof();
    }
    run = run.limits(LimitFlags { memory: args.memory, pids: args.pids, disk: args.disk, wall: args.wall });
    match command.split_first() {
        Some((program, rest)) => run.command(program).args(rest),
        None => run,
    }
}

fn each<'a, T>(run: Builder, values: &'a [T], add: impl Fn(Builder, &'a T) -> Builder) -> Builder {
    values.iter().fold(run, add)
}
