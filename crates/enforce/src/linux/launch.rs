//! The launcher: from a plan to a sandbox in which the program has been executed.

use super::error::{EnforceError, Step, Surprise};
use super::init::{self, Birth};
use super::message::{Failure, FromCommand, FromInit, NOT_OURS, ToCommand, ToInit};
use super::plant::Planted;
use super::prepare;
use super::stdio;
use super::supervise::{Listener, Parts, Proved, Running};
use super::terminal::UserTerminal;
use ringfence_plan::{Identity, Plan};
use ringfence_sys::clone::{self, Child, IdMap, IdRange, MapOf, Namespace};
use ringfence_sys::event::{self, Interest};
use ringfence_sys::file::Blocking;
use ringfence_sys::limit::Group;
use ringfence_sys::pidfd;
use ringfence_sys::process;
use ringfence_sys::signal::{self, Mask, Signal, SignalSet};
use ringfence_sys::{Errno, SysError, socket};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

/// What is executed inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name to be found on the `PATH` of the plan's environment.
    pub program: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
}

/// How standard input, output and error are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoSetup {
    /// What becomes of a terminal.
    pub terminal: TerminalPolicy,
}

/// What becomes of those standard descriptors that are a terminal. All others are inherited untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalPolicy {
    /// A private pseudoterminal stands in for it.
    #[default]
    Private,
    /// It is inherited, without being the controlling terminal: no job control inside.
    Inherit,
}

/// Signals that reach the command as if we were not there.
pub(crate) const FORWARDED: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// The namespaces that a sandbox has of its own.
pub(crate) const NAMESPACES: [Namespace; 7] = [
    Namespace::User,
    Namespace::Mount,
    Namespace::Pid,
    Namespace::Net,
    Namespace::Ipc,
    Namespace::Uts,
    Namespace::Cgroup,
];

/// Builds the walls, proves them and executes the program behind them. Must be called in a process with one thread; the
/// signals that are passed on stay blocked until the [`Running`] is dropped.
///
/// # Errors
/// See [`EnforceError`]; every process that was started is gone again.
pub fn spawn(plan: &Plan, command: &Command, io: IoSetup) -> Result<Running, EnforceError> {
    process::fill_stdio().map_err(launch("open /dev/null"))?;
    stdio::check(plan.guard.as_ref())?;
    prepare::carry_out(&plan.prepare)?;
    let terminal = match io.terminal {
        TerminalPolicy::Private => UserTerminal::find().map_err(launch("look at the terminal"))?,
        TerminalPolicy::Inherit => None,
    };
    let group = control_group(plan)?;
    let signals = Signals::block()?;
    let (control, control_inside) = socket::pair().map_err(launch("make a socket pair"))?;
    let (report, report_inside) = socket::pair().map_err(launch("make a socket pair"))?;
    let birth = Birth {
        plan,
        command,
        terminal: terminal.as_ref().map(UserTerminal::wanted),
        mask: signals.old,
        control: control_inside,
        report: report_inside,
    };
    let init = clone::spawn(&NAMESPACES, group.as_ref().map(|g| g.fd().as_fd()), move || init::run(birth))
        .map_err(clone_failed)?;
    let mut building =
        Building { plan, command, init, control, report, ready: None, listeners: Vec::new(), early: Vec::new() };
    match building.finish(&signals) {
        Ok(proved) => {
            let (ipv6, vanished, master) = building.ready.take().unwrap_or((false, 0, None));
            Running::new(Parts {
                init: building.init,
                control: building.control,
                early: building.early,
                signals,
                terminal: terminal.zip(master),
                listeners: building.listeners,
                ipv6,
                vanished,
                proved,
                deadline: plan.limits.wall.and_then(|wall| Instant::now().checked_add(wall)),
                group,
            })
        }
        Err(error) => {
            building.abandon();
            Err(error)
        }
    }
}

fn launch(what: &'static str) -> impl Fn(SysError) -> EnforceError {
    move |source| EnforceError::Launch { what, source }
}

fn clone_failed(source: SysError) -> EnforceError {
    match (source.call.as_ref(), source.errno) {
        ("stat", _) => EnforceError::NoProc { source },
        (_, Errno::BUSY) => EnforceError::Threads,
        (_, Errno::PERM | Errno::NOSPC | Errno::USERS | Errno::NOSYS | Errno::INVAL | Errno::ACCESS) => {
            EnforceError::UserNamespace { source }
        }
        _ => EnforceError::Launch { what: "start process 1", source },
    }
}

fn control_group(plan: &Plan) -> Result<Option<Group>, EnforceError> {
    let Some(wanted) = &plan.limits.cgroup else { return Ok(None) };
    let name = format!("ringfence-{}", process::own_pid().as_raw_nonzero());
    Group::create(wanted.parent.as_path(), &name, &wanted.settings)
        .map(Some)
        .map_err(|source| EnforceError::ControlGroup { path: wanted.parent.as_path().to_owned(), source })
}

