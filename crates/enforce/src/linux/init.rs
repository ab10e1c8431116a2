//! Process 1 of the sandbox: builds the walls, starts the command, then reaps, passes signals on and dials.
//!
//! It keeps its capabilities, inside its own namespaces only, and nothing inside can look into it, signal it or trace it.

use super::command::{self, Start};
use super::doors;
use super::error::Step;
use super::guard;
use super::launch::Command;
use super::message::{During, Failure, FromInit, ToInit};
use super::mounts;
use ringfence_plan::{GuardPlan, Plan};
use ringfence_sys::clone::{self, IdMap, IdRange, MapOf};
use ringfence_sys::event::{self, Interest};
use ringfence_sys::file::{self, Blocking};
use ringfence_sys::netns::Ipv6;
use ringfence_sys::process::{self, Change, Pid, Stdio};
use ringfence_sys::pty::{self, Modes, Winsize};
use ringfence_sys::signal::{self, Mask, Signal, SignalSet, Target};
use ringfence_sys::{Errno, SysError, socket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The terminal that the launcher has, to be stood in for.
#[derive(Debug, Clone)]
pub(crate) struct TerminalWanted {
    /// Which standard descriptors are it.
    pub(crate) places: Vec<Stdio>,
    /// Its settings.
    pub(crate) modes: Modes,
    /// Its size.
    pub(crate) size: Winsize,
}

/// What process 1 gets from the launcher, whose copy it is.
pub(crate) struct Birth<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) command: &'a Command,
    pub(crate) terminal: Option<TerminalWanted>,
    pub(crate) mask: SignalSet,
    /// To the launcher. Its end is the launcher's death.
    pub(crate) control: OwnedFd,
    /// Passed on to the command's process.
    pub(crate) report: OwnedFd,
}

/// The whole life of process 1.
pub(crate) fn run(birth: Birth<'_>) -> i32 {
    let Birth { plan, command, terminal, mask, control, report } = birth;
    // What the launcher had open is none of ours: also its end of both connections, which would keep them alive.
    let kept = process::keep_only(vec![control, report]).map(<[OwnedFd; 2]>::try_from);
    let Ok(Ok([control, report])) = kept else { return 125 };
    let built = match block_all().during(Step::Signals, "").and_then(|()| build(plan, terminal.as_ref(), &control)) {
        Ok(built) => built,
        Err(failure) => return give_up(&control, failure),
    };
    let (asked, asks) = match plan.guard.as_ref().map(|_| socket::pair()).transpose() {
        Ok(pair) => pair.unzip(),
        Err(error) => return give_up(&control, Failure::new(Step::Guard, "", error)),
    };
    let places = terminal.as_ref().map_or(&[][..], |t| t.places.as_slice());
    let start = Start {
        plan,
        command,
        terminal: built.slave.as_ref().map(|slave| (slave, places)),
        mask: &mask,
        umask: built.umask,
        guard: asks.as_ref(),
    };
    // The launcher hears of the execution by the end of this connection, so the copy of process 1 goes with the closure.
    let child = match clone::fork(move || command::run(&start, report)) {
        Ok(child) => child,
        Err(error) => return give_up(&control, Failure::new(Step::Fork, "", error)),
    };
    let command = child.pid;
    // Closed by its owner, as everything else will be closed by number.
    drop(child);
    // The command's process must be alone with its end, or this one would wait for a listener that never comes.
    drop(asks);
    let Some((kept, asked)) = settle(control, built.slave, asked) else { return 125 };
    if let (Some(asked), Some(plan)) = (asked, &plan.guard)
        && let Err(failure) = guard_with(asked, plan)
    {
        return give_up(&kept.control, failure);
    }
    serve(command, &kept)
}

/// Takes the listener from the command's process, as soon as it has its filter. That it failed before is told elsewhere.
fn guard_with(asked: OwnedFd, plan: &GuardPlan) -> Result<(), Failure> {
    let message = socket::receive(&asked, Blocking::Yes).during(Step::Guard, "")?;
    let Some(listener) = message.and_then(|message| message.fds.into_iter().next()) else { return Ok(()) };
    guard::start(listener, plan.allowed.clone()).during(Step::Guard, "")
}

