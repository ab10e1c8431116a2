//! What stands around an attempt, and how a policy is told to it.

use crate::fresh::Fresh;
use crate::stage::Stage;
use std::collections::BTreeMap;

/// The wall under test, or what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// Nothing: the control.
    Nothing,
    /// A plain bubblewrap call, to test the tests.
    Bwrap,
    Ringfence,
}

/// A policy as the cases write it. Paths and values may name variables of the case.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub write: Option<Vec<String>>,
    pub deny_read: Option<Vec<String>>,
    #[serde(default)]
    pub deny_write: Vec<String>,
    pub net: Option<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub env_deny: Vec<String>,
    pub max_procs: Option<u32>,
    pub max_memory_mib: Option<u32>,
    pub max_wall_s: Option<u32>,
    pub raw_policy: Option<String>,
    pub path_prefix: Option<String>,
    pub inherit_dir: Option<String>,
    pub inherit_file: Option<String>,
    pub user: Option<String>,
    pub cwd: Option<String>,
    pub kill_launcher_after: Option<f32>,
    /// Flags of ours that no other tool has.
    #[serde(default)]
    pub flags: Vec<String>,
}

impl Wall {
    pub fn from_env() -> Result<Self, String> {
        match std::env::var("RINGFENCE_E2E_WALL").as_deref() {
            Err(_) | Ok("" | "ringfence") => Ok(Self::Ringfence),
            Ok("bwrap") => Ok(Self::Bwrap),
            Ok("none") => Ok(Self::Nothing),
            Ok(other) => Err(format!("RINGFENCE_E2E_WALL={other}: none, bwrap or ringfence")),
        }
    }

    /// The whole command line that runs `inner` behind this wall.
    pub fn argv(self, stage: &Stage, fresh: &Fresh, spec: &Spec, inner: &[String]) -> Vec<String> {
        let env = fresh.env(stage);
        let expand = |s: &String| expand(s, &env);
        let ws = fresh.ws.to_string_lossy().into_owned();
        let mut argv: Vec<String> = Vec::new();
        match self {
            Self::Nothing => {}
            Self::Bwrap => {
                let words = format!(
                    "/usr/bin/bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all --die-with-parent --bind {ws} {ws} --chdir {ws}"
                );
                argv.extend(words.split(' ').map(str::to_owned));
                let ssh = fresh.home.join(".ssh");
                if ssh.exists() {
                    argv.extend(["--tmpfs".into(), ssh.to_string_lossy().into_owned()]);
                }
            }
            Self::Ringfence => {
                argv.extend([stage.bin.to_string_lossy().into_owned(), "run".into(), "--no-ask".into()]);
                let mut flag = |name: &str, value: String| argv.extend([name.to_owned(), value]);
                if let Some(text) = &spec.raw_policy {
                    flag("--policy", fresh.note(stage, "policy.toml", text).to_string_lossy().into_owned());
                }
                for p in spec.write.iter().flatten().map(expand).filter(|p| *p != ws) {
                    flag("--write", p);
                }
                for p in spec.deny_read.clone().unwrap_or_else(|| vec!["$HOME/.ssh".into()]).iter().map(expand) {
                    flag("--deny-read", p);
                }
                for p in spec.deny_write.iter().map(expand) {
                    flag("--deny-write", p);
                }
                for h in spec.net.iter().flatten() {
                    flag("--allow-host", h.clone());
                }
                if spec.net.as_ref().is_some_and(|n| n.iter().any(|h| h.contains(".test"))) {
                    // The pretended outside has a private address, which a name may lead to only when a rule says so.
                    flag("--allow-host", "10.9.9.9".into());
                    if spec.net.iter().flatten().any(|h| h.starts_with("tls.")) {
                        flag("--allow-host", "10.9.9.10".into());
                    }
                }
                for name in &spec.env_deny {
                    flag("--env-deny", name.clone());
                }
                let limits = [
                    ("--pids", spec.max_procs.map(|n| n.to_string())),
                    ("--memory", spec.max_memory_mib.map(|n| format!("{n}M"))),
                    ("--wall", spec.max_wall_s.map(|n| format!("{n}s"))),
                ];
                for (name, value) in limits {
                    if let Some(v) = value {
                        flag(name, v);
                    }
                }
                argv.extend(spec.flags.iter().map(expand));
                argv.push("--".into());
            }
        }
        argv.extend_from_slice(inner);
        argv
    }
}

/// Puts the values of a case's variables in place of `$NAME`.
pub fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let name: String = rest[at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        match env.get(&name) {
            Some(value) if !name.is_empty() => out.push_str(value),
            _ => out.push_str(&rest[at..=at + name.len()]),
        }
        rest = &rest[at + 1 + name.len()..];
    }
    out + rest
}
