//! Why a sandbox could not be built.

use ringfence_sys::{Errno, SysError};
use std::fmt;
use std::path::PathBuf;

/// A step of building the walls, inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Standard input, output and error.
    Stdio,
    /// User and group numbers.
    Ids,
    /// The death of the launcher, the name, and what other processes may see of process 1.
    Process,
    /// The second lock against nested user namespaces.
    UserNamespaceLock,
    /// Loopback and routes.
    Network,
    /// A listener.
    Door,
    /// What is to be shown elsewhere.
    Source,
    /// Generated files and covers.
    Generated,
    /// The whole tree read-only.
    Freeze,
    /// A temporary file system.
    Tmpfs,
    /// A folder or file shown somewhere.
    Bind,
    /// Something hidden.
    Cover,
    /// `/proc`.
    Proc,
    /// `/dev`.
    Dev,
    /// A folder.
    MakeDir,
    /// A generated file.
    File,
    /// A symbolic link.
    Symlink,
    /// A mount of ours made read-only.
    Seal,
    /// The pseudoterminal.
    Terminal,
    /// The command's process.
    Fork,
    /// A limit.
    Limit,
    /// The keyring.
    Keyring,
    /// The working directory.
    WorkingDir,
    /// Capabilities.
    Capabilities,
    /// Landlock.
    Landlock,
    /// The system call filter.
    Seccomp,
    /// The guard over connect(2).
    Guard,
    /// Signal masks and dispositions.
    Signals,
    /// The proof itself, not one of its rows.
    Proof,
    /// Messages between our own processes.
    Message,
    /// The program.
    Execute,
}

impl Step {
    const ALL: [Self; 31] = [
        Self::Stdio,
        Self::Ids,
        Self::Process,
        Self::UserNamespaceLock,
        Self::Network,
        Self::Door,
        Self::Source,
        Self::Generated,
        Self::Freeze,
        Self::Tmpfs,
        Self::Bind,
        Self::Cover,
        Self::Proc,
        Self::Dev,
        Self::MakeDir,
        Self::File,
        Self::Symlink,
        Self::Seal,
        Self::Terminal,
        Self::Fork,
        Self::Limit,
        Self::Keyring,
        Self::WorkingDir,
        Self::Capabilities,
        Self::Landlock,
        Self::Seccomp,
        Self::Guard,
        Self::Signals,
        Self::Proof,
        Self::Message,
        Self::Execute,
    ];

    pub(crate) fn code(self) -> u8 {
        Self::ALL.iter().position(|s| *s == self).and_then(|n| u8::try_from(n).ok()).unwrap_or(u8::MAX)
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    fn text(self) -> &'static str {
        match self {
            Self::Stdio => "set up standard input and output",
            Self::Ids => "map user and group numbers",
            Self::Process => "set up process 1",
            Self::UserNamespaceLock => "lock nested user namespaces",
            Self::Network => "set up the loopback",
            Self::Door => "listen inside on",
            Self::Source => "open",
            Self::Generated => "make generated files",
            Self::Freeze => "make the tree read-only",
            Self::Tmpfs => "mount a temporary file system on",
            Self::Bind => "show",
            Self::Cover => "hide",
            Self::Proc => "mount",
            Self::Dev => "make",
            Self::MakeDir => "make folder",
            Self::File => "put a generated file on",
            Self::Symlink => "make link",
            Self::Seal => "make read-only",
            Self::Terminal => "open a terminal inside",
            Self::Fork => "start the command's process",
            Self::Limit => "set a limit",
            Self::Keyring => "make a fresh keyring",
            Self::WorkingDir => "enter working directory",
            Self::Capabilities => "drop capabilities",
            Self::Landlock => "set Landlock rules",
            Self::Seccomp => "install the system call filter",
            Self::Guard => "starting the guard over connect",
            Self::Signals => "set up signals",
            Self::Proof => "prove the walls",
            Self::Message => "talk to process 1",
            Self::Execute => "execute",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What a row of the proof found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Surprise {
    /// It must fail and worked.
    Worked,
    /// It must work and failed with this number.
    Failed(Errno),
    /// Something of it arrived at a listener outside.
    Arrived,
}

impl fmt::Display for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worked => f.write_str("it worked and must fail"),
            Self::Failed(errno) => {
                let error = std::io::Error::from(*errno).to_string();
                write!(f, "it must work: {}", error.split(" (os error").next().unwrap_or_default())
            }
            Self::Arrived => f.write_str("it arrived outside"),
        }
    }
}