fn give_up(control: &OwnedFd, failure: Failure) -> i32 {
    let _ = socket::send(control, &FromInit::Failed(failure).encode(), &[]);
    125
}

/// What the command's process needs of what was built.
struct Built {
    slave: Option<OwnedFd>,
    umask: u32,
}

fn build(plan: &Plan, terminal: Option<&TerminalWanted>, control: &OwnedFd) -> Result<Built, Failure> {
    process::die_with_parent().during(Step::Process, "")?;
    process::set_name(c"ringfence").during(Step::Process, "")?;
    identity(plan, control)?;
    process::set_undumpable().during(Step::Process, "")?;
    let umask = file::set_umask(0);
    file::change_dir(Path::new("/")).during(Step::Process, "/")?;
    let (ipv6, listeners) = doors::open(&plan.doors)?;
    let vanished = mounts::carry_out(&plan.mounts, &plan.prepare)?;
    for chunk in listeners.chunks(socket::MAX_FDS) {
        let list = chunk.iter().map(|(kind, port, _)| (*kind, *port)).collect();
        let fds: Vec<BorrowedFd<'_>> = chunk.iter().map(|(_, _, fd)| fd.as_fd()).collect();
        socket::send(control, &FromInit::Listeners(list).encode(), &fds).during(Step::Message, "")?;
    }
    process::new_session().during(Step::Terminal, "")?;
    let ready = FromInit::Ready { ipv6: ipv6 == Ipv6::Available, vanished }.encode();
    let slave = match terminal {
        Some(wanted) => {
            let pty = pty::open(Path::new("/dev/pts/ptmx")).during(Step::Terminal, "/dev/pts/ptmx")?;
            pty::set_modes(&pty.slave, &wanted.modes, pty::When::Now).during(Step::Terminal, "")?;
            pty::set_size(&pty.slave, wanted.size).during(Step::Terminal, "")?;
            pty::take_control(&pty.slave).during(Step::Terminal, "")?;
            socket::send(control, &ready, &[pty.master.as_fd()]).during(Step::Message, "")?;
            Some(pty.slave)
        }
        None => {
            socket::send(control, &ready, &[]).during(Step::Message, "")?;
            None
        }
    };
    Ok(Built { slave, umask })
}

/// Who we are inside. A map of one number may be written from inside; a wider one needs capabilities in the parent
/// namespace, so the launcher writes it (user_namespaces(7)).
fn identity(plan: &Plan, control: &OwnedFd) -> Result<(), Failure> {
    let who = plan.identity;
    if who.map_all {
        let word = socket::receive(control, Blocking::Yes).during(Step::Message, "")?;
        let word = word.and_then(|m| ToInit::decode(&m.bytes));
        if word != Some(ToInit::Mapped) {
            return Err(Failure::new(Step::Ids, "", SysError::new("recvmsg", "launcher is gone", Errno::PIPE)));
        }
        return match clone::drop_groups() {
            // Root of a namespace in which setgroups(2) was given up, as in a rootless container: its groups can neither be
            // dropped nor mean more inside than outside, as an ordinary user's.
            Err(error) if error.errno == Errno::PERM && setgroups_was_given_up() => Ok(()),
            done => done.during(Step::Ids, ""),
        };
    }
    let one = |id| [IdRange { inside: id, outside: id, count: 1 }];
    clone::deny_setgroups(MapOf::Own).during(Step::Ids, "")?;
    clone::write_ids(MapOf::Own, IdMap::Users, &one(who.uid)).during(Step::Ids, "")?;
    clone::write_ids(MapOf::Own, IdMap::Groups, &one(who.gid)).during(Step::Ids, "")
}

/// Given up by a namespace above, for all below (user_namespaces(7)).
fn setgroups_was_given_up() -> bool {
    std::fs::read_to_string("/proc/self/setgroups").is_ok_and(|word| word.trim() == "deny")
}

/// What process 1 keeps for the rest of its life.
struct Kept {
    control: OwnedFd,
    children: OwnedFd,
    /// Keeps the terminal from hanging up when the command closes its own descriptors of it for a while.
    _slave: Option<OwnedFd>,
}

