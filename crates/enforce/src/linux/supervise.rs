//! A sandbox in which the program runs, as its launcher sees it.

use super::error::EnforceError;
use super::launch::Signals;
use super::message::{FromInit, Listens, ToInit};
use super::terminal::{Input, UserTerminal};
use ringfence_sys::clone::Child;
use ringfence_sys::event::{self, Interest, Poller, Ready, Wants};
use ringfence_sys::file::{self, Blocking};
use ringfence_sys::limit::Group;
use ringfence_sys::pidfd::{self, Ended};
use ringfence_sys::process;
use ringfence_sys::pty;
use ringfence_sys::signal::{self, Arrived, Mask, Sender, Signal, SignalSet, Target};
use ringfence_sys::{Errno, SysError, socket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A listener inside, held outside.
#[derive(Debug)]
pub struct Listener {
    /// What it is for.
    pub listens: Listens,
    /// Its port.
    pub port: u16,
    /// The socket; non-blocking.
    pub fd: OwnedFd,
}

/// What the proof took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// How many rows were tried.
    pub rows: usize,
    /// Microseconds inside.
    pub micros: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program's own status.
    Exited(u8),
    /// A signal ended the program.
    Signaled(i32),
    /// The wall time was over; everything inside was killed.
    TimeOut,
    /// Process 1 ended before the program, and everything inside with it.
    Collapsed(Ended),
}

impl Outcome {
    /// The status to exit with: the program's own, 128 and the number of the signal, 124 for the wall time (as
    /// timeout(1) has it), 125 for a sandbox that collapsed.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Exited(status) => status,
            Self::Signaled(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX),
            Self::TimeOut => 124,
            Self::Collapsed(_) => 125,
        }
    }
}

/// Names a connection that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DialId(u32);

/// What happened in a [`Running::turn`].
#[derive(Debug)]
pub enum Happened {
    /// A connection that was asked for, or why there is none.
    Dialed {
        /// Which.
        id: DialId,
        /// A non-blocking TCP socket, writable when the connection is made.
        connection: Result<OwnedFd, Errno>,
    },
    /// The command was stopped, we stopped with it, and both run again.
    Stopped,
    /// The run ended. Nothing happens after this.
    Finished(Outcome),
}

/// What a turn came to.
#[derive(Debug, Default)]
pub struct Turn {
    /// What happened, in order.
    pub happened: Vec<Happened>,
    /// Whether there is more to do at once; if not, wait for the descriptor or the deadline.
    pub more: bool,
}

/// What the launcher hands over.
pub(crate) struct Parts {
    pub(crate) init: Child,
    pub(crate) control: OwnedFd,
    pub(crate) early: Vec<FromInit>,
    pub(crate) signals: Signals,
    pub(crate) terminal: Option<(UserTerminal, OwnedFd)>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) ipv6: bool,
    pub(crate) vanished: u32,
    pub(crate) proved: Option<Proved>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) group: Option<Group>,
}

/// Bytes on their way between the terminals; more are taken only when these are gone.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl Buffer {
    fn is_empty(&self) -> bool {
        self.sent >= self.bytes.len()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<usize, Errno> {
        self.sent = 0;
        self.bytes.resize(16 * 1024, 0);
        let got = read(&mut self.bytes);
        self.bytes.truncate(*got.as_ref().unwrap_or(&0));
        got
    }
}

/// The user's terminal and the private one.
#[derive(Debug)]
struct Relay {
    user: UserTerminal,
    master: OwnedFd,
    to_user: Buffer,
    to_inside: Buffer,
    user_wants: Option<Wants>,
    master_wants: Option<Wants>,
    user_gone: bool,
    master_gone: bool,
}

const CONTROL: u64 = 0;
const INIT: u64 = 1;
const SIGNALS: u64 = 2;
const MASTER: u64 = 3;
const USER: u64 = 4;

