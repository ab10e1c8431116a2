//! The command's environment.
//!
//! The launcher's own, minus what the policy withholds, minus the launcher's proxies, minus addresses of sockets that are
//! not there inside, plus what the policy sets, plus what leads programs to the doors.

use crate::doors::DoorsPlan;
use crate::layout::Want;
use crate::sockets;
use crate::survey::Survey;
use ringfence_policy::{EnvDecision, HostPath, Layer, Verdict};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

/// Serialises names; values may be secrets and are left out, but for those that ringfence itself sets.
pub(crate) fn serialize<S: Serializer>(env: &[(OsString, OsString)], s: S) -> Result<S::Ok, S::Error> {
    let mut map = s.serialize_map(Some(env.len()))?;
    for (name, _) in env {
        map.serialize_entry(&name.to_string_lossy(), "…")?;
    }
    map.end()
}

/// What becomes of a variable, and why; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What becomes of it.
    pub fate: Fate,
    /// Why.
    pub why: String,
}

/// What becomes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The command gets the launcher's value.
    Passed,
    /// The command gets a value of the policy's or of ringfence's.
    Set,
    /// The command does not get it.
    Withheld,
}

/// The environment and how it came about.
pub(crate) struct Environment {
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) variables: Vec<Variable>,
    /// Folders that variables name and that must be made inside, with their modes.
    pub(crate) folders: Vec<(HostPath, u32)>,
}

/// Variables by which programs find a proxy. The launcher's own are never passed: they name a proxy that is not reachable
/// inside, and may hold a password.
const PROXIES: &[&str] = &[
    "all_proxy",
    "auto_proxy",
    "ftp_proxy",
    "grpc_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "node_use_env_proxy",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "npm_config_no_proxy",
    "npm_config_proxy",
    "cargo_http_proxy",
    "pip_proxy",
    "rsync_proxy",
    "socks_proxy",
    "socks_server",
    "yarn_http_proxy",
    "yarn_https_proxy",
];

/// Variables that name a socket in the way that [`socket_path`] reads.
const SOCKETS: &[&str] = &[
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GNOME_KEYRING_CONTROL",
    "GPG_AGENT_INFO",
    "I3SOCK",
    "NOTIFY_SOCKET",
    "PULSE_SERVER",
    "SESSION_MANAGER",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
    "TMUX",
    "VSCODE_GIT_IPC_HANDLE",
    "VSCODE_IPC_HOOK",
    "VSCODE_IPC_HOOK_CLI",
    "WAYLAND_DISPLAY",
];

/// Variables that are of no use without another one.
const COMPANIONS: &[(&str, &str)] = &[
    ("ICEAUTHORITY", "SESSION_MANAGER"),
    ("SSH_AGENT_PID", "SSH_AUTH_SOCK"),
    ("TMUX_PANE", "TMUX"),
    ("XAUTHORITY", "DISPLAY"),
];

/// Makes the environment.
pub(crate) fn build(survey: &Survey<'_>, doors: &DoorsPlan, cwd: &HostPath) -> Environment {
    let mut out = Environment { env: Vec::new(), variables: Vec::new(), folders: Vec::new() };
    let policy = &survey.policy.env;
    let ours = ours(survey, doors, cwd);
    let set: BTreeMap<&str, &str> = policy.set.iter().map(|set| (set.name.as_str(), set.value.as_str())).collect();
    let mut seen = BTreeSet::new();
    for (name, value) in &survey.request.env {
        // Of two of the same name, getenv(3) finds the first.
        if !seen.insert(name.clone()) {
            continue;
        }
        let text = name.to_string_lossy().into_owned();
        if set.contains_key(text.as_str()) || ours.contains_key(text.as_str()) {
            continue;
        }
        let (fate, why) = fate(survey, name, value, &mut out.folders);
        if fate == Fate::Passed {
            out.env.push((name.clone(), value.clone()));
        }
        out.variables.push(Variable { name: text, fate, why });
    }
    for set in &policy.set {
        out.env.push((OsString::from(&set.name), OsString::from(&set.value)));
        out.variables.push(Variable { name: set.name.clone(), fate: Fate::Set, why: format!("set by {}", set.origin) });
    }
    for (name, (value, why)) in &ours {
        if !set.contains_key(name.as_str()) {
            out.env.push((OsString::from(name), value.clone()));
            out.variables.push(Variable { name: name.clone(), fate: Fate::Set, why: (*why).to_owned() });
        }
    }
    out.variables.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// What ringfence sets, with the reason.
fn ours(survey: &Survey<'_>, doors: &DoorsPlan, cwd: &HostPath) -> BTreeMap<String, (OsString, &'static str)> {
    let mut out = BTreeMap::new();
    if survey.request.env.iter().any(|(name, _)| name == "PWD") {
        out.insert("PWD".to_owned(), (cwd.as_path().as_os_str().to_owned(), "where the command starts"));
    }
    let mut put = |name: &str, value: &str, why| {
        out.insert(name.to_owned(), (OsString::from(value), why));
    };
    put("RINGFENCE", "1", "tells programs that they run inside");
    put("RINGFENCE_WALL", "process", "tells programs that they run inside");
    if !doors.enabled {
        return out;
    }
    let proxy = format!("http://127.0.0.1:{}", doors.http);
    let local = "localhost,127.0.0.1,::1";
    let why = "leads to the proxy inside";
    // Every program looks for its own spelling. ALL_PROXY names the HTTP door as well: several HTTP libraries fail when
    // it names a SOCKS proxy and their SOCKS package is not installed.
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        put(name, &proxy, why);
    }
    for name in ["NO_PROXY", "no_proxy", "npm_config_noproxy"] {
        put(name, local, "servers inside are reached directly");
    }
    for name in ["npm_config_proxy", "npm_config_https_proxy"] {
        put(name, &proxy, why);
    }
    put("NODE_USE_ENV_PROXY", "1", "makes Node.js obey the variables above");
    out
}

