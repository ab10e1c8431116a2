//! The cases of the corpora, and the one attempt that attack cases and their controls have in common.

use crate::fresh::{Env, Fresh};
use crate::run::{self, Ran};
use crate::stage::{Ground, Stage, Who};
use crate::terminal::Terminal;
use crate::wall::{Spec, Wall, expand};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// One line of `attacks.jsonl`; the fields are explained in `corpus/README.md`.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Attack {
    pub id: String,
    pub class: String,
    pub setup: String,
    pub attempt: String,
    pub verify: String,
    #[serde(default)]
    pub setup_root: String,
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    pub needs: String,
    #[serde(default)]
    pub tty: bool,
    /// `filtered`: the control runs under a system call filter that lets everything pass, because the case looks for
    /// processes with fewer filters than its own.
    #[serde(default)]
    control: String,
}

/// Puts a filter that allows everything on itself and becomes the command (seccomp(2), SECCOMP_SET_MODE_FILTER).
const FILTERED: &str = "import ctypes,os,struct,sys
L=ctypes.CDLL(None)
code=ctypes.create_string_buffer(struct.pack('HBBI',6,0,0,0x7fff0000))
L.prctl(38,1,0,0,0)
if L.prctl(22,2,struct.pack('HxxxxxxQ',1,ctypes.addressof(code)))!=0: raise SystemExit('no filter')
os.execvp(sys.argv[1],sys.argv[1:])";

/// What an attempt came to.
pub struct Seen {
    /// Whether it got out: the host's check failed, or the attempt says that it saw the effect.
    pub escaped: bool,
    /// Whether the attempt ran at all.
    pub ran: bool,
    /// For messages.
    pub text: String,
}

/// Reads a corpus file.
pub fn load<T: serde::de::DeserializeOwned>(name: &str) -> Vec<T> {
    let path = crate::stage::here().join("corpus").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    lines
        .map(|(n, l)| serde_json::from_str(l).unwrap_or_else(|e| panic!("{}:{}: {e}", path.display(), n + 1)))
        .collect()
}

impl Attack {
    /// Whether the case looks at the pretended outside.
    pub fn needs_world(&self) -> bool {
        let words = ["$W4", "$W6", "$WDNS", "$IMDS", "$LPORT", "$WORLD", "WDNS", "canary-abs", ".test"];
        self.spec.net.is_some() || words.iter().any(|w| self.attempt.contains(w) || self.verify.contains(w))
    }

    fn ground(&self, stage: &Stage) -> Ground {
        if stage.has_world() { Ground::World } else { Ground::Host }
    }

    /// Makes a fresh ground and tries the case behind a wall. `Err` says why it does not apply here.
    pub fn attempt(&self, stage: &Stage, who: Who, wall: Wall) -> Result<Seen, String> {
        let fresh = Fresh::new(stage, who, &self.id);
        let env = fresh.env(stage);
        let ground = self.ground(stage);
        let bash = |text: &str| ["bash", "-c", if text.is_empty() { "true" } else { text }].map(str::to_owned);
        let minute = Duration::from_secs(60);
        if !self.setup_root.is_empty() {
            if !stage.root {
                return Err("its set-up needs root".into());
            }
            let r = run::run(&mut stage.command(Who::Root, ground, &fresh.ws, &env, &bash(&self.setup_root)), minute);
            assert!(r.ok(), "set-up as root: {}", r.show());
        }
        // Servers that a set-up leaves behind hold its streams, which must not be waited for.
        let mut setup = stage.command(who, ground, &fresh.ws, &env, &bash(&self.setup));
        let r = run::run_into(&mut setup, &fresh.state.join("setup.log"), minute, None).map_err(|e| e.to_string())?;
        if r.status == 77 {
            return Err(format!("not applicable here: needs {}", self.needs));
        }

        let ran = self.launch(stage, &fresh, wall, &env)?;
        std::thread::sleep(Duration::from_millis(300));
        let log = fresh.state.join("log");
        let _ = fs::set_permissions(&log, fs::Permissions::from_mode(0o644));
        let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let verify = run::run(&mut stage.command(who, ground, &fresh.ws, &env, &bash(&self.verify)), minute);
        let lines: Vec<&str> = said.lines().filter(|l| l.starts_with("ESCAPED")).collect();
        let text = format!(
            "launcher: status {}{}; check on the host: {}; said: {}",
            ran.status,
            if ran.timed_out { " (timed out)" } else { "" },
            verify.status,
            tail(&said.replace(&*fresh.dir.to_string_lossy(), ""), 900),
        );
        Ok(Seen {
            escaped: verify.status != 0 || !lines.is_empty(),
            ran: said.lines().any(|l| l.trim_end() == "RAN"),
            text,
        })
    }

