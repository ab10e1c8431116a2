//! The voice of the program, in one place. Standard output gets what was asked for and nothing else; everything of ours
//! goes to standard error.

pub(crate) mod diagnostic;
pub(crate) mod explanation;
pub(crate) mod lines;
pub(crate) mod session;
pub(crate) mod table;

use crate::exit::Exit;
use std::io::{self, BufWriter, Write};

/// Writes data that was asked for to standard output. A reader that is gone (`| head`) is not an error.
pub(crate) fn stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Exit {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"));
            Exit::Refused
        }
    }
}

/// Writes text to standard error in one piece, so that it does not mix with the command's. Where nobody can be told,
/// nothing can be done about it.
pub(crate) fn stderr(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// One line of ours.
pub(crate) fn complain(message: &str) {
    stderr(&format!("ringfence: {message}\n"));
}
