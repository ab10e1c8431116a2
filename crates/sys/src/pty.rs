//! Terminals.

use crate::{Context, SysError};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
pub use rustix::termios::Winsize;
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Termios};
use std::path::Path;

/// Both ends of a pseudoterminal.
#[derive(Debug)]
pub struct Pty {
    /// The controlling end, non-blocking.
    pub master: OwnedFd,
    /// The end that a program takes for a terminal.
    pub slave: OwnedFd,
}

/// Opens a pair from this multiplexer (`/dev/pts/ptmx` of the wanted instance, see pts(4)). The slave is opened through
/// the master, so that no path leads to another instance.
///
/// # Errors
/// A call fails.
pub fn open(multiplexer: &Path) -> Result<Pty, SysError> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let master = rustix::fs::open(multiplexer, flags, Mode::empty()).at("open", || format!("{multiplexer:?}"))?;
    rustix::pty::unlockpt(&master).at("ioctl", || "TIOCSPTLCK".to_owned())?;
    let peer = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY | rustix::pty::OpenptFlags::CLOEXEC;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, peer).at("ioctl", || "TIOCGPTPEER".to_owned())?;
    Ok(Pty { master, slave })
}

/// Makes the terminal the controlling one of this session leader.
///
/// # Errors
/// ioctl_tty(2) `TIOCSCTTY` fails.
pub fn take_control(slave: impl AsFd) -> Result<(), SysError> {
    rustix::process::ioctl_tiocsctty(slave).at("ioctl", || "TIOCSCTTY".to_owned())
}

/// Whether it is a terminal.
pub fn is_terminal(fd: impl AsFd) -> bool {
    rustix::termios::isatty(fd)
}

/// The settings of a terminal.
#[derive(Debug, Clone)]
pub struct Modes(Termios);

impl Modes {
    /// The same, with every key passed on as it is (termios(3), raw mode).
    #[must_use]
    pub fn raw(&self) -> Self {
        let mut raw = self.0.clone();
        raw.make_raw();
        Self(raw)
    }

    /// The same, with every key passed on as it is, and output treated as before.
    #[must_use]
    pub fn raw_input(&self) -> Self {
        let mut raw = self.raw();
        raw.0.output_modes = self.0.output_modes;
        raw
    }

    /// The same, with output passed on as it is.
    #[must_use]
    pub fn plain_output(&self) -> Self {
        let mut plain = self.0.clone();
        plain.output_modes.remove(OutputModes::OPOST);
        Self(plain)
    }

    /// Whether lines are edited by the terminal.
    pub fn is_canonical(&self) -> bool {
        self.0.local_modes.contains(LocalModes::ICANON)
    }
}

/// The settings.
///
/// # Errors
/// It is not a terminal.
pub fn modes(fd: impl AsFd) -> Result<Modes, SysError> {
    rustix::termios::tcgetattr(fd).map(Modes).at("tcgetattr", String::new)
}

/// When settings take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// When what was written is out.
    Drained,
}

/// Changes the settings.
///
/// # Errors
/// tcsetattr(3) fails.
pub fn set_modes(fd: impl AsFd, modes: &Modes, when: When) -> Result<(), SysError> {
    let when = match when {
        When::Now => OptionalActions::Now,
        When::Drained => OptionalActions::Drain,
    };
    rustix::termios::tcsetattr(fd, when, &modes.0).at("tcsetattr", String::new)
}

/// The size.
///
/// # Errors
/// It is not a terminal.
pub fn size(fd: impl AsFd) -> Result<Winsize, SysError> {
    rustix::termios::tcgetwinsize(fd).at("ioctl", || "TIOCGWINSZ".to_owned())
}

/// Sets the size; the foreground group is told with `SIGWINCH`.
///
/// # Errors
/// ioctl_tty(2) fails.
pub fn set_size(fd: impl AsFd, size: Winsize) -> Result<(), SysError> {
    rustix::termios::tcsetwinsize(fd, size).at("ioctl", || "TIOCSWINSZ".to_owned())
}

/// The group in the foreground.
///
/// # Errors
/// It is not the controlling terminal.
pub fn foreground(fd: impl AsFd) -> Result<Pid, SysError> {
    rustix::termios::tcgetpgrp(fd).at("tcgetpgrp", String::new)
}

/// Whether this process's own group is in the foreground.
pub fn in_foreground(fd: impl AsFd) -> bool {
    foreground(fd).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Puts a group into the foreground.
///
/// # Errors
/// tcsetpgrp(3) fails.
pub fn set_foreground(fd: impl AsFd, group: Pid) -> Result<(), SysError> {
    rustix::termios::tcsetpgrp(fd, group).at("tcsetpgrp", || group.as_raw_nonzero().to_string())
}

/// The device number of the terminal behind a descriptor, the same for `/dev/tty` and for its real name
/// (ioctl_tty(2), `TIOCGDEV`).
pub fn device(fd: impl AsFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGDEV writes one unsigned int.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCGDEV as _, &raw mut number) };
    (done == 0).then_some(number)
}