/// How often a run in the background looks whether it is in the foreground again: a shell tells that with no signal when
/// the job was not stopped.
const FOREGROUND_CHECK: Duration = Duration::from_millis(300);

/// A sandbox in which the program has been executed. It is one descriptor for an event loop: when that is readable, or
/// the [`deadline`](Running::deadline) passes, [`turn`](Running::turn) does what is due without waiting. Dropping it kills
/// everything inside and puts the terminal and the signal mask back.
#[derive(Debug)]
pub struct Running {
    relay: Option<Relay>,
    poller: Poller,
    init: Child,
    control: OwnedFd,
    signals: Signals,
    listeners: Vec<Listener>,
    ipv6: bool,
    vanished: u32,
    proved: Option<Proved>,
    deadline: Option<Instant>,
    timed_out: bool,
    next_dial: u32,
    /// The command's end, as process 1 told it.
    ended: Option<Outcome>,
    control_open: bool,
    collected: bool,
    finished: Option<Outcome>,
    _group: Option<Group>,
}

fn supervise(source: SysError) -> EnforceError {
    EnforceError::Launch { what: "supervise the sandbox", source }
}

impl Running {
    pub(crate) fn new(parts: Parts) -> Result<Self, EnforceError> {
        let relay = parts.terminal.map(|(mut user, master)| {
            if user.input == Input::Always {
                user.engage();
            }
            Relay {
                user,
                master,
                to_user: Buffer::default(),
                to_inside: Buffer::default(),
                user_wants: None,
                master_wants: None,
                user_gone: false,
                master_gone: false,
            }
        });
        let poller = Poller::new().map_err(supervise)?;
        let mut running = Self {
            relay,
            poller,
            init: parts.init,
            control: parts.control,
            signals: parts.signals,
            listeners: parts.listeners,
            ipv6: parts.ipv6,
            vanished: parts.vanished,
            proved: parts.proved,
            deadline: parts.deadline,
            timed_out: false,
            next_dial: 0,
            ended: None,
            control_open: true,
            collected: false,
            finished: None,
            _group: parts.group,
        };
        running.poller.add(&running.control, CONTROL, Wants::READ).map_err(supervise)?;
        running.poller.add(&running.init.pidfd, INIT, Wants::READ).map_err(supervise)?;
        running.poller.add(&running.signals.fd, SIGNALS, Wants::READ).map_err(supervise)?;
        running.update_wants().map_err(supervise)?;
        for message in parts.early {
            running.on_command(&message).map_err(supervise)?;
        }
        Ok(running)
    }

    /// The listeners that process 1 made; can be taken once.
    pub fn take_listeners(&mut self) -> Vec<Listener> {
        std::mem::take(&mut self.listeners)
    }

    /// Whether IPv6 works inside.
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// How many names that were to be hidden had gone from the host between the plan and the mounts.
    pub fn vanished(&self) -> u32 {
        self.vanished
    }

    /// What the proof took; `None` when it was off.
    pub fn proved(&self) -> Option<Proved> {
        self.proved
    }

    /// Asks for a connection to a server on the loopback inside; it comes as [`Happened::Dialed`].
    ///
    /// # Errors
    /// Process 1 is gone.
    pub fn dial(&mut self, port: u16) -> Result<DialId, EnforceError> {
        let id = self.next_dial;
        self.next_dial = self.next_dial.wrapping_add(1);
        socket::send(&self.control, &ToInit::Dial { id, port }.encode(), &[]).map_err(supervise)?;
        Ok(DialId(id))
    }

    /// Sends a signal to the command itself.
    pub fn signal(&mut self, signal: i32) {
        self.tell(false, signal);
    }

    /// Kills everything inside; the end comes from [`turn`](Running::turn) as always.
    pub fn kill(&mut self) {
        let _ = pidfd::signal(&self.init.pidfd, Signal::KILL);
    }

