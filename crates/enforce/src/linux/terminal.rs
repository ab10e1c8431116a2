//! The user's terminal, for which a private one stands in.
//!
//! What is typed goes to the private terminal as it is, which is why the user's is in raw mode while the command is in
//! the foreground, and at no other time: not while it is stopped, not in the background, not after the end.

use super::init::TerminalWanted;
use ringfence_sys::file::{self, Blocking};
use ringfence_sys::process::Stdio;
use ringfence_sys::pty::{self, Modes, When};
use ringfence_sys::{Errno, SysError};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};

/// When typed keys are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Always, as standard input is the terminal.
    Always,
    /// Only while a program inside has its terminal in raw mode, such as a pager that reads its text from a pipe: other
    /// programs of the same pipeline may want the keys, too.
    WhenRaw,
}

/// The terminal and its settings before we came.
#[derive(Debug)]
struct Original {
    fd: OwnedFd,
    modes: Modes,
}

/// What is put back by a panic, which aborts the program without any destructor.
static ENGAGED: Mutex<Option<Arc<Original>>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The user's terminal.
#[derive(Debug)]
pub(crate) struct UserTerminal {
    original: Arc<Original>,
    places: Vec<Stdio>,
    pub(crate) input: Input,
    engaged: bool,
}

impl UserTerminal {
    /// The terminal behind the first standard descriptor that is one.
    pub(crate) fn find() -> Result<Option<Self>, SysError> {
        let is_terminal = |place: &Stdio| place.borrow().filter(|fd| pty::is_terminal(fd)).map(|fd| (*place, fd));
        let Some((first, fd)) = Stdio::ALL.iter().find_map(is_terminal) else { return Ok(None) };
        let device = pty::device(fd);
        let same = |place: &&Stdio| is_terminal(place).is_some_and(|(_, other)| pty::device(other) == device);
        let places = Stdio::ALL.iter().filter(same).copied().collect();
        let input = if first == Stdio::Input { Input::Always } else { Input::WhenRaw };
        let original = Original { fd: own_description(fd, first, device)?, modes: pty::modes(fd)? };
        Ok(Some(Self { original: Arc::new(original), places, input, engaged: false }))
    }

    pub(crate) fn wanted(&self) -> TerminalWanted {
        let size =
            pty::size(&self.original.fd).unwrap_or(pty::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 });
        // Line ends are made once: inside, unless the user's terminal goes on making them for others.
        let modes = match self.input {
            Input::Always => self.original.modes.clone(),
            Input::WhenRaw => self.original.modes.plain_output(),
        };
        TerminalWanted { places: self.places.clone(), modes, size }
    }

    pub(crate) fn is_engaged(&self) -> bool {
        self.engaged
    }

    pub(crate) fn in_foreground(&self) -> bool {
        pty::in_foreground(&self.original.fd)
    }

    /// Raw mode, if we are in the foreground.
    pub(crate) fn engage(&mut self) {
        if self.engaged || !self.in_foreground() {
            return;
        }
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore_all();
                previous(info);
            }));
        });
        if let Ok(mut slot) = ENGAGED.lock() {
            *slot = Some(Arc::clone(&self.original));
        }
        let modes = match self.input {
            Input::Always => self.original.modes.raw(),
            Input::WhenRaw => self.original.modes.raw_input(),
        };
        self.engaged = pty::set_modes(&self.original.fd, &modes, When::Drained).is_ok();
    }

    /// The settings that were there before us. Not when somebody else is in the foreground: then they are theirs.
    pub(crate) fn release(&mut self) {
        if !self.engaged {
            return;
        }
        self.engaged = false;
        if self.in_foreground() {
            let _ = pty::set_modes(&self.original.fd, &self.original.modes, When::Drained);
        }
        if let Ok(mut slot) = ENGAGED.lock() {
            *slot = None;
        }
    }

    /// Copies the size to the private terminal.
    pub(crate) fn copy_size(&self, master: &OwnedFd) {
        if let Ok(size) = pty::size(&self.original.fd) {
            let _ = pty::set_size(master, size);
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        file::read(&self.original.fd, buffer)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        file::write(&self.original.fd, bytes)
    }
}

impl AsFd for UserTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.original.fd.as_fd()
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        self.release();
    }
}

fn restore_all() {
    if let Ok(slot) = ENGAGED.try_lock()
        && let Some(original) = slot.as_ref()
    {
        let _ = pty::set_modes(&original.fd, &original.modes, When::Now);
    }
}

/// The terminal opened once more, so that waiting for it is not a property that the user's shell would share. A terminal
/// that was opened by another user cannot be opened again by its name, but `/dev/tty` can.
fn own_description(fd: BorrowedFd<'static>, place: Stdio, device: Option<u32>) -> Result<OwnedFd, SysError> {
    let number = match place {
        Stdio::Input => 0,
        Stdio::Output => 1,
        Stdio::Error => 2,
    };
    for path in [PathBuf::from(format!("/proc/self/fd/{number}")), Path::new("/dev/tty").to_owned()] {
        if let Ok(own) = file::open_device(&path, Blocking::No)
            && pty::device(&own) == device
        {
            return Ok(own);
        }
    }
    fd.try_clone_to_owned().map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::BADF, Errno::from_raw_os_error);
        SysError::new("fcntl", "F_DUPFD_CLOEXEC", errno)
    })
}
