//! What all tests share: the program, the ordinary account, the pretended outside, and a way to run a command as somebody
//! somewhere.

use crate::fresh::Env;
use crate::wall::Wall;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ACCOUNT: &str = "ringfence-test";

/// Who runs the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    User,
    Root,
}

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Root => "root",
        }
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// On the machine, with its network.
    Host,
    /// On the pretended host, whose network leads to the pretended outside only.
    World,
    /// On the pretended outside itself.
    Outside,
}

/// An account of the machine.
#[derive(Debug, Clone)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// Two namespaces joined by a pair of interfaces, each held by a process of `world.py`.
struct World {
    host: Child,
    outside: Child,
}

pub struct Stage {
    /// A folder that both users can reach: not below /tmp, which is private inside, and not below anybody's home.
    pub base: PathBuf,
    pub bin: PathBuf,
    pub wall: Wall,
    pub root: bool,
    account: Account,
    world: Option<World>,
}

impl Stage {
    pub fn build() -> Result<Self, String> {
        let root = rustix::process::geteuid().is_root();
        let account = account(root)?;
        let home = if root { PathBuf::from("/opt") } else { home_of_caller()? };
        let base = home.join(format!("ringfence-e2e-{}", std::process::id()));
        for d in
            [&base, &base.join("bin"), &base.join("rust"), &base.join("peers"), &base.join("world"), &base.join("git")]
        {
            fs::create_dir_all(d).map_err(|e| format!("{}: {e}", d.display()))?;
            open_to_all(d);
        }
        let wall = Wall::from_env()?;
        let bin = base.join("bin/ringfence");
        if wall == Wall::Ringfence {
            let built = program()?;
            fs::copy(&built, &bin).map_err(|e| format!("copy {}: {e}", built.display()))?;
            open_to_all(&bin);
        }
        // The support scripts lie where the ordinary user can read them, whatever the mode of the source tree.
        for name in ["doors.py", "model_server.py", "world.py"] {
            let to = base.join("bin").join(name);
            fs::copy(support().join(name), &to).map_err(|e| format!("copy {name}: {e}"))?;
            open_to_all(&to);
        }
        let mut stage = Self { base, bin, wall, root, account, world: None };
        if root {
            stage.furnish()?;
            stage.world = Some(stage.make_world()?);
        }
        Ok(stage)
    }

    pub fn describe(&self) -> String {
        let who = if self.root { format!("{} and root", self.account.name) } else { self.account.name.clone() };
        let outside =
            if self.root { "with a pretended outside" } else { "without a pretended outside (that needs root)" };
        format!("wall: {:?}, as {who}, {outside}", self.wall)
    }

    pub fn user_name(&self, who: Who) -> String {
        if who == Who::Root { "root".into() } else { self.account.name.clone() }
    }

    pub fn account(&self) -> &Account {
        &self.account
    }

    pub fn has_world(&self) -> bool {
        self.world.is_some()
    }

    /// The users as whom this run can test.
    pub fn can_be(&self, who: Who) -> bool {
        who == Who::User || self.root
    }

    /// Why a trial cannot run here, if it cannot.
    pub fn lacks(&self, who: Who, needs_world: bool) -> Option<String> {
        if !self.can_be(who) {
            Some("the tests do not run as root".into())
        } else if needs_world && self.world.is_none() {
            Some("the pretended outside needs root".into())
        } else {
            None
        }
    }

    pub fn world_log(&self) -> PathBuf {
        self.base.join("world/log")
    }

    /// Lines of the pretended outside that have `mark` in them.
    pub fn seen_outside(&self, mark: &str) -> Vec<String> {
        let mark = mark.to_lowercase();
        let log = fs::read_to_string(self.world_log()).unwrap_or_default();
        log.lines().filter(|l| l.to_lowercase().contains(&mark)).map(str::to_owned).collect()
    }

    /// Hands a file over to the user of a case.
    pub fn give(&self, who: Who, path: &Path) {
        if self.root && who == Who::User {
            std::os::unix::fs::chown(path, Some(self.account.uid), Some(self.account.gid))
                .expect("chown a file of the case");
        }
    }