    /// When [`turn`](Running::turn) is due although the descriptor is not readable.
    pub fn deadline(&self) -> Option<Instant> {
        let check =
            self.relay.as_ref().filter(|relay| relay.in_background()).map(|_| Instant::now() + FOREGROUND_CHECK);
        match (self.deadline, check) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs to the end without an event loop.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn wait_blocking(mut self) -> Result<Outcome, EnforceError> {
        loop {
            for happened in self.turn()?.happened {
                if let Happened::Finished(outcome) = happened {
                    return Ok(outcome);
                }
            }
            let limit = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
            event::wait(&[(self.poller.as_fd(), Interest::Read)], limit).map_err(supervise)?;
        }
    }

    /// Does what is due, and never waits, but for a stop: when the command is stopped, this process stops with it.
    ///
    /// # Errors
    /// The kernel refuses a call; drop the sandbox then.
    pub fn turn(&mut self) -> Result<Turn, EnforceError> {
        // Enough for a burst, and few enough to leave time for the others of an event loop.
        const ROUNDS: usize = 8;
        let mut turn = Turn::default();
        self.on_time();
        for _ in 0..ROUNDS {
            if self.finished.is_some() {
                return Ok(turn);
            }
            let ready = self.poller.ready().map_err(supervise)?;
            if ready.is_empty() {
                return Ok(turn);
            }
            for event in ready {
                self.on_ready(event, &mut turn.happened).map_err(supervise)?;
            }
            if let Some(outcome) = self.finish() {
                self.finished = Some(outcome);
                turn.happened.push(Happened::Finished(outcome));
                return Ok(turn);
            }
            self.update_wants().map_err(supervise)?;
        }
        turn.more = true;
        Ok(turn)
    }

    fn on_time(&mut self) {
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            self.deadline = None;
            self.timed_out = true;
            self.kill();
        }
        if let Some(relay) = &mut self.relay
            && relay.in_background()
        {
            relay.user.engage();
            let _ = self.update_wants();
        }
    }

    fn on_ready(&mut self, event: Ready, happened: &mut Vec<Happened>) -> Result<(), SysError> {
        match event.token {
            CONTROL => self.on_control(happened),
            INIT => self.on_init_end(),
            SIGNALS => self.on_signals(),
            token => {
                if let Some(relay) = &mut self.relay {
                    relay.on_ready(token == MASTER, event, &self.poller)?;
                }
                Ok(())
            }
        }
    }