/// The signals that are passed on, as a descriptor; the old mask is put back when dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) fd: OwnedFd,
    old: SignalSet,
}

impl Signals {
    fn block() -> Result<Self, EnforceError> {
        let what = launch("block signals");
        // A launcher that was started with SIGCHLD ignored could not wait for its child (wait(2)).
        signal::reset(Signal::CHILD).map_err(&what)?;
        let set = SignalSet::of(&FORWARDED);
        let old = signal::change_mask(Mask::Block, &set).map_err(&what)?;
        // Both for writing to a terminal from the background: it is tried only in the foreground, and must not stop us.
        signal::change_mask(Mask::Block, &SignalSet::of(&[Signal::TTOU, Signal::TTIN])).map_err(&what)?;
        match signal::descriptor(&set) {
            Ok(fd) => Ok(Self { fd, old }),
            Err(error) => {
                let _ = signal::change_mask(Mask::Set, &old);
                Err(what(error))
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = signal::change_mask(Mask::Set, &self.old);
    }
}

/// A sandbox whose program has not been executed yet.
struct Building<'a> {
    plan: &'a Plan,
    command: &'a Command,
    init: Child,
    control: OwnedFd,
    report: OwnedFd,
    ready: Option<(bool, u32, Option<OwnedFd>)>,
    listeners: Vec<Listener>,
    /// What process 1 said of the command already.
    early: Vec<FromInit>,
}

impl Building<'_> {
    /// Goes along with the other two processes until the program is executed.
    fn finish(&mut self, signals: &Signals) -> Result<Option<Proved>, EnforceError> {
        if self.plan.identity.map_all {
            self.map_ids(self.plan.identity)?;
        }
        let mut planted = None;
        if self.plan.proof.enabled {
            let doors = &self.plan.doors;
            let taken: Vec<u16> = doors.transparent.iter().chain(&doors.host_ports).copied().collect();
            let plants = Planted::for_rows(&self.plan.proof, &taken)?;
            // When the command's process is gone already, its last message says why.
            let _ = socket::send(&self.report, &ToCommand::Plants(plants.places.clone()).encode(), &[]);
            planted = Some(plants);
        }
        let mut proved = None;
        let mut control_open = true;
        loop {
            let mut fds = vec![(self.report.as_fd(), Interest::Read), (signals.fd.as_fd(), Interest::Read)];
            if control_open {
                fds.push((self.control.as_fd(), Interest::Read));
            }
            let ready = event::wait(&fds, None).map_err(launch("wait for process 1"))?;
            if ready.get(2) == Some(&true) {
                control_open = self.hear_init()?;
            }
            if ready.first() != Some(&true) {
                // Once the program runs, which is known by its end of the connection, signals are for the program.
                if ready.get(1) == Some(&true) {
                    interrupted(signals)?;
                }
                continue;
            }
            let message = socket::receive(&self.report, Blocking::No).map_err(launch("talk to process 1"))?;
            let Some(message) = message else { continue };
            if message.bytes.is_empty() {
                // The execution closed it, unless the process died before; process 1 has told why then.
                while control_open && self.ready.is_none() {
                    control_open = self.hear_init_waiting()?;
                }
                if self.ready.is_none() || (self.plan.proof.enabled && proved.is_none()) {
                    return Err(EnforceError::Ended);
                }
                return Ok(proved);
            }
            match FromCommand::decode(&message.bytes) {
                Some(FromCommand::Proved { micros }) => {
                    if let Some(row) = planted.as_ref().and_then(Planted::reached) {
                        return Err(self.unproved(row, Surprise::Arrived));
                    }
                    planted = None;
                    proved = Some(Proved { rows: self.plan.proof.rows.len(), micros });
                    socket::send(&self.report, &ToCommand::Go.encode(), &[])
                        .map_err(launch("talk to the command's process"))?;
                }
                Some(FromCommand::Surprised { row, surprise }) => {
                    return Err(self.unproved(usize::try_from(row).unwrap_or(usize::MAX), surprise));
                }
                Some(FromCommand::Failed(failure)) => return Err(failed(failure, self.command)),
                None => return Err(EnforceError::Ended),
            }
        }
    }

    fn unproved(&self, row: usize, surprise: Surprise) -> EnforceError {
        let row = self.plan.proof.rows.get(row).map_or_else(String::new, |row| row.name.clone());
        EnforceError::Unproved { row, surprise }
    }

    /// Every number that exists here, as itself.
    fn map_ids(&self, _identity: Identity) -> Result<(), EnforceError> {
        for map in [IdMap::Users, IdMap::Groups] {
            let own = clone::own_ids(map).map_err(launch("read the id map"))?;
            let same: Vec<IdRange> = own.iter().map(|r| IdRange { outside: r.inside, ..*r }).collect();
            clone::write_ids(MapOf::Child(self.init.pid), map, &same).map_err(|source| EnforceError::Step {
                step: Step::Ids,
                path: PathBuf::new(),
                source,
            })?;
        }
        socket::send(&self.control, &ToInit::Mapped.encode(), &[]).map_err(launch("talk to process 1"))
    }

