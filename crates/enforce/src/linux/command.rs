//! The command's process: its last steps before it becomes the program.

use super::error::Step;
use super::launch::Command;
use super::message::{During, Failure, FromCommand, ToCommand};
use super::prove;
use ringfence_plan::Plan;
use ringfence_plan::landlock::{AccessSet, LandlockPlan};
use ringfence_plan::limits::Rlimit;
use ringfence_sys::file::{self, Blocking};
use ringfence_sys::landlock::{Grant, Scopes};
use ringfence_sys::limit::{self, Resource};
use ringfence_sys::process::{self, Image, Stdio};
use ringfence_sys::seccomp::Instruction;
use ringfence_sys::signal::{self, Mask, Signal, SignalSet};
use ringfence_sys::{Errno, SysError, caps, landlock, pty, seccomp, socket};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

/// What the command's process gets from process 1.
pub(crate) struct Start<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) command: &'a Command,
    /// The slave end, and which standard descriptors it takes the place of.
    pub(crate) terminal: Option<(&'a OwnedFd, &'a [Stdio])>,
    /// The launcher's own mask and umask, which the program inherits as if we were not there.
    pub(crate) mask: &'a SignalSet,
    pub(crate) umask: u32,
    /// Where the listener of the filter goes.
    pub(crate) guard: Option<&'a OwnedFd>,
}

/// Runs to the execution of the program, which closes `report`; returns the exit status of a failure, which has been
/// reported.
pub(crate) fn run(start: &Start<'_>, report: OwnedFd) -> i32 {
    if let Err(failure) = stdio(start) {
        return fail(&report, failure);
    }
    // Every other descriptor goes, whoever opened it: what is passed on is 0, 1 and 2.
    let mut keep = vec![report];
    match start.guard.map(OwnedFd::try_clone).transpose() {
        Ok(guard) => keep.extend(guard),
        Err(_) => return 125,
    }
    let Ok(mut kept) = process::keep_only(keep).map(Vec::into_iter) else { return 125 };
    let Some(report) = kept.next() else { return 125 };
    match walls(start, &report, kept.next()) {
        Ok(status) => status,
        Err(failure) => fail(&report, failure),
    }
}

fn fail(report: &OwnedFd, failure: Failure) -> i32 {
    let _ = socket::send(report, &FromCommand::Failed(failure).encode(), &[]);
    125
}

fn stdio(start: &Start<'_>) -> Result<(), Failure> {
    process::new_group(None).during(Step::Terminal, "")?;
    if let Some((slave, places)) = start.terminal {
        // All signals are blocked here, so the write to the terminal's state from the background is let through
        // (tcsetpgrp(3)).
        pty::set_foreground(slave, process::own_pid()).during(Step::Terminal, "")?;
        for place in places {
            process::set_stdio(*place, slave).during(Step::Stdio, "")?;
        }
    }
    Ok(())
}

