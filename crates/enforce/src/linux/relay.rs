//! Bytes between the user's terminal and the private one, each way only as fast as they are taken.

use super::terminal::{Input, UserTerminal};
use ringfence_sys::event::{self, Interest, Poller, Ready, Wants};
use ringfence_sys::file::{self, Blocking};
use ringfence_sys::{Errno, SysError, pty};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Token of the private terminal's master.
pub(crate) const MASTER: u64 = 3;
/// Token of the user's terminal.
pub(crate) const USER: u64 = 4;

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
pub(crate) struct Relay {
    pub(crate) user: UserTerminal,
    pub(crate) master: OwnedFd,
    to_user: Buffer,
    to_inside: Buffer,
    user_wants: Option<Wants>,
    master_wants: Option<Wants>,
    user_gone: bool,
    master_gone: bool,
}

impl Relay {
    /// Between these two; takes the keys at once where they are ours.
    pub(crate) fn new(mut user: UserTerminal, master: OwnedFd) -> Self {
        if user.input == Input::Always {
            user.engage();
        }
        Self {
            user,
            master,
            to_user: Buffer::default(),
            to_inside: Buffer::default(),
            user_wants: None,
            master_wants: None,
            user_gone: false,
            master_gone: false,
        }
    }

    /// Whether keys are wanted and somebody else has them.
    pub(crate) fn in_background(&self) -> bool {
        self.user.input == Input::Always && !self.user.is_engaged() && !self.user_gone
    }

    pub(crate) fn on_ready(&mut self, is_master: bool, event: Ready, poller: &Poller) -> Result<(), SysError> {
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
    pub(crate) fn drain(&mut self) {
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
    pub(crate) fn update_wants(&mut self, poller: &Poller) -> Result<(), SysError> {
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