    /// `false`: process 1 is gone.
    fn hear_init(&mut self) -> Result<bool, EnforceError> {
        let message = socket::receive(&self.control, Blocking::No).map_err(launch("talk to process 1"))?;
        message.map_or(Ok(true), |message| self.take(message))
    }

    fn hear_init_waiting(&mut self) -> Result<bool, EnforceError> {
        let message = socket::receive(&self.control, Blocking::Yes).map_err(launch("talk to process 1"))?;
        message.map_or(Ok(false), |message| self.take(message))
    }

    fn take(&mut self, message: socket::Received) -> Result<bool, EnforceError> {
        if message.bytes.is_empty() {
            return if self.ready.is_none() { Err(EnforceError::Ended) } else { Ok(false) };
        }
        match FromInit::decode(&message.bytes) {
            Some(FromInit::Listeners(list)) => {
                let listeners = list.into_iter().zip(message.fds);
                self.listeners.extend(listeners.map(|((listens, port), fd)| Listener { listens, port, fd }));
                Ok(true)
            }
            Some(FromInit::Ready { ipv6, vanished }) => {
                self.ready = Some((ipv6, vanished, message.fds.into_iter().next()));
                Ok(true)
            }
            Some(FromInit::Failed(failure)) => Err(failed(failure, self.command)),
            // A short program can be over before we have heard of its execution.
            Some(early) => {
                self.early.push(early);
                Ok(true)
            }
            None => Err(EnforceError::Ended),
        }
    }

    /// Ends what was started, and waits for that.
    fn abandon(self) {
        let _ = pidfd::signal(&self.init.pidfd, Signal::KILL);
        let _ = pidfd::collect(&self.init.pidfd, Blocking::Yes);
    }
}

fn interrupted(signals: &Signals) -> Result<(), EnforceError> {
    while let Ok(Some(arrived)) = signal::take(&signals.fd) {
        let ends = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
        if ends.iter().any(|s| s.as_raw() == arrived.signal) {
            return Err(EnforceError::Interrupted(arrived.signal));
        }
    }
    Ok(())
}

/// A failed step inside as an error for people.
fn failed(failure: Failure, command: &Command) -> EnforceError {
    let Failure { step, path, error: source } = failure;
    match (step, source.errno) {
        _ if source.call == NOT_OURS => EnforceError::NotOurs { path },
        (Step::Execute, Errno::NOENT) if path.as_os_str().is_empty() => {
            EnforceError::NotFound { program: PathBuf::from(&command.program) }
        }
        (Step::Execute, _) => EnforceError::NotExecutable { program: path, source },
        (Step::WorkingDir, _) => EnforceError::WorkingDir { path, source },
        (Step::Proc, Errno::PERM) if source.call == "fsmount" => EnforceError::ProcMount { source },
        // A user namespace whose capabilities a security module took away at once (AppArmor on Ubuntu).
        (Step::Network | Step::Freeze | Step::Ids, Errno::PERM | Errno::ACCESS) => {
            EnforceError::UserNamespace { source }
        }
        (_, Errno::NOSPC | Errno::DQUOT) => EnforceError::Full { step, path, source },
        _ => EnforceError::Step { step, path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command { program: "tool".into(), args: Vec::new() }
    }

    fn failure(step: Step, path: &str, call: &'static str, errno: Errno) -> EnforceError {
        failed(Failure::new(step, path, SysError::new(call, "", errno)), &command())
    }

    #[test]
    fn failures_have_the_status_of_a_shell() {
        assert_eq!(failure(Step::Execute, "", "execve", Errno::NOENT).exit_code(), 127);
        assert_eq!(failure(Step::Execute, "/x", "execve", Errno::ACCESS).exit_code(), 126);
        assert_eq!(failure(Step::Bind, "/x", "open_tree", Errno::INVAL).exit_code(), 125);
        assert_eq!(EnforceError::Interrupted(2).exit_code(), 130);
    }

    #[test]
    fn causes_that_people_can_remove_have_their_own_error_and_a_hint() {
        let errors = [
            failure(Step::Proc, "/proc", "fsmount", Errno::PERM),
            failure(Step::Network, "lo", "netlink", Errno::PERM),
            failure(Step::Tmpfs, "/tmp", "fsconfig", Errno::NOSPC),
            failure(Step::WorkingDir, "/gone", "chdir", Errno::NOENT),
            failure(Step::MakeDir, "/x", NOT_OURS, Errno::ROFS),
            clone_failed(SysError::new("clone3", "", Errno::NOSPC)),
            clone_failed(SysError::new("clone3", "", Errno::PERM)),
            clone_failed(SysError::new("stat", "", Errno::NOENT)),
        ];
        for error in errors {
            assert!(error.hint().is_some(), "{error:?}");
            assert!(!matches!(error, EnforceError::Step { .. }), "{error:?}");
        }
    }
}
