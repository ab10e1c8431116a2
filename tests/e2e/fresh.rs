//! A fresh home, workspace, outside folder and state for one case, removed with everything that it started.

use crate::stage::{Stage, Who};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The ground of one case.
pub struct Fresh {
    pub dir: PathBuf,
    pub home: PathBuf,
    pub ws: PathBuf,
    /// A folder of the home outside every grant.
    pub out: PathBuf,
    /// Known to the host only.
    pub state: PathBuf,
    /// A token that stands nowhere else on the machine.
    pub mark: String,
    pub who: Who,
}

/// Environment of a case, in a fixed order.
pub type Env = BTreeMap<String, String>;

impl Fresh {
    pub fn new(stage: &Stage, who: Who, name: &str) -> Self {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        let mark = format!("M{:05x}{:03x}{nanos:07x}", std::process::id() & 0xf_ffff, n & 0xfff);
        let dir = stage.base.join(format!("{name}-{n}"));
        let home = dir.join("home");
        let fresh = Self {
            ws: home.join("project"),
            out: home.join("outside"),
            state: dir.join("state"),
            home,
            dir,
            mark,
            who,
        };
        for d in [&fresh.home, &fresh.ws, &fresh.out, &fresh.state] {
            fs::create_dir_all(d).expect("make a folder of the case");
            stage.give(who, d);
        }
        fresh.note(stage, "pids", "");
        fresh.note(stage, "tty_pending", "");
        fresh.note(stage, "log", "");
        fresh
    }

    /// Writes a file into the state folder, owned by the case's user.
    pub fn note(&self, stage: &Stage, name: &str, text: &str) -> PathBuf {
        self.put(stage, &self.state.join(name), text)
    }

    /// Writes a file owned by the case's user.
    pub fn put(&self, stage: &Stage, path: &Path, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(path, text).expect("write a file of the case");
        stage.give(self.who, path);
        path.to_owned()
    }

    /// Makes a folder (one level) owned by the case's user.
    pub fn folder(&self, stage: &Stage, path: &Path) -> PathBuf {
        fs::create_dir_all(path).expect("make a folder of the case");
        stage.give(self.who, path);
        path.to_owned()
    }

    /// What the host's side of a case sees.
    pub fn env(&self, stage: &Stage) -> Env {
        let text = |p: &Path| p.to_string_lossy().into_owned();
        let user = stage.user_name(self.who);
        let device = |p: &Path| fs::metadata(p).map(|m| m.dev().to_string()).unwrap_or_default();
        let place = fs::metadata(&self.home).map(|m| format!("{}:{}", m.dev(), m.ino())).unwrap_or_default();
        [
            ("HOME", text(&self.home)),
            ("USER", user.clone()),
            ("LOGNAME", user),
            ("SHELL", "/bin/bash".into()),
            ("TERM", "xterm".into()),
            ("LANG", "C.UTF-8".into()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("WS", text(&self.ws)),
            ("OUT", text(&self.out)),
            ("STATE", text(&self.state)),
            ("MARK", self.mark.clone()),
            ("WORLD", text(&stage.world_log())),
            ("LOG", text(&self.state.join("log"))),
            ("REPORT", text(&self.state.join("report"))),
            ("HOSTDEV", device(&self.out)),
            ("HOSTHOME", place),
            ("SHMDEV", device(Path::new("/dev/shm"))),
            ("W4", "10.9.9.9".into()),
            ("W6", "fd00:9::9".into()),
            ("WDNS", "10.9.9.53".into()),
            ("IMDS", "169.254.169.254".into()),
            ("LPORT", "8099".into()),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect()
    }

    /// What the launcher sees: no name of the host's side.
    pub fn launcher_env(&self, stage: &Stage) -> Env {
        let mut env = self.env(stage);
        for name in ["STATE", "WORLD", "LOG", "REPORT"] {
            env.remove(name);
        }
        env
    }

    /// Ends what the case started on the host: the numbers in `pids`, and every process that carries the mark or stands in
    /// a folder of the case.
    pub fn clean(&self) {
        for pid in fs::read_to_string(self.state.join("pids")).unwrap_or_default().split_whitespace() {
            kill(pid);
        }
        for (pid, _) in self.processes() {
            kill(&pid);
        }
        for f in [format!("/dev/shm/{}", self.mark), format!("/dev/shm/host-{}", self.mark)] {
            let _ = fs::remove_file(f);
        }
        if self.state.join("mqueue").exists() {
            // A queue outlives its maker, and a user may have few of them (mq_overview(7)).
            let text = "import ctypes,sys;ctypes.CDLL(None).mq_unlink(sys.argv[1].encode())";
            let _ =
                std::process::Command::new("/usr/bin/python3").args(["-c", text, &format!("/{}", self.mark)]).status();
        }
        if let Ok(id) = fs::read_to_string(self.state.join("shmid")) {
            let _ = std::process::Command::new("ipcrm")
                .args(["-m", id.trim()])
                .stderr(std::process::Stdio::null())
                .status();
        }
    }

    /// Processes that belong to this case: number and command line.
    pub fn processes(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let me = std::process::id().to_string();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_string_lossy().into_owned();
            if !pid.bytes().all(|b| b.is_ascii_digit()) || pid == me {
                continue;
            }
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let here = fs::read_link(entry.path().join("cwd")).is_ok_and(|p| p.starts_with(&self.dir));
            if here || line.contains(&self.mark) || line.contains(&*self.dir.to_string_lossy()) {
                found.push((pid, line));
            }
        }
        found
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.clean();
        if std::env::var_os("RINGFENCE_E2E_KEEP").is_none() && fs::remove_dir_all(&self.dir).is_err() {
            // Caches of package managers hold folders without write permission.
            let _ = std::process::Command::new("chmod")
                .args(["-R", "u+rwX"])
                .arg(&self.dir)
                .stderr(std::process::Stdio::null())
                .status();
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn kill(pid: &str) {
    if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