/// What becomes of a variable of the launcher's.
fn fate(survey: &Survey<'_>, name: &OsStr, value: &OsStr, folders: &mut Vec<(HostPath, u32)>) -> (Fate, String) {
    let text = name.to_string_lossy();
    let EnvDecision { verdict, rule } = survey.policy.env.may_pass(name);
    let said = rule.as_ref().map(|rule| format!("`{}`: {}", rule.pattern, rule.origin));
    let built_in = rule.as_ref().is_none_or(|rule| rule.origin.layer == Layer::Builtin);
    if verdict != Verdict::Allowed {
        // The built-in list withholds what leads to sockets; it does not know which of them the policy allows.
        if built_in && is_reachable(survey, &text) {
            return match &*text {
                "XDG_RUNTIME_DIR" => folder(survey, value, folders),
                _ => (Fate::Passed, "leads to a socket that is allowed".to_owned()),
            };
        }
        return (Fate::Withheld, said.unwrap_or_default());
    }
    if PROXIES.contains(&text.to_ascii_lowercase().as_str()) {
        return (Fate::Withheld, "a proxy of the launcher's".to_owned());
    }
    if matches!(&*text, "TMPDIR" | "TMP" | "TEMP" | "XDG_RUNTIME_DIR") {
        return folder(survey, value, folders);
    }
    match said.filter(|_| !built_in) {
        Some(said) => (Fate::Passed, said),
        None if SOCKETS.contains(&leader(&text)) && !is_reachable(survey, &text) => {
            (Fate::Withheld, "leads to a socket that is not there inside".to_owned())
        }
        None => (Fate::Passed, "nothing withholds it".to_owned()),
    }
}

/// The variable without which this one is of no use.
fn leader(name: &str) -> &str {
    COMPANIONS.iter().find(|(companion, _)| *companion == name).map_or(name, |(_, leader)| leader)
}

/// A folder that programs expect to be writable: made where it can be, dropped where it would not be writable.
fn folder(survey: &Survey<'_>, value: &OsStr, folders: &mut Vec<(HostPath, u32)>) -> (Fate, String) {
    let Ok(path) = HostPath::new(value) else {
        return (Fate::Withheld, "not an absolute path".to_owned());
    };
    let real = survey.would_be(&path);
    match survey.layout.want(&real) {
        Want::Private(_) => {
            folders.push((real, 0o700));
            (Fate::Passed, "made inside".to_owned())
        }
        Want::Writable => (Fate::Passed, "writable".to_owned()),
        Want::Hidden | Want::ReadOnly => (Fate::Withheld, "names a folder that is not writable".to_owned()),
    }
}

/// The launcher's value of a variable.
fn value<'a>(survey: &Survey<'a>, name: &str) -> Option<&'a OsStr> {
    survey.request.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Whether a variable leads to something that can be reached inside: a socket that the policy allows, or a server by
/// host and port, on which the doors decide.
fn is_reachable(survey: &Survey<'_>, name: &str) -> bool {
    let name = leader(name);
    let Some(value) = value(survey, name) else { return false };
    if name == "XDG_RUNTIME_DIR" {
        let Ok(folder) = HostPath::new(value) else { return false };
        let folder = survey.would_be(&folder);
        return survey.policy.unix.iter().any(|rule| survey.would_be(&rule.path).is_within(&folder));
    }
    if !SOCKETS.contains(&name) {
        return false;
    }
    let text = value.to_string_lossy();
    if ["tcp:", "ssh:", "http:", "https:"].iter().any(|scheme| text.starts_with(scheme)) {
        return true;
    }
    socket_path(survey, name, &text).is_some_and(|path| sockets::is_allowed(survey, &path))
}

/// The path in a value: `unix:path=/run/...,guid=...`, `unix:///run/...`, `/tmp/tmux-1000/default,12,0`, `:0`, `wayland-0`.
fn socket_path(survey: &Survey<'_>, name: &str, text: &str) -> Option<HostPath> {
    if let Some(display) = text.strip_prefix(':').filter(|_| name == "DISPLAY") {
        let number = display.split('.').next().unwrap_or_default();
        return HostPath::new(format!("/tmp/.X11-unix/X{number}")).ok();
    }
    if name == "WAYLAND_DISPLAY" && !text.starts_with('/') {
        return Some(HostPath::new(value(survey, "XDG_RUNTIME_DIR")?).ok()?.join(text));
    }
    let path = text.get(text.find('/')?..)?;
    HostPath::new(path.split([',', ';']).next()?).ok()
}
