//! A fresh home and workspace, and the program run in them as root or as an ordinary user.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The account for runs as an ordinary user, when the tests run as root. Its number need not be in the password database.
const ORDINARY: u32 = 64_321;

/// As whom the program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Root,
    User,
}

/// As whom it can be run here: root can be both.
pub fn everybody() -> &'static [Who] {
    if is_root() { &[Who::Root, Who::User] } else { &[Who::User] }
}

pub fn is_root() -> bool {
    Path::new("/proc/self").metadata().unwrap().uid() == 0
}

/// A copy of the program where an ordinary user can execute it; gone with the last scene that uses it.
static COPY: Mutex<Weak<tempfile::TempDir>> = Mutex::new(Weak::new());

/// `None` where the program can be executed as it was built.
fn program_copy() -> Option<Arc<tempfile::TempDir>> {
    if !is_root() {
        return None;
    }
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dir) = copy.upgrade() {
        return Some(dir);
    }
    let dir = Arc::new(tempfile::Builder::new().prefix("ringfence-program-").tempdir().unwrap());
    open_to_all(dir.path());
    let program = dir.path().join("ringfence");
    std::fs::copy(env!("CARGO_BIN_EXE_ringfence"), &program).unwrap();
    open_to_all(&program);
    *copy = Arc::downgrade(&dir);
    Some(dir)
}

/// The program, for as long as there is a scene.
pub fn program_path() -> PathBuf {
    match program_copy() {
        Some(dir) => dir.path().join("ringfence"),
        None => PathBuf::from(env!("CARGO_BIN_EXE_ringfence")),
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status, or 1000+n when the launcher itself was ended by signal n.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Asserts a refusal: the status, a message with all these parts, and nothing on standard output.
    #[track_caller]
    pub fn refused(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in {self:#?}");
        }
    }

    #[track_caller]
    pub fn ok(&self) -> &Self {
        assert_eq!(self.status, 0, "{self:#?}");
        self
    }
}

/// A home folder and a workspace beside it.
pub struct Scene {
    pub who: Who,
    pub top: tempfile::TempDir,
    _program: Option<Arc<tempfile::TempDir>>,
}

impl Scene {
    pub fn new(who: Who) -> Self {
        // Not in the system's temporary folder: the sandbox has its own.
        let base = if is_root() { Path::new("/var/lib") } else { Path::new(env!("CARGO_TARGET_TMPDIR")) };
        let top = tempfile::Builder::new().prefix("ringfence-scene-").tempdir_in(base).unwrap();
        open_to_all(top.path());
        let scene = Self { who, top, _program: program_copy() };
        for dir in [scene.home(), scene.work()] {
            std::fs::create_dir(&dir).unwrap();
            scene.give(&dir);
        }
        scene
    }

    pub fn home(&self) -> PathBuf {
        self.top.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.top.path().join("work")
    }

    /// Makes the user of the scene the owner.
    pub fn give(&self, path: &Path) {
        if is_root() && self.who == Who::User {
            std::os::unix::fs::lchown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        }
    }

    /// Writes a file that belongs to the user of the scene, with its folders.
    pub fn file(&self, path: &Path, text: &str) {
        let parent = path.parent().unwrap();
        let missing: Vec<_> = parent.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        std::fs::create_dir_all(parent).unwrap();
        for dir in &missing {
            self.give(dir);
        }
        std::fs::write(path, text).unwrap();
        self.give(path);
    }

    /// A command in the workspace, with an environment that holds what a login has and no more.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("RINGFENCE", program_path())
            .current_dir(self.work())
            .stdin(Stdio::null());
        if is_root() && self.who == Who::User {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    /// `ringfence` with arguments.
    pub fn ringfence<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Outcome {
        let mut command = self.command(program_path());
        command.args(args);
        self.finish(command)
    }

    /// A shell script in which `$RINGFENCE` is the program.
    pub fn script(&self, script: &str) -> Outcome {
        let mut command = self.command("bash");
        command.arg("-c").arg(script);
        self.finish(command)
    }

    pub fn finish(&self, mut command: Command) -> Outcome {
        let output = command.output().unwrap();
        let status = output.status.code().unwrap_or_else(|| 1000 + output.status.signal().unwrap_or(0));
        Outcome {
            status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts that a refused run left nothing: the home is empty.
    #[track_caller]
    pub fn untouched(&self) {
        let left: Vec<OsString> = std::fs::read_dir(self.home()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.is_empty(), "left in the home folder: {left:?}");
    }
}

/// Says that a test could not be run here. Written past the test harness, so that it is seen.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}
