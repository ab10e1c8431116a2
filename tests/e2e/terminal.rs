//! Runs a command on a pseudo-terminal and types at it.

use crate::run::{Ran, kill_group, status_number};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Something that happens at the terminal, after a delay.
#[derive(Debug, Clone)]
pub struct Key {
    pub after: Duration,
    pub text: String,
}

/// The two ends of a terminal of 24 rows and 80 columns.
pub struct Terminal {
    master: File,
    slave: File,
}

/// What the terminal saw.
pub struct Seen {
    pub ran: Ran,
    /// Bytes that lie in the input queue afterwards, as if somebody had typed them.
    pub pending: Vec<u8>,
    /// Whether the modes of the terminal are as they were.
    pub modes_kept: bool,
}

impl Terminal {
    /// Opens a terminal that belongs to the given user.
    pub fn open(owner: (u32, u32)) -> std::io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(ptsname(&master, Vec::new())?.to_string_lossy().into_owned());
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
            .open(&path)?;
        let _ = std::os::unix::fs::chown(&path, Some(owner.0), Some(owner.1));
        tcsetwinsize(&master, size(24, 80))?;
        Ok(Self { master: master.into(), slave })
    }

    /// Runs the command with the terminal as its controlling terminal and all three streams.
    pub fn run(mut self, command: &Command, keys: &[Key], limit: Duration) -> std::io::Result<Seen> {
        // setsid(1) makes the session and takes the terminal, so that no code of ours runs between fork and exec.
        let mut all = Command::new("/usr/bin/setsid");
        all.arg("--ctty").arg(command.get_program()).args(command.get_args());
        all.env_clear().envs(command.get_envs().filter_map(|(k, v)| v.map(|v| (k, v))));
        all.stdin(self.slave.try_clone()?).stdout(self.slave.try_clone()?).stderr(self.slave.try_clone()?);
        let before = tcgetattr(&self.slave)?;
        let start = Instant::now();
        // Not a group leader, so that setsid(1) executes the command itself and need not fork.
        let mut child = all.spawn()?;
        drop(all);
        let mut said = Vec::new();
        let mut keys = keys.iter();
        let mut key = keys.next();
        // The first key waits for the program to come up, too.
        let mut due = start + Duration::from_millis(1200) + key.map_or(Duration::ZERO, |k| k.after);
        let mut status = None;
        let mut timed_out = false;
        loop {
            let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
            let tick = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let ready = poll(&mut fds, Some(&tick)).unwrap_or(0) > 0 && fds[0].revents().contains(PollFlags::IN);
            if ready {
                let mut part = [0_u8; 65536];
                let n = self.master.read(&mut part).unwrap_or(0);
                said.extend_from_slice(&part[..n]);
            } else if status.is_some() {
                break;
            }
            if status.is_none() {
                status = child.try_wait()?.map(status_number);
            }
            if status.is_none() && start.elapsed() > limit {
                timed_out = true;
                kill_group(&child);
                status = Some(child.wait().map_or(-1, status_number));
            }
            if let Some(k) = key.filter(|_| Instant::now() >= due) {
                self.act(&k.text)?;
                key = keys.next();
                due = Instant::now() + key.map_or(Duration::ZERO, |k| k.after);
            }
        }
        let after = tcgetattr(&self.slave)?;
        let modes_kept = before.local_modes == after.local_modes
            && before.input_modes == after.input_modes
            && before.output_modes == after.output_modes;
        let out = String::from_utf8_lossy(&said).replace("\r\n", "\n");
        let ran = Ran { status: status.unwrap_or(-1), timed_out, out, took: start.elapsed(), ..Ran::default() };
        Ok(Seen { ran, pending: self.pending(), modes_kept })
    }

    fn act(&mut self, text: &str) -> std::io::Result<()> {
        if let Some(rows_columns) = text.strip_prefix("@resize ") {
            let mut n = rows_columns.split(' ').filter_map(|x| x.parse().ok());
            return Ok(tcsetwinsize(&self.master, size(n.next().unwrap_or(24), n.next().unwrap_or(80)))?);
        }
        self.master.write_all(text.as_bytes())
    }

    fn pending(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut fds = [PollFd::new(&self.slave, PollFlags::IN)];
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut fds, Some(&now)).unwrap_or(0) == 0 {
                return all;
            }
            let mut part = [0_u8; 4096];
            match self.slave.read(&mut part) {
                Ok(n @ 1..) => all.extend_from_slice(&part[..n]),
                _ => return all,
            }
        }
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