    /// A command as somebody, somewhere, in a folder, with exactly this environment.
    pub fn command(&self, who: Who, ground: Ground, cwd: &Path, env: &Env, argv: &[String]) -> Command {
        let mut words: Vec<String> = Vec::new();
        let mut push = |list: &[&str]| words.extend(list.iter().map(|s| (*s).to_owned()));
        if self.root {
            let holder = match (ground, &self.world) {
                (Ground::World, Some(w)) => Some(w.host.id()),
                (Ground::Outside, Some(w)) => Some(w.outside.id()),
                _ => None,
            };
            if let Some(pid) = holder {
                push(&["/usr/bin/nsenter", "-t", &pid.to_string(), "-m", "-n", "--"]);
            }
            if who == Who::User {
                let (uid, gid) = (self.account.uid.to_string(), self.account.gid.to_string());
                push(&[
                    "/usr/bin/setpriv",
                    "--reuid",
                    &uid,
                    "--regid",
                    &gid,
                    "--clear-groups",
                    "--inh-caps=-all",
                    "--",
                ]);
            }
        }
        push(&["/usr/bin/env", "-C", &cwd.to_string_lossy()]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(argv).env_clear().envs(env);
        command
    }

    /// Where the machine's Rust toolchain is reachable for everybody, if there is one.
    pub fn rust_bin(&self) -> Option<PathBuf> {
        if self.root {
            let bin = self.base.join("rust/bin");
            sysroot().map(|_| bin)
        } else {
            sysroot().map(|s| s.join("bin"))
        }
    }

    /// Where the agents are, for everybody.
    pub fn peers(&self) -> Option<PathBuf> {
        let real = peers();
        if !real.join("node_modules/.bin").exists() {
            return None;
        }
        Some(if self.root { self.base.join("peers") } else { real })
    }

    /// Puts what lies in folders that the ordinary user cannot enter where it can: by links, which cost nothing, or copies.
    fn furnish(&self) -> Result<(), String> {
        let sources = [sysroot().map(|s| (s, "rust")), Some((peers(), "peers")).filter(|(p, _)| p.exists())];
        for (from, to) in sources.into_iter().flatten() {
            let (from, to) = (from.join("."), self.base.join(to));
            let copy = |how: &str| Command::new("cp").arg(how).args([&from, &to]).stderr(Stdio::null()).status();
            if !copy("-al").is_ok_and(|s| s.success()) && !copy("-a").is_ok_and(|s| s.success()) {
                return Err(format!("could not copy {}", from.display()));
            }
        }
        Ok(())
    }

    fn make_world(&self) -> Result<World, String> {
        let log = self.world_log();
        fs::write(&log, "").map_err(|e| e.to_string())?;
        fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).map_err(|e| e.to_string())?;
        open_to_all(&self.base.join("git"));
        let git = self.base.join("git");
        let (mut outside, outside_said) = self.hold("outside", &[&git.to_string_lossy()])?;
        let (mut host, host_said) = self.hold("host", &[])?;
        let (h, o) = (host.id(), outside.id());
        let resolv = self.base.join("world/resolv.conf");
        fs::write(&resolv, "nameserver 10.9.9.53\noptions timeout:1 attempts:1\n").map_err(|e| e.to_string())?;
        open_to_all(&resolv);
        enter(h, &["-m"], &["mount", "--bind", &resolv.to_string_lossy(), "/etc/resolv.conf"])?;
        enter(h, &["-m"], &["mount", "-t", "tmpfs", "none", "/run"])?;
        enter(
            h,
            &["-n"],
            &[
                "sh",
                "-c",
                &format!(
                    "ip link set lo up && ip link add h0 type veth peer name w0 && ip link set w0 netns {o} && ip addr add 10.9.9.1/24 dev h0 && \
             ip -6 addr add fd00:9::1/64 dev h0 nodad && ip link set h0 up"
                ),
            ],
        )?;
        enter(
            o,
            &["-n"],
            &[
                "sh",
                "-c",
                "ip link set lo up && for a in 10.9.9.9/24 10.9.9.10/24 10.9.9.11/24 10.9.9.53/24 169.254.169.254/32; do ip addr add $a dev w0; done && \
             ip -6 addr add fd00:9::9/64 dev w0 nodad && ip link set w0 up && ip route add default via 10.9.9.1",
            ],
        )?;
        enter(h, &["-n"], &["sh", "-c", "ip route add default via 10.9.9.9 && ip -6 route add default via fd00:9::9"])?;
        for (child, said) in [(&mut outside, outside_said), (&mut host, host_said)] {
            child.stdin.as_mut().ok_or("no stdin")?.write_all(b"go\n").map_err(|e| e.to_string())?;
            expect_line(said, "ready")?;
        }
        Ok(World { host, outside })
    }

    /// What the open proxies of the controls complain of when they are told nonsense is of no interest here.
    fn world_errors(&self, role: &str) -> Result<Stdio, String> {
        fs::File::create(self.base.join("world").join(format!("{role}.err")))
            .map(Stdio::from)
            .map_err(|e| e.to_string())
    }