/// The restrictions, in the order that the kernel demands: what needs a capability, then the capabilities, then what is
/// for good, the filter last.
fn walls(start: &Start<'_>, report: &OwnedFd, guard: Option<OwnedFd>) -> Result<i32, Failure> {
    let plan = start.plan;
    file::change_dir(plan.cwd.as_path()).during(Step::WorkingDir, plan.cwd.as_path())?;
    for (resource, value) in &plan.limits.rlimits {
        limit::set(rlimit(*resource), *value).during(Step::Limit, format!("{resource:?}"))?;
    }
    process::fresh_keyring().during(Step::Keyring, "")?;
    caps::drop_all().during(Step::Capabilities, "")?;
    process::no_new_privileges().during(Step::Capabilities, "")?;
    restrict_files(&plan.landlock)?;
    let program: Vec<Instruction> =
        plan.seccomp.program.iter().map(|i| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    if let Some(guard) = guard {
        // From here on a connect(2) waits for process 1, which gets the listener in this message.
        // Process 1 copies the address and the socket out of this process. Nothing else is in here yet that could look.
        process::set_dumpable().during(Step::Guard, "")?;
        let listener = seccomp::install_with_listener(&program).during(Step::Seccomp, "")?;
        socket::send(&guard, b"listener", &[listener.as_fd()]).during(Step::Guard, "")?;
    } else if !program.is_empty() {
        seccomp::install(&program).during(Step::Seccomp, "")?;
    }
    if plan.proof.enabled && !prove(plan, report)? {
        return Ok(125);
    }
    file::set_umask(start.umask);
    signals(start.mask).during(Step::Signals, "")?;
    execute(start)
}

fn rlimit(resource: Rlimit) -> Resource {
    match resource {
        Rlimit::AddressSpace => Resource::As,
        Rlimit::Data => Resource::Data,
        Rlimit::Processes => Resource::Nproc,
        Rlimit::FileSize => Resource::Fsize,
        Rlimit::Cpu => Resource::Cpu,
        Rlimit::OpenFiles => Resource::Nofile,
        Rlimit::Core => Resource::Core,
    }
}

fn restrict_files(plan: &LandlockPlan) -> Result<(), Failure> {
    if plan.abi == 0 {
        return Ok(());
    }
    let mut grants = Vec::with_capacity(plan.rules.len());
    for (path, access) in &plan.rules {
        let path = path.as_path();
        match file::open_path(path) {
            Ok(fd) => {
                let grant = match access {
                    AccessSet::Read => Grant::Read,
                    AccessSet::WriteExisting => Grant::WriteExisting,
                    AccessSet::Full => Grant::Full,
                };
                grants.push((fd, grant));
            }
            // Not there, or below something that is hidden: nothing to be granted.
            Err(e) if matches!(e.errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(error) => return Err(Failure::new(Step::Landlock, path, error)),
        }
    }
    let scopes = if plan.scopes { Scopes::Enforced } else { Scopes::Off };
    landlock::restrict(plan.abi, &grants, scopes).during(Step::Landlock, "")
}

/// Tries the table and waits for the launcher's word that nothing arrived outside. `false`: stop.
fn prove(plan: &Plan, report: &OwnedFd) -> Result<bool, Failure> {
    let Some(ToCommand::Plants(plants)) = hear(report)? else { return Ok(false) };
    let begin = Instant::now();
    let found = prove::try_all(&plan.proof, &plants, plan.landlock.abi > 0 && plan.landlock.scopes);
    let say = match &found {
        Ok(()) => {
            let micros = u32::try_from(begin.elapsed().as_micros()).unwrap_or(u32::MAX);
            FromCommand::Proved { micros }
        }
        Err((row, surprise)) => {
            FromCommand::Surprised { row: u32::try_from(*row).unwrap_or(u32::MAX), surprise: surprise.clone() }
        }
    };
    socket::send(report, &say.encode(), &[]).during(Step::Message, "")?;
    if found.is_err() {
        return Ok(false);
    }
    Ok(hear(report)? == Some(ToCommand::Go))
}

fn hear(report: &OwnedFd) -> Result<Option<ToCommand>, Failure> {
    let message = socket::receive(report, Blocking::Yes).during(Step::Message, "")?;
    Ok(message.and_then(|m| ToCommand::decode(&m.bytes)))
}

/// As the launcher was started: signals that it ignored stay ignored (as nohup(1) wants), but for the two that every
/// program takes for granted. Rust's runtime ignores SIGPIPE.
fn signals(mask: &SignalSet) -> Result<(), SysError> {
    signal::reset(Signal::PIPE)?;
    signal::reset(Signal::CHILD)?;
    signal::change_mask(Mask::Set, mask).map(drop)
}

/// Becomes the program, found as execvp(3) finds it, but on the `PATH` of the environment that it will have.
fn execute(start: &Start<'_>) -> Result<i32, Failure> {
    let program = start.command.program.as_os_str();
    let args = std::iter::once(program).chain(start.command.args.iter().map(OsString::as_os_str));
    let env = start.plan.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let image = Image::new(args, env).during(Step::Execute, Path::new(program))?;
    let mut denied = None;
    let searched = !program.as_encoded_bytes().contains(&b'/');
    for candidate in candidates(program, &start.plan.env) {
        let Err(error) = image.execute(&candidate);
        match error.errno {
            Errno::NOEXEC => {
                let Err(error) = image.execute_script(OsStr::new("/bin/sh"), &candidate);
                return Err(Failure::new(Step::Execute, &candidate, error));
            }
            // A folder of PATH may be hidden; it holds no program then. A file that is there and gives ENOENT has an
            // interpreter that is not.
            Errno::NOENT | Errno::NOTDIR if !file::exists(Path::new(&candidate)) => {}
            Errno::ACCESS if searched && !file::exists(Path::new(&candidate)) => {}
            Errno::ACCESS | Errno::NOENT => {
                denied.get_or_insert(Failure::new(Step::Execute, &candidate, error));
            }
            _ => return Err(Failure::new(Step::Execute, &candidate, error)),
        }
    }
    Err(denied.unwrap_or_else(|| {
        let absent = SysError::new("execve", format!("{program:?}"), Errno::NOENT);
        Failure::new(Step::Execute, "", absent)
    }))
}

/// Where the program may be; a name with a slash is a path (execvp(3)).
fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<OsString> {
    if program.as_encoded_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    if program.is_empty() {
        return Vec::new();
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new("/usr/bin:/bin"), |(_, value)| value);
    std::env::split_paths(path)
        .map(|dir| if dir.as_os_str().is_empty() { Path::new(".").join(program) } else { dir.join(program) })
        .map(OsString::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_up_as_execvp_does() {
        let env = vec![(OsString::from("PATH"), OsString::from("/a::/b"))];
        assert_eq!(candidates(OsStr::new("x"), &env), ["/a/x", "./x", "/b/x"].map(OsString::from));
        assert_eq!(candidates(OsStr::new("./x"), &env), ["./x"].map(OsString::from));
        assert_eq!(candidates(OsStr::new("x"), &[]), ["/usr/bin/x", "/bin/x"].map(OsString::from));
        assert!(candidates(OsStr::new(""), &env).is_empty());
    }
}
