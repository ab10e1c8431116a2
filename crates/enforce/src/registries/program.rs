//! Starting a package client outside of the sandbox, safely.
//!
//! The client is looked up by us, in entries of `PATH` that the command cannot write, and started by its absolute path, in
//! `/`, with a clean environment, without input, for a bounded time and with a bounded answer.

use super::{Context, PATIENCE};
use ringfence_policy::HostPath;
use ringfence_sys::files::{may_execute, real_path};
use ringfence_sys::host::{kill_group, wait_readable};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A longer answer is none.
const MAX_ANSWER: usize = 1024 * 1024;

/// Variables that clients need to find themselves, their settings and the network. Others stay out: many of them name code
/// that a program loads at start (`LD_PRELOAD`, `NODE_OPTIONS`, `PYTHONPATH`, `BASH_ENV`).
const PASSED: [&str; 28] = [
    "HOME",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NVM_DIR",
    "VOLTA_HOME",
    "ASDF_DATA_DIR",
    "GOENV",
    "GOPROXY",
    "GOSUMDB",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
];

/// A program that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Helper {
    path: PathBuf,
    env: Vec<(OsString, OsString)>,
}

/// Why a program gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    #[error("it could not be started")]
    Start,
    #[error("it did not answer in {} s", PATIENCE.as_secs())]
    Time,
    #[error("its answer has no end")]
    Size,
    #[error("it failed")]
    Status,
}

/// Which of a program's outputs holds the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output, when the program succeeds.
    Out,
    /// Standard error, whether it succeeds or not.
    Err,
}

/// Where `PATH` says that a program could be, whether it is there or not.
pub(super) fn candidates(context: &Context<'_>, name: &str) -> Vec<PathBuf> {
    safe_folders(context).into_iter().map(|folder| folder.join(name)).collect()
}

/// The program at this path, when it is one that the command cannot have put there.
pub(super) fn trusted(context: &Context<'_>, path: &Path) -> Option<Helper> {
    if !outside(context, path) || !std::fs::metadata(path).ok()?.is_file() || !may_execute(path) {
        return None;
    }
    let mut env: Vec<(OsString, OsString)> = context
        .env
        .iter()
        .filter(|(name, value)| PASSED.iter().any(|p| name == p) && harmless(context, value))
        .cloned()
        .collect();
    let folders = safe_folders(context);
    env.push(("PATH".into(), std::env::join_paths(folders).ok()?));
    env.push(("LC_ALL".into(), "C".into()));
    Some(Helper { path: path.to_owned(), env })
}

/// Entries of `PATH` in which neither the command nor everybody may put programs. Version managers' shims start further
/// programs by name, so these entries are their whole `PATH`.
fn safe_folders(context: &Context<'_>) -> Vec<PathBuf> {
    let path = crate::probe::Env(context.env).get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(path).filter(|f| f.is_absolute()) {
        let everybody = std::fs::metadata(&folder).is_ok_and(|m| m.mode() & 0o002 != 0);
        if !everybody && !folders.contains(&folder) && outside(context, &folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Whether a path lies outside of what the command may write: by its words, and by where it leads.
pub(super) fn outside(context: &Context<'_>, path: &Path) -> bool {
    let clear =
        |path: &Path| HostPath::new(path).is_ok_and(|path| !context.untrusted.iter().any(|root| path.is_within(root)));
    clear(path) && real_path(path).map_or(true, |real| clear(&real))
}

/// A value that is a path must not lead into what the command may write.
fn harmless(context: &Context<'_>, value: &OsStr) -> bool {
    let path = Path::new(value);
    !path.is_absolute() || outside(context, path)
}

impl Helper {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the program with further variables and returns its answer.
    pub(super) fn run(&self, args: &[&OsStr], env: &[(&str, &OsStr)], stream: Stream) -> Result<String, RunError> {
        let mut command = Command::new(&self.path);
        command.args(args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).envs(env.iter().copied());
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        match stream {
            Stream::Out => command.stdout(Stdio::piped()).stderr(Stdio::null()),
            Stream::Err => command.stdout(Stdio::null()).stderr(Stdio::piped()),
        };
        let mut child = command.spawn().map_err(|_| RunError::Start)?;
        let deadline = Instant::now() + PATIENCE;
        let read = match stream {
            Stream::Out => child.stdout.take().map(|out| collect(out, deadline)),
            Stream::Err => child.stderr.take().map(|err| collect(err, deadline)),
        };
        let status = read.unwrap_or(Err(RunError::Start)).and_then(|answer| Ok((answer, wait(&mut child, deadline)?)));
        if status.is_err() {
            // With its children, which may hold the pipe open; then reaped, so that nothing is left.
            let _ = kill_group(child.id());
            let _ = child.kill();
            let _ = child.wait();
        }
        let (answer, success) = status?;
        if stream == Stream::Out && !success {
            return Err(RunError::Status);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// [`Self::run`] with plain words, for standard output.
    pub(super) fn ask(&self, args: &[&str], env: &[(&str, &str)]) -> Result<String, RunError> {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let env: Vec<(&str, &OsStr)> = env.iter().map(|(k, v)| (*k, OsStr::new(*v))).collect();
        self.run(&args, &env, Stream::Out)
    }
}

fn collect(mut pipe: impl Read + AsFd, deadline: Instant) -> Result<Vec<u8>, RunError> {
    let mut answer = Vec::new();
    let mut buffer = vec![0_u8; 16 * 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RunError::Time);
        }
        if !wait_readable(pipe.as_fd(), left).map_err(|_| RunError::Start)? {
            continue;
        }
        let done = pipe.read(&mut buffer).map_err(|_| RunError::Start)?;
        if done == 0 {
            return Ok(answer);
        }
        answer.extend_from_slice(buffer.get(..done).unwrap_or_default());
        if answer.len() > MAX_ANSWER {
            return Err(RunError::Size);
        }
    }
}

fn wait(child: &mut Child, deadline: Instant) -> Result<bool, RunError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return Err(RunError::Time),
            Err(_) => return Err(RunError::Start),
        }
    }
}