    fn hold(&self, role: &str, more: &[&str]) -> Result<(Child, BufReader<std::process::ChildStdout>), String> {
        let mut child = Command::new("unshare")
            .args(["--net", "--mount", "--propagation", "private", "--", "/usr/bin/python3"])
            .arg(self.base.join("bin/world.py"))
            .arg(role)
            .arg(self.world_log())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.world_errors(role)?)
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let said = expect_line(BufReader::new(child.stdout.take().ok_or("no stdout")?), "up")?;
        Ok((child, said))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for mut c in self.world.take().into_iter().flat_map(|w| [w.host, w.outside]) {
            let _ = c.kill();
            let _ = c.wait();
        }
        if std::env::var_os("RINGFENCE_E2E_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.base);
        }
    }
}

fn expect_line(
    mut from: BufReader<std::process::ChildStdout>,
    word: &str,
) -> Result<BufReader<std::process::ChildStdout>, String> {
    let mut line = String::new();
    from.read_line(&mut line).map_err(|e| e.to_string())?;
    if line.trim() == word { Ok(from) } else { Err(format!("the pretended outside said {line:?} and not {word:?}")) }
}

fn enter(pid: u32, spaces: &[&str], argv: &[&str]) -> Result<(), String> {
    let r = Command::new("nsenter")
        .args(["-t", &pid.to_string()])
        .args(spaces)
        .arg("--")
        .args(argv)
        .output()
        .map_err(|e| format!("nsenter: {e}"))?;
    if r.status.success() { Ok(()) } else { Err(format!("{argv:?}: {}", String::from_utf8_lossy(&r.stderr))) }
}

/// The ordinary account: the caller, or, for root, the named or a made one.
fn account(root: bool) -> Result<Account, String> {
    if !root {
        let uid = rustix::process::getuid().as_raw();
        return lookup(|_, u| u == uid).ok_or_else(|| format!("no account for user {uid}"));
    }
    let name = std::env::var("RINGFENCE_TEST_USER").unwrap_or_else(|_| ACCOUNT.into());
    if lookup(|n, _| n == name).is_none() {
        // The password field `*` lets keys in and no password, which `!` would not (sshd(8), locked accounts).
        let made = Command::new("useradd")
            .args(["--create-home", "--user-group", "--shell", "/bin/bash", "--password", "*", &name])
            .status();
        if !made.is_ok_and(|s| s.success()) {
            return Err(format!("could not make the account {name}"));
        }
    }
    let found = lookup(|n, _| n == name).ok_or_else(|| format!("no account {name}"))?;
    let home = PathBuf::from("/home").join(&found.name);
    fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    open_to_all(&home);
    Ok(found)
}

fn lookup(wanted: impl Fn(&str, u32) -> bool) -> Option<Account> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut f = line.split(':');
        let (name, uid, gid) = (f.next()?, f.nth(1)?.parse().ok()?, f.next()?.parse().ok()?);
        wanted(name, uid).then(|| Account { name: name.into(), uid, gid })
    })
}

fn home_of_caller() -> Result<PathBuf, String> {
    std::env::var_os("HOME").map(PathBuf::from).ok_or_else(|| "HOME is not set".into())
}

fn open_to_all(path: &Path) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
}

/// The folder of the tests; named by a variable where the one that they were built in cannot be reached.
pub fn here() -> PathBuf {
    std::env::var_os("RINGFENCE_E2E_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

fn support() -> PathBuf {
    here().join("support")
}

pub fn peers() -> PathBuf {
    std::env::var_os("RINGFENCE_TEST_PEERS").map_or_else(|| here().join("../target/test-peers"), PathBuf::from)
}

fn sysroot() -> Option<PathBuf> {
    let out = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    path.join("bin/cargo").exists().then_some(path)
}

/// The program under test: the named one, or the one that cargo builds now with this test's own profile.
fn program() -> Result<PathBuf, String> {
    if let Some(bin) = std::env::var_os("RINGFENCE_BIN") {
        return Ok(PathBuf::from(bin));
    }
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = me.parent().and_then(Path::parent).ok_or("the test lies in no target folder")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "ringfence-cli"]).current_dir(here());
    if folder.file_name().is_some_and(|n| n == "release") {
        build.arg("--release");
    }
    match build.status() {
        Ok(s) if s.success() => Ok(folder.join("ringfence")),
        Ok(s) => Err(format!("cargo build: {s}")),
        Err(e) => Err(format!("cargo build: {e}")),
    }
}
