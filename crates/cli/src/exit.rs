//! The exit statuses, in one table.

use std::process::ExitCode;

/// What the program returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The question was answered with yes, or the work was done.
    Success,
    /// The question was answered with no: `why` with a denial, `doctor` where the default wall cannot be built.
    No,
    /// The walls could not be built, the policy is wrong, or the arguments are; nothing ran.
    Refused,
    /// As a shell: the program was found but cannot be executed.
    CannotExecute,
    /// As a shell: the program was not found.
    NotFound,
    /// The command's own status; 128+n when signal n ended it.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::No => 1,
            Exit::Refused => 125,
            Exit::CannotExecute => 126,
            Exit::NotFound => 127,
            Exit::Command(status) => status,
        })
    }
}