    fn on_control(&mut self, happened: &mut Vec<Happened>) -> Result<(), SysError> {
        if !self.control_open {
            return Ok(());
        }
        while let Some(message) = socket::receive(&self.control, Blocking::No)? {
            if message.bytes.is_empty() {
                // Process 1 is going; its descriptor says when it is gone.
                self.control_open = false;
                return self.poller.remove(&self.control);
            }
            match FromInit::decode(&message.bytes) {
                Some(FromInit::Dialed { id, result }) => {
                    let fd = message.fds.into_iter().next();
                    let connection = result.and_then(|()| fd.ok_or(Errno::BADF));
                    happened.push(Happened::Dialed { id: DialId(id), connection });
                }
                Some(message) => {
                    self.on_command(&message)?;
                    if matches!(message, FromInit::Stopped(_)) {
                        happened.push(Happened::Stopped);
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    fn on_command(&mut self, message: &FromInit) -> Result<(), SysError> {
        match message {
            FromInit::Stopped(signal) => self.on_stopped(*signal)?,
            FromInit::Exited(status) => {
                self.ended = Some(Outcome::Exited(u8::try_from(status & 0xff).unwrap_or(u8::MAX)));
            }
            FromInit::Signaled(signal) => self.ended = Some(Outcome::Signaled(*signal)),
            FromInit::Continued
            | FromInit::Listeners(_)
            | FromInit::Ready { .. }
            | FromInit::Failed(_)
            | FromInit::Dialed { .. } => {}
        }
        Ok(())
    }

    fn on_init_end(&mut self) -> Result<(), SysError> {
        let Some(ended) = pidfd::collect(&self.init.pidfd, Blocking::No)? else { return Ok(()) };
        self.collected = true;
        self.poller.remove(&self.init.pidfd)?;
        // Its last words may still wait to be read.
        let mut happened = Vec::new();
        let _ = self.on_control(&mut happened);
        if self.ended.is_none() {
            self.ended = Some(Outcome::Collapsed(ended));
        }
        Ok(())
    }

    /// The outcome, when all is over: process 1 is gone, and with it everything inside.
    fn finish(&mut self) -> Option<Outcome> {
        if !self.collected {
            return None;
        }
        let ended = self.ended?;
        if let Some(relay) = &mut self.relay {
            relay.drain();
            relay.user.release();
        }
        Some(if self.timed_out { Outcome::TimeOut } else { ended })
    }

    fn on_signals(&mut self) -> Result<(), SysError> {
        while let Some(Arrived { signal, sender }) = signal::take(&self.signals.fd)? {
            if signal == Signal::WINCH.as_raw()
                && let Some(relay) = &self.relay
            {
                relay.user.copy_size(&relay.master);
                continue;
            }
            if signal == Signal::CONT.as_raw() {
                self.on_continued();
                continue;
            }
            // What a terminal makes is for all processes of the group, what a process sends for the one that it named.
            self.tell(sender == Sender::Kernel, signal);
        }
        Ok(())
    }

    fn on_continued(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.user.copy_size(&relay.master);
            if relay.user.input == Input::Always {
                relay.user.engage();
            }
        }
        self.tell(true, Signal::CONT.as_raw());
    }

    /// The command is stopped: stop as well, so that the shell that started us takes over. Where nobody could continue us
    /// (no shell with job control above) the kernel ignores the signal, and the command goes on.
    fn on_stopped(&mut self, stopped_by: i32) -> Result<(), SysError> {
        let stop = Signal::TSTP;
        let mut target = Target::Process(process::own_pid());
        if let Some(relay) = &mut self.relay {
            relay.user.release();
            // It was typed at the private terminal; the user's own would have stopped the whole pipeline.
            if stopped_by == stop.as_raw() {
                target = Target::OwnGroup;
            }
        }
        let set = SignalSet::of(&[stop]);
        signal::send(target, stop.as_raw())?;
        signal::change_mask(Mask::Unblock, &set)?;
        signal::change_mask(Mask::Block, &set)?;
        self.on_continued();
        Ok(())
    }

    fn tell(&self, group: bool, signal: i32) {
        // When process 1 is gone the end of the run is on its way.
        let _ = socket::send(&self.control, &ToInit::Signal { group, signal }.encode(), &[]);
    }

    fn update_wants(&mut self) -> Result<(), SysError> {
        match &mut self.relay {
            Some(relay) => relay.update_wants(&self.poller),
            None => Ok(()),
        }
    }
}

impl Relay {
    /// Whether keys are wanted and somebody else has them.
    fn in_background(&self) -> bool {
        self.user.input == Input::Always && !self.user.is_engaged() && !self.user_gone
    }

    fn on_ready(&mut self, is_master: bool, event: Ready, poller: &Poller) -> Result<(), SysError> {
        if is_master {
            if event.read || event.closed {
                self.read_master();
            }
            if event.write {
                self.write_inside();
            }
        } else {
            if event.write {
                self.write_user();
            }
            if event.read && self.user.is_engaged() {
                self.read_user();
            }
            if event.closed && !event.read {
                self.user_gone = true;
            }
        }
        if self.user_gone && !self.master_gone {
            // The terminal is gone, so the private one hangs up: the command gets SIGHUP from the kernel, as it would have.
            self.master_gone = true;
            let _ = poller.remove(&self.master);
            self.master_wants = None;
            self.hang_up();
        }
        Ok(())
    }

    /// Takes what the command wrote and passes it on at once.
    fn read_master(&mut self) {
        if !self.to_user.is_empty() {
            return;
        }
        let master = &self.master;
        match self.to_user.fill(|buffer| file::read(master, buffer)) {
            // EIO: the last slave is closed.
            Ok(0) | Err(Errno::IO) => self.master_gone = true,
            Ok(_) => {
                if self.user.input == Input::WhenRaw {
                    self.follow_modes();
                }
                self.write_user();
            }
            Err(_) => {}
        }
    }

    fn follow_modes(&mut self) {
        match pty::modes(&self.master) {
            Ok(modes) if !modes.is_canonical() => self.user.engage(),
            _ => self.user.release(),
        }
    }

    fn write_user(&mut self) {
        while !self.to_user.is_empty() {
            match self.user.write(self.to_user.rest()) {
                Ok(n) => self.to_user.sent += n,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.user_gone = true;
                    self.to_user.clear();
                }
            }
        }
        self.to_user.clear();
    }

    fn read_user(&mut self) {
        if !self.to_inside.is_empty() {
            return;
        }
        let user = &self.user;
        match self.to_inside.fill(|buffer| user.read(buffer)) {
            Ok(0) => self.user_gone = true,
            Ok(_) => self.write_inside(),
            Err(Errno::AGAIN) => {}
            // EIO: we are in the background, or the terminal hung up.
            Err(_) => {
                if self.user.in_foreground() {
                    self.user_gone = true;
                } else {
                    self.user.release();
                }
            }
        }
    }

    fn write_inside(&mut self) {
        while !self.to_inside.is_empty() {
            match file::write(&self.master, self.to_inside.rest()) {
                Ok(n) => self.to_inside.sent += n,
                Err(Errno::AGAIN) => return,
                Err(_) => self.to_inside.clear(),
            }
        }
        self.to_inside.clear();
    }

    fn hang_up(&mut self) {
        if let Ok(null) = file::open_device(std::path::Path::new("/dev/null"), Blocking::Yes) {
            self.master = null;
        }
    }

    /// What is still in the private terminal after everything inside is gone.
    fn drain(&mut self) {
        loop {
            while !self.to_user.is_empty() && !self.user_gone {
                self.write_user();
                if !self.to_user.is_empty() {
                    let _ = event::wait(&[(self.user.as_fd(), Interest::Write)], None);
                }
            }
            if self.user_gone || self.master_gone {
                return;
            }
            let ready = event::wait(&[(self.master.as_fd(), Interest::Read)], Some(Duration::ZERO));
            if !ready.is_ok_and(|ready| ready.first() == Some(&true)) {
                return;
            }
            self.read_master();
        }
    }

    /// Waits for what can be used: output only while there is room, keys only while they are ours.
    fn update_wants(&mut self, poller: &Poller) -> Result<(), SysError> {
        let master =
            (!self.master_gone).then(|| Wants { read: self.to_user.is_empty(), write: !self.to_inside.is_empty() });
        change(poller, &self.master, MASTER, &mut self.master_wants, master)?;
        let keys = self.user.is_engaged() && self.to_inside.is_empty();
        let user = Wants { read: keys, write: !self.to_user.is_empty() };
        let user = (!self.user_gone && user != Wants::default()).then_some(user);
        change(poller, self.user.as_fd(), USER, &mut self.user_wants, user)
    }
}

fn change(
    poller: &Poller,
    fd: impl AsFd,
    token: u64,
    now: &mut Option<Wants>,
    wanted: Option<Wants>,
) -> Result<(), SysError> {
    match (*now, wanted) {
        (None, Some(wants)) => poller.add(fd, token, wants)?,
        (Some(_), None) => poller.remove(fd)?,
        (Some(old), Some(wants)) if old != wants => poller.change(fd, token, wants)?,
        _ => {}
    }
    *now = wanted;
    Ok(())
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.collected {
            self.kill();
            let _ = pidfd::collect(&self.init.pidfd, Blocking::Yes);
        }
    }
}
