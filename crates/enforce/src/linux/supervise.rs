//! A sandbox in which the program runs, as its launcher sees it.

use super::error::EnforceError;
use super::launch::Signals;
use super::message::{FromInit, Listens, ToInit};
use super::relay::{MASTER, Relay};
use super::terminal::{Input, UserTerminal};
use ringfence_sys::clone::Child;
use ringfence_sys::event::{self, Interest, Poller, Ready, Wants};
use ringfence_sys::file::Blocking;
use ringfence_sys::limit::Group;
use ringfence_sys::pidfd::{self, Ended};
use ringfence_sys::process;
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

const CONTROL: u64 = 0;
const INIT: u64 = 1;
const SIGNALS: u64 = 2;

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
        let relay = parts.terminal.map(|(user, master)| Relay::new(user, master));
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