/// Why there is no sandbox. Every process that was started is gone again when it is returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnforceError {
    /// The process that calls has more than one thread.
    #[error("the launcher has several threads")]
    Threads,
    /// There is no `/proc` on the host, or it is not a proc file system.
    #[error("the host has no usable /proc")]
    NoProc {
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// User namespaces are forbidden.
    #[error("this host forbids new user namespaces")]
    UserNamespace {
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A fresh `/proc` may not be mounted, because the host's own is partly covered, as in many containers.
    #[error("this host forbids mounting a fresh /proc")]
    ProcMount {
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A disk, a quota or a table of the kernel is full.
    #[error("no space left to {step} `{}`", path.display())]
    Full {
        /// What was done.
        step: Step,
        /// Where; empty when no path is concerned.
        path: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A step on the host before anything else.
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        /// The path.
        path: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// The control group could not be made.
    #[error("cannot make a control group in `{}`", path.display())]
    ControlGroup {
        /// The delegated folder.
        path: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// The working directory cannot be entered from inside.
    #[error("working directory `{}` cannot be entered inside", path.display())]
    WorkingDir {
        /// The directory.
        path: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A folder or link would have to be made in a file system that is not ours.
    #[error("`{}` does not exist, and making it would change the host", path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
    },
    /// Another step inside failed.
    #[error("cannot {step} `{}`", path.display())]
    Step {
        /// What was done.
        step: Step,
        /// Where, or a port or another word; may be empty.
        path: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A step of the launcher.
    #[error("cannot {what}")]
    Launch {
        /// What was done.
        what: &'static str,
        /// The call that failed.
        #[source]
        source: SysError,
    },
    /// A standard descriptor through which the command could reach past the walls.
    #[error("{name} is {what}, which lies outside of the walls")]
    Descriptor {
        /// Which.
        name: &'static str,
        /// What it is.
        what: &'static str,
    },
    /// A row of the proof came out wrong: a wall does not hold, or the command could not work.
    #[error("the walls are not proved: {row}: {surprise}")]
    Unproved {
        /// Name of the row.
        row: String,
        /// What came of it.
        surprise: Surprise,
    },
    /// Process 1 or the command's process ended before the program was executed.
    #[error("the sandbox ended while it was built")]
    Ended,
    /// The sandbox was stopped by a signal while it was built.
    #[error("interrupted by signal {0} while the walls were built")]
    Interrupted(i32),
    /// There is no such program.
    #[error("program `{}` not found", program.display())]
    NotFound {
        /// As it was named.
        program: PathBuf,
    },
    /// The program is there and cannot be executed.
    #[error("program `{}` cannot be executed", program.display())]
    NotExecutable {
        /// As it was found.
        program: PathBuf,
        /// The call that failed.
        #[source]
        source: SysError,
    },
}

impl EnforceError {
    /// The exit status that a shell's user expects: 127 not found, 126 not executable, 125 everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Interrupted(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(125),
            _ => 125,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Threads => "start the sandbox before any thread, or from a helper process",
            Self::NoProc { .. } => "mount proc on /proc",
            Self::UserNamespace { source } if source.errno == Errno::NOSPC || source.errno == Errno::USERS => {
                "raise user.max_user_namespaces (sysctl), or leave the outer sandbox, which allows no nested ones"
            }
            Self::UserNamespace { .. } => {
                "allow unprivileged user namespaces: an AppArmor profile for this program, kernel.unprivileged_userns_clone=1, \
                 or a container whose seccomp profile permits clone3; ringfence doctor names the cause"
            }
            Self::ProcMount { .. } => {
                "in a container: --security-opt systempaths=unconfined (Docker, Podman), so that /proc is not partly covered"
            }
            Self::Full { .. } => "free some space or raise the quota",
            Self::WorkingDir { .. } => "the working directory must exist and be readable by the policy",
            Self::Descriptor { .. } => "pass a file, a pipe or a connected stream socket: < /dev/null, or | cat",
            Self::NotOurs { .. } => "make it on the host first",
            Self::Unproved { .. } => "the program was not started; report this with the output of ringfence doctor",
            Self::NotExecutable { source, .. } if source.errno == Errno::NOENT => {
                "the interpreter that its first line or its ELF header names is not there inside"
            }
            Self::NotFound { .. } => "PATH is the one of the sandbox; ringfence explain shows what is visible",
            _ => return None,
        })
    }
}
