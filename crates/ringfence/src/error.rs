//! What can go wrong before the command runs. One variant per failing step; nothing is half-started by any of them.

use ringfence_dialect::{Diagnostic, codes};
use ringfence_enforce::EnforceError;
use ringfence_enforce::audit::AuditError;
use ringfence_enforce::probe::ProbeError;
use ringfence_enforce::store::StoreError;
use ringfence_plan::PlanError;
use ringfence_policy::HostPath;
use ringfence_policy::path_rule::PathError;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The working directory or the workspace.
    #[error("the run has no place to work in")]
    Place(#[from] PlaceError),
    /// A policy file.
    #[error("a policy file is not usable")]
    Source(#[from] SourceError),
    /// What the policy says. All problems of all files.
    #[error("the policy has mistakes")]
    Policy(Vec<Diagnostic>),
    /// The host cannot be described.
    #[error("this host cannot be described")]
    Probe(#[from] ProbeError),
    /// The policy cannot be enforced here. All reasons.
    #[error("the policy cannot be enforced here")]
    Plan(Vec<PlanError>),
    /// The walls could not be built or proved, or the program could not be executed.
    #[error("the walls could not be built")]
    Wall(#[from] EnforceError),
    /// The program is on the host, but the walls hide it.
    #[error("program `{}` not found", program.display())]
    Hidden {
        /// As it was named.
        program: PathBuf,
        /// Where it is on the host.
        found: HostPath,
    },
    /// The audit file.
    #[error("the audit file cannot be used")]
    Audit(#[source] AuditError),
    /// Ringfence's own files: private homes, trust.
    #[error("ringfence's own files cannot be used")]
    Store(#[from] StoreError),
    /// A folder of ours, which the command could make if it were missing, cannot be made first.
    #[error("cannot make `{path}`, which the command could make in its place")]
    OwnFolder {
        /// Which.
        path: HostPath,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is no repository policy to be trusted.
    #[error("no ringfence.toml from `{dir}` up to the repository's root")]
    NoProjectFile {
        /// Where the search began.
        dir: HostPath,
    },
    /// A port that was to be published is taken.
    #[error("port {port} of the host cannot be published")]
    Publish {
        /// Which.
        port: u16,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The network doors cannot be served.
    #[error("the network doors cannot be served")]
    Doors {
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// No program was named.
    #[error("no program was named")]
    NoCommand,
}

impl Error {
    /// The exit status that says so: 127 and 126 as a shell's, 125 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Wall(error) => error.exit_code(),
            Self::Hidden { .. } => 127,
            _ => 125,
        }
    }

    /// As it is shown.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::Place(error) => vec![error.diagnostic()],
            Self::Source(error) => vec![error.diagnostic()],
            Self::Policy(problems) => problems.clone(),
            Self::Probe(error) => {
                let code = match error {
                    ProbeError::NoProc | ProbeError::Proc { .. } => codes::BUILD,
                    _ => codes::WORKSPACE,
                };
                vec![Diagnostic::error(code, with_cause(error)).hint(error.hint())]
            }
            Self::Plan(errors) => errors.iter().map(plan_diagnostic).collect(),
            Self::Wall(error) => vec![wall_diagnostic(error)],
            Self::Hidden { found, .. } => vec![
                Diagnostic::error(codes::PROGRAM_MISSING, self.to_string())
                    .hint(format!("it is `{found}` on the host, which is not visible inside: --read {found}")),
            ],
            Self::Audit(error) => {
                vec![Diagnostic::error(codes::OWN_FILES, with_cause(error)).hint(error.hint())]
            }
            Self::Store(error) => {
                vec![Diagnostic::error(codes::OWN_FILES, with_cause(error)).hint(error.hint())]
            }
            Self::OwnFolder { .. } => {
                vec![Diagnostic::error(codes::OWN_FILES, with_cause(self)).hint("choose a narrower workspace")]
            }
            Self::NoProjectFile { .. } => {
                vec![
                    Diagnostic::error(codes::FILE_UNREADABLE, self.to_string())
                        .hint("name the file: ringfence trust FILE"),
                ]
            }
            Self::Publish { .. } => vec![Diagnostic::error(codes::PORT_TAKEN, with_cause(self))],
            Self::Doors { .. } => vec![Diagnostic::error(codes::BUILD, with_cause(self))],
            Self::NoCommand => vec![Diagnostic::error(codes::PROGRAM_MISSING, self.to_string())],
        }
    }
}

/// A failed start; a program that the host has and the walls hide is told apart from one that nobody has.
pub(crate) fn wall(error: EnforceError, env: &[(OsString, OsString)]) -> Error {
    if let EnforceError::NotFound { program } = &error
        && let Some(found) = on_host(program, env)
    {
        return Error::Hidden { program: program.clone(), found };
    }
    Error::Wall(error)
}

/// Where the host has a program.
fn on_host(program: &Path, env: &[(OsString, OsString)]) -> Option<HostPath> {
    let executable = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let absolute = |path: PathBuf| std::path::absolute(path).ok().and_then(|path| HostPath::new(path).ok());
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return executable(program).then(|| absolute(program.to_owned())).flatten();
    }
    if program.as_os_str().is_empty() {
        return None;
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value)?;
    std::env::split_paths(path).map(|dir| dir.join(program)).find(|path| executable(path)).and_then(absolute)
}

fn wall_diagnostic(error: &EnforceError) -> Diagnostic {
    let code = match error {
        EnforceError::NotFound { .. } => codes::PROGRAM_MISSING,
        EnforceError::NotExecutable { .. } => codes::PROGRAM_NOT_EXECUTABLE,
        EnforceError::UserNamespace { .. } => codes::USERNS,
        EnforceError::Unproved { .. } => codes::PROOF,
        _ => codes::BUILD,
    };
    let problem = Diagnostic::error(code, with_cause(error));
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn plan_diagnostic(error: &PlanError) -> Diagnostic {
    let code = match error {
        PlanError::WorkspaceTooWide { .. } => codes::WORKSPACE,
        PlanError::RootIsLink { .. } => codes::PLAN_LINK,
        PlanError::Missing { .. } => codes::PLAN_MISSING,
        PlanError::TooManyMatches { .. } | PlanError::TooManyEntries { .. } => codes::PLAN_MATCHES,
        PlanError::Weaker { layer, .. } if layer == "namespaces" => codes::USERNS,
        PlanError::Weaker { .. } => codes::WEAKER,
        PlanError::View { .. } => codes::VIEW,
        _ => codes::UNENFORCEABLE,
    };
    let message = match error {
        PlanError::Weaker { why, .. } if code == codes::USERNS => {
            format!("this host forbids new user namespaces: {why}")
        }
        _ => with_cause(error),
    };
    let problem = Diagnostic::error(code, message);
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// The working directory or the workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The folder was removed while a shell stood in it.
    #[error("the working directory was deleted")]
    CwdGone,
    /// It cannot be named.
    #[error("the working directory cannot be read")]
    Cwd {
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A flag was given an empty path.
    #[error("the path is empty")]
    Empty,
    /// Longer than any system call takes.
    #[error("the path `{start}...` is {bytes} bytes long; the kernel takes at most 4095")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// Its beginning.
        start: String,
    },
    /// It holds a NUL byte or is relative.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The workspace is not there or cannot be entered.
    #[error("the workspace `{path}` cannot be used")]
    Workspace {
        /// Which.
        path: HostPath,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The workspace is a file.
    #[error("the workspace `{path}` is not a folder")]
    NotAFolder {
        /// Which.
        path: HostPath,
    },
    /// The workspace was named by a link that leads out of the folder in which it lies: whoever may write there chose it.
    #[error("the workspace `{path}` is a link to `{target}`, outside of its folder; name the target itself")]
    Link {
        /// As it was named.
        path: HostPath,
        /// Where it leads.
        target: HostPath,
    },
    /// The workspace holds the home folder.
    #[error("the workspace would be `{path}`, which makes the home folder `{home}` writable with everything in it")]
    TooWide {
        /// The workspace.
        path: HostPath,
        /// The home folder.
        home: HostPath,
    },
}

/// A policy file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The system refuses.
    #[error("the policy file `{}` cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Somebody else than root could have written a managed file.
    #[error("the managed policy `{}` could have been written by others than root (owner {uid}, mode {mode:04o})", path.display())]
    NotRootOnly {
        /// Which file or folder.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its mode.
        mode: u32,
    },
    /// A folder, device or FIFO.
    #[error("the policy file `{}` is not a regular file", path.display())]
    NotAFile {
        /// Which.
        path: PathBuf,
    },
    /// More than a megabyte.
    #[error("the policy file `{}` is larger than 1 MB", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// TOML is UTF-8.
    #[error("the policy file `{}` is not UTF-8 (byte {offset})", path.display())]
    NotUtf8 {
        /// Which.
        path: PathBuf,
        /// The first byte that is not.
        offset: usize,
    },
}

impl PlaceError {
    /// As it is shown.
    fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            Self::Empty | Self::TooLong { .. } | Self::Path(_) => codes::PATH,
            _ => codes::WORKSPACE,
        };
        let problem = Diagnostic::error(code, with_cause(self));
        match self {
            Self::CwdGone => problem.hint("change to a folder that exists, or name one with --workspace DIR"),
            Self::TooWide { path, .. } => problem.hint(format!(
                "start in a project's folder, or name one: --workspace DIR (if it is truly meant: --workspace {path} \
                 --allow-wide-workspace)"
            )),
            _ => problem,
        }
    }
}

impl SourceError {
    /// As it is shown.
    fn diagnostic(&self) -> Diagnostic {
        let code = match self {
            Self::TooLarge { .. } => codes::TOO_LARGE,
            Self::NotUtf8 { .. } => codes::NOT_UTF8,
            Self::Unreadable { .. } | Self::NotRootOnly { .. } | Self::NotAFile { .. } => codes::FILE_UNREADABLE,
        };
        let problem = Diagnostic::error(code, with_cause(self));
        match self {
            Self::NotRootOnly { path, .. } => problem
                .hint(format!("as root, after reading it: chown root:root {0} && chmod go-w {0}", path.display())),
            _ => problem,
        }
    }
}

/// An error with what the system said of it.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |e| e.source())
        .fold(error.to_string(), |text, cause| format!("{text}: {}", plain_cause(&cause.to_string())))
}

/// What the system said without the number, which its text already names.
fn plain_cause(text: &str) -> &str {
    text.split_once(" (os error").map_or(text, |(text, _)| text)
}
