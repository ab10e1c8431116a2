//! The usability corpus: ordinary developer work that must keep working.

use crate::case::{load, tail};
use crate::fresh::{Env, Fresh};
use crate::run::{self, Input, Ran};
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use crate::terminal::{Key, Terminal};
use crate::wall::{Spec, Wall, expand};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// One line of `usability.jsonl`.
#[derive(Debug, Clone, serde::Deserialize)]
struct Work {
    id: String,
    setup: String,
    command: String,
    expect_rc: i32,
    #[serde(default)]
    expect_re: String,
    #[serde(default)]
    check: String,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    net: Vec<String>,
    write: Option<Vec<String>>,
    cwd: Option<String>,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    keys: Vec<(u64, String)>,
    limit_s: Option<u64>,
    /// Flags of ours, for what is shown by a rule and not by itself.
    #[serde(default)]
    flags: Vec<String>,
}

/// Cases that do not hold yet, with the reason.
const LATER: &[(&str, &str)] = &[(
    "uc-05-sudo-fails-cleanly",
    "next: in a user namespace with one number setuid(2) to another one answers EINVAL; the filter has to say EPERM",
)];

/// Programs that show that what a case needs is there.
const PROGRAMS: &[(&str, &str)] = &[
    ("default-jdk", "javac"),
    ("maven", "mvn"),
    ("docker-cli", "docker"),
    ("openssh-client", "ssh"),
    ("procps", "ps"),
    ("util-linux", "script"),
    ("coreutils", "stty"),
    ("ncurses-bin", "tput"),
    ("python3-venv", "python3"),
    ("python3-pytest", "python3"),
];

pub fn collect(trials: &mut Vec<Trial>) {
    let cases: Vec<Work> = load("usability.jsonl");
    for who in [Who::User, Who::Root] {
        for case in cases.clone() {
            let slow = case.limit_s.is_some() || !case.net.is_empty();
            let cost = if slow { Cost::Slow } else { Cost::Quick };
            trials.push(Trial::new(format!("usability::{}::{}", who.name(), case.id), cost, move |stage| {
                one(stage, who, &case)
            }));
        }
    }
}

fn one(stage: &Stage, who: Who, case: &Work) -> Outcome {
    if let Some(why) = stage.lacks(who, false) {
        return Outcome::Skipped(why);
    }
    for need in &case.needs {
        let program = PROGRAMS.iter().find(|(name, _)| name == need).map_or(need.as_str(), |(_, program)| program);
        if !program.contains(' ') && !has_program(stage, program) {
            return Outcome::Skipped(format!("{need} is not installed"));
        }
    }
    if case.net.iter().any(|n| n.starts_with("@git-host")) {
        return Outcome::Skipped("shown by work::git_http and work::git_ssh".into());
    }
    let walled = attempt(stage, who, case, stage.wall);
    let Err(why) = walled else { return Outcome::Passed(String::new()) };
    if let Some((_, reason)) = LATER.iter().find(|(id, _)| *id == case.id) {
        return Outcome::Skipped((*reason).to_owned());
    }
    // What does not work without a sandbox shows nothing about the sandbox.
    match attempt(stage, who, case, Wall::Nothing) {
        Ok(()) => Outcome::Failed(why),
        Err(bare) => Outcome::Skipped(format!("{} does not work without a sandbox either\n{bare}", case.id)),
    }
}

pub fn has_program(stage: &Stage, program: &str) -> bool {
    let found = |dir: PathBuf| dir.join(program).exists();
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"].iter().any(|d| found(d.into()))
        || stage.rust_bin().is_some_and(|d| {
            // The folder is only bound inside the tests' own mount namespace.
            program == "cargo" || program == "rustc" || found(d)
        })
}

/// The environment of somebody whose programs use the machine's registries.
pub fn work_env(stage: &Stage, fresh: &Fresh) -> Env {
    let mut env = fresh.launcher_env(stage);
    let mut path = format!("{}/.local/bin:/usr/local/bin:/usr/bin:/bin", fresh.home.display());
    if let Some(rust) = stage.rust_bin() {
        path += &format!(":{}", rust.display());
    }
    env.insert("PATH".into(), path);
    env.insert("TERM".into(), "xterm-256color".into());
    env
}

/// What the machine's own package clients are told by the environment.
pub fn registry_env(env: &mut Env) {
    const STARTS: &[&str] = &[
        "npm_config_",
        "NPM_CONFIG_",
        "PIP_",
        "UV_",
        "CARGO_REGISTRIES_",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "MAVEN_",
        "GOPROXY",
        "SSL_CERT_",
        "NODE_EXTRA_",
        "REQUESTS_CA_",
        "CURL_CA_",
        "GIT_SSL_",
    ];
    for (k, v) in std::env::vars() {
        if STARTS.iter().any(|s| k.starts_with(s)) {
            env.insert(k, v);
        }
    }
}