    fn launch(&self, stage: &Stage, fresh: &Fresh, wall: Wall, env: &Env) -> Result<Ran, String> {
        let script = fresh.ws.join("zz_attempt.sh");
        let mut text = String::new();
        for name in ["WS", "OUT", "MARK", "HOSTDEV", "HOSTHOME", "SHMDEV", "W4", "W6", "WDNS", "IMDS", "LPORT", "HOME"]
        {
            text += &format!("export {name}='{}'\n", env[name]);
        }
        text += &fs::read_to_string(fresh.ws.join("case.env")).unwrap_or_default();
        text += &format!("cd \"$WS\"\necho RAN\n{}\n", self.attempt);
        fresh.put(stage, &script, text);

        let mut inner: Vec<String> = vec!["bash".into(), script.to_string_lossy().into_owned()];
        let mut outer_env = fresh.launcher_env(stage);
        for (k, v) in &self.spec.env {
            outer_env.insert(k.clone(), expand(v, env));
        }
        if let Some(p) = &self.spec.path_prefix {
            outer_env.insert("PATH".into(), format!("{}:{}", expand(p, env), outer_env["PATH"]));
        }
        if wall == Wall::Nothing && self.spec.net.is_some() {
            // Without a sandbox there is no proxy to deceive: the control has proxies that ask nothing.
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
                outer_env.insert(name.into(), "http://127.0.0.1:3128".into());
            }
            outer_env.insert("ALL_PROXY".into(), "socks5h://127.0.0.1:1080".into());
        }
        if wall == Wall::Nothing && self.control == "filtered" {
            inner.splice(0..0, ["/usr/bin/python3".into(), "-c".into(), FILTERED.into()]);
        }
        let mut argv = wall.argv(stage, fresh, &self.spec, &inner);
        for (fd, path) in [(8, &self.spec.inherit_dir), (9, &self.spec.inherit_file)] {
            if let Some(p) = path {
                // The shell leaves descriptors above 2 open for the program that it becomes.
                inner = vec!["/bin/sh".into(), "-c".into(), format!("exec {fd}<\"$0\"; exec \"$@\""), expand(p, env)];
                inner.append(&mut argv);
                argv = inner.clone();
            }
        }
        let cwd = self.spec.cwd.as_ref().map_or_else(|| fresh.ws.clone(), |c| expand(c, env).into());
        let mut command = stage.command(fresh.who, self.ground(stage), &cwd, &outer_env, &argv);
        let log = fresh.state.join("log");
        let limit = Duration::from_secs(90);
        if self.tty {
            let account = stage.account();
            let owner = if fresh.who == Who::Root { (0, 0) } else { (account.uid, account.gid) };
            let seen = Terminal::open(owner)
                .and_then(|t| t.run(&command, &[], limit))
                .map_err(|e| format!("no terminal: {e}"))?;
            let _ = fs::write(&log, &seen.ran.out);
            let _ = fs::write(fresh.state.join("tty_pending"), &seen.pending);
            return Ok(seen.ran);
        }
        let kill = self.spec.kill_launcher_after.map(Duration::from_secs_f32);
        run::run_into(&mut command, &log, limit, kill).map_err(|e| e.to_string())
    }
}

pub fn tail(text: &str, n: usize) -> String {
    let text = text.trim();
    let from = text.char_indices().rev().nth(n).map_or(0, |(i, _)| i);
    text[from..].to_owned()
}