/// Lets go of the launcher's standard descriptors, so that a pipe ends when the command closes it. `None`: there is nothing
/// left to go on with, and the reason has been told where that was possible.
fn settle(control: OwnedFd, slave: Option<OwnedFd>, asked: Option<OwnedFd>) -> Option<(Kept, Option<OwnedFd>)> {
    let children = match stdio_to_null()
        .and_then(|()| signal::descriptor(&SignalSet::of(&[Signal::CHILD])).during(Step::Signals, ""))
    {
        Ok(children) => children,
        Err(failure) => {
            give_up(&control, failure);
            return None;
        }
    };
    let (has_slave, has_asked) = (slave.is_some(), asked.is_some());
    let mut keep = vec![control, children];
    keep.extend(slave);
    keep.extend(asked);
    let mut kept = process::keep_only(keep).ok()?.into_iter();
    let (control, children) = (kept.next()?, kept.next()?);
    let slave = if has_slave { kept.next() } else { None };
    let asked = if has_asked { kept.next() } else { None };
    Some((Kept { control, children, _slave: slave }, asked))
}

fn stdio_to_null() -> Result<(), Failure> {
    let null = file::open_device(Path::new("/dev/null"), Blocking::Yes).during(Step::Stdio, "/dev/null")?;
    for place in Stdio::ALL {
        process::set_stdio(place, &null).during(Step::Stdio, "")?;
    }
    Ok(())
}

/// Reaps and obeys until the command ends or the launcher is gone. The kernel ends everything else with this process.
fn serve(command: Pid, kept: &Kept) -> i32 {
    loop {
        match reap(command, &kept.control) {
            Ok(None) => {}
            Ok(Some(last)) => {
                // Whatever the command left behind ends before its status is told.
                let _ = signal::send(Target::Everyone, Signal::KILL.as_raw());
                while matches!(process::wait_any(), Ok(true)) {}
                let _ = socket::send(&kept.control, &last.encode(), &[]);
                return 0;
            }
            Err(_) => return 125,
        }
        let fds = [(kept.control.as_fd(), Interest::Read), (kept.children.as_fd(), Interest::Read)];
        let Ok(ready) = event::wait(&fds, None) else { return 125 };
        if ready.get(1) == Some(&true) {
            while matches!(signal::take(&kept.children), Ok(Some(_))) {}
        }
        if ready.first() == Some(&true) && !obey(command, &kept.control) {
            return 125;
        }
    }
}

/// Collects what changed; the last message when the command ended.
fn reap(command: Pid, control: &OwnedFd) -> Result<Option<FromInit>, SysError> {
    let mut last = None;
    while let Some((pid, change)) = process::take_change()? {
        if pid != command {
            continue;
        }
        let message = match change {
            Change::Exited(status) => FromInit::Exited(status),
            Change::Signaled(signal) => FromInit::Signaled(signal),
            Change::Stopped(signal) => FromInit::Stopped(signal),
            Change::Continued => FromInit::Continued,
        };
        if matches!(change, Change::Exited(_) | Change::Signaled(_)) {
            last = Some(message);
        } else {
            socket::send(control, &message.encode(), &[])?;
        }
    }
    Ok(last)
}

/// Does what the launcher says; `false` when it is gone.
fn obey(command: Pid, control: &OwnedFd) -> bool {
    let word = match socket::receive(control, Blocking::No) {
        Ok(None) => return true,
        Ok(Some(message)) => ToInit::decode(&message.bytes),
        Err(_) => None,
    };
    match word {
        Some(ToInit::Signal { group, signal }) => {
            let target = if group { Target::Group(command) } else { Target::Process(command) };
            let _ = signal::send(target, signal);
            true
        }
        Some(ToInit::Dial { id, port }) => {
            let dialed = doors::dial(port);
            let fds: Vec<BorrowedFd<'_>> = dialed.iter().map(AsFd::as_fd).collect();
            let result = dialed.as_ref().map(drop).map_err(|errno| *errno);
            socket::send(control, &FromInit::Dialed { id, result }.encode(), &fds).is_ok()
        }
        Some(ToInit::Mapped) => true,
        None => false,
    }
}

/// Blocks everything for process 1 and the command's process, until the latter has its own mask.
fn block_all() -> Result<(), SysError> {
    signal::change_mask(Mask::Block, &SignalSet::all()).map(drop)
}