fn attempt(stage: &Stage, who: Who, case: &Work, wall: Wall) -> Result<(), String> {
    let fresh = Fresh::new(stage, who, &case.id);
    let mut env = work_env(stage, &fresh);
    if !case.net.is_empty() || case.setup.contains("npm ") {
        registry_env(&mut env);
        env.insert("ALLOWED_URL".into(), registry_url());
    }
    let host_env: Env = fresh.env(stage).into_iter().chain(env.clone()).collect();
    let bash = |text: &str| ["bash", "-c", if text.is_empty() { "true" } else { text }].map(str::to_owned);
    let setup = run::run(
        &mut stage.command(who, Ground::Host, &fresh.ws, &host_env, &bash(&case.setup)),
        Duration::from_secs(180),
    );
    if !setup.ok() {
        return Err(format!("set-up: {}", setup.show()));
    }
    for p in case.write.iter().flatten().map(|p| PathBuf::from(expand(p, &host_env))) {
        fresh.folder(stage, &p);
    }
    let cwd = case.cwd.as_ref().map_or_else(|| fresh.ws.clone(), |c| expand(c, &host_env).into());
    let spec = Spec {
        write: case.write.clone(),
        net: (!case.net.is_empty()).then(|| case.net.clone()),
        flags: case.flags.clone(),
        ..Spec::default()
    };
    let argv = wall.argv(stage, &fresh, &spec, &["bash".into(), "-c".into(), case.command.clone()]);
    let limit = Duration::from_secs(case.limit_s.unwrap_or(60) * 3 / 2);
    let command = || stage.command(who, Ground::Host, &cwd, &env, &argv);

    let action = |name: &str| {
        case.keys.iter().find_map(|(after, k)| k.strip_prefix(name).map(|rest| (*after, rest.trim().to_owned())))
    };
    let ran: Ran = if case.tty {
        let keys: Vec<Key> =
            case.keys.iter().map(|(ms, text)| Key { after: Duration::from_millis(*ms), text: text.clone() }).collect();
        let account = stage.account();
        let owner = if who == Who::Root { (0, 0) } else { (account.uid, account.gid) };
        let seen = Terminal::open(owner)
            .and_then(|t| t.run(&command(), &keys, limit))
            .map_err(|e| format!("no terminal: {e}"))?;
        if !seen.modes_kept {
            return Err(format!("the modes of the terminal are not as they were\n{}", seen.ran.show()));
        }
        seen.ran
    } else if let Some((_, n)) = action("@stdin zeros") {
        run::run_with(&mut command(), limit, Input::Zeros(n.parse().unwrap_or(0)))
    } else {
        run::run(&mut command(), limit)
    };
    let said = format!("{}{}", ran.out, if case.tty { "" } else { &ran.err });
    let mut wrong = Vec::new();
    if ran.timed_out {
        wrong.push("timed out".to_owned());
    }
    if !case.tty && ran.status != case.expect_rc {
        wrong.push(format!("status {} and not {}", ran.status, case.expect_rc));
    }
    if !case.expect_re.is_empty() && !matches(&case.expect_re, &said) && !matches(&case.expect_re, &ran.out) {
        wrong.push(format!("the output does not match {:?}", case.expect_re));
    }
    if !case.check.is_empty() {
        let r = run::run(
            &mut stage.command(who, Ground::Host, &fresh.ws, &host_env, &bash(&case.check)),
            Duration::from_secs(60),
        );
        if !r.ok() {
            wrong.push(format!("the check on the host fails: {}", tail(&r.err, 200)));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}\n{}", wrong.join("; "), ran.show())) }
}

/// Where the machine's npm registry is, asked of the client itself.
fn registry_url() -> String {
    let out = Command::new("npm").args(["config", "get", "registry"]).stderr(Stdio::null()).output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// The patterns are Python's, so Python decides.
fn matches(pattern: &str, text: &str) -> bool {
    const PROGRAM: &str = "import re,sys\np,t=sys.argv[1],sys.stdin.buffer.read().decode(errors='replace').replace('\\r\\n','\\n')\nsys.exit(0 if re.search(p,t.strip(),0 if p.startswith('(?') else re.M) else 1)";
    let child = Command::new("/usr/bin/python3").args(["-c", PROGRAM, pattern]).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|s| s.success())
}
