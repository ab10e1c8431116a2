//! A run from start to end: what it leaves, what ends it, what it passes on.

use crate::fresh::{Env, Fresh};
use crate::run::{self, Ran};
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use crate::terminal::{Key, Terminal};
use crate::wall::{Spec, Wall};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

type Check = fn(&Stage, &Fresh) -> Result<(), String>;

const CHECKS: &[(&str, Cost, Check)] = &[
    ("killed-launcher", Cost::Quick, killed_launcher),
    ("killed-launcher-with-network", Cost::Quick, killed_launcher_with_network),
    ("nothing-left", Cost::Quick, nothing_left),
    ("ci-preset", Cost::Quick, ci_preset),
    ("nothing-left-with-presets", Cost::Quick, nothing_left_with_presets),
    ("nothing-left-after-kill", Cost::Quick, nothing_left_after_kill),
    ("twenty-at-once", Cost::Slow, twenty_at_once),
    ("signals", Cost::Quick, signals),
    ("interrupt-key", Cost::Quick, interrupt_key),
    ("resize", Cost::Quick, resize),
    ("streams-are-the-commands", Cost::Quick, streams),
    ("descriptors", Cost::Quick, descriptors),
    ("process-count", Cost::Quick, process_count),
    ("no-listener-on-the-host", Cost::Alone, no_listener),
];

pub fn collect(trials: &mut Vec<Trial>) {
    for who in [Who::User, Who::Root] {
        for (name, cost, check) in CHECKS {
            trials.push(Trial::new(format!("lifecycle::{}::{name}", who.name()), *cost, move |stage| {
                guarded(stage, who, name, *check)
            }));
        }
    }
}

/// Runs a check on a fresh ground, as ringfence only.
pub fn guarded(stage: &Stage, who: Who, name: &str, check: Check) -> Outcome {
    let world = matches!(name, "host-port" | "publish" | "killed-launcher-with-network" | "no-listener-on-the-host")
        || name.starts_with('T');
    if let Some(why) = stage.lacks(who, world) {
        return Outcome::Skipped(why);
    }
    if stage.wall != Wall::Ringfence {
        return Outcome::Skipped("a test of ringfence alone".into());
    }
    let fresh = Fresh::new(stage, who, name);
    match check(stage, &fresh) {
        Ok(()) => Outcome::Passed(String::new()),
        Err(why) => Outcome::Failed(why),
    }
}

pub fn ground(stage: &Stage) -> Ground {
    if stage.has_world() { Ground::World } else { Ground::Host }
}

pub fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

/// A prepared launch of a shell text with some flags.
pub fn launch(stage: &Stage, fresh: &Fresh, flags: &[&str], shell: &str, more: &Env) -> std::process::Command {
    let spec = Spec { flags: words(flags), ..Spec::default() };
    let argv = Wall::Ringfence.argv(stage, fresh, &spec, &words(&["bash", "-c", shell]));
    let mut env = fresh.launcher_env(stage);
    env.extend(more.clone());
    stage.command(fresh.who, ground(stage), &fresh.ws, &env, &argv)
}

pub fn shell(stage: &Stage, fresh: &Fresh, flags: &[&str], text: &str) -> Ran {
    run::run(&mut launch(stage, fresh, flags, text, &Env::new()), Duration::from_secs(60))
}

/// The same text without a sandbox.
pub fn bare(stage: &Stage, fresh: &Fresh, text: &str) -> Ran {
    let mut command =
        stage.command(fresh.who, ground(stage), &fresh.ws, &fresh.launcher_env(stage), &words(&["bash", "-c", text]));
    run::run(&mut command, Duration::from_secs(60))
}

pub fn want(good: bool, what: &str, ran: &Ran) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{what}\n{}", ran.show())) }
}

pub fn until(limit: Duration, mut true_now: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !true_now() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

// --- ends ---------------------------------------------------------------------------------------------------------------

const FAMILY: &str = "python3 -c 'import os,time\nfor i in range(2):\n if os.fork()==0:\n  os.setsid(); time.sleep(120)\ntime.sleep(120)' $MARK & setsid sleep 120 & nohup sleep 120 & touch up; wait";

fn kill_family(stage: &Stage, fresh: &Fresh, flags: &[&str], walled: bool) -> Result<usize, String> {
    let mut command = if walled {
        launch(stage, fresh, flags, FAMILY, &Env::new())
    } else {
        stage.command(fresh.who, ground(stage), &fresh.ws, &fresh.launcher_env(stage), &words(&["bash", "-c", FAMILY]))
    };
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
    let up = fresh.ws.join("up");
    if !until(Duration::from_secs(15), || up.exists() && fresh.processes().len() >= 4) {
        run::kill_group(&child);
        return Err(format!("the family did not come up: {:?}", fresh.processes()));
    }
    std::thread::sleep(Duration::from_millis(200));
    run::signal(&child, Signal::KILL);
    let _ = child.wait();
    let _ = until(Duration::from_secs(2), || fresh.processes().is_empty());
    let left = fresh.processes().len();
    fresh.clean();
    let _ = fs::remove_file(up);
    Ok(left)
}

fn killed(stage: &Stage, fresh: &Fresh, flags: &[&str]) -> Result<(), String> {
    if kill_family(stage, fresh, flags, false)? == 0 {
        return Err("control: without a sandbox the family must survive its parent".into());
    }
    match kill_family(stage, fresh, flags, true)? {
        0 => Ok(()),
        n => Err(format!("{n} processes survive the launcher")),
    }
}

fn killed_launcher(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    killed(stage, fresh, &[])
}

fn killed_launcher_with_network(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    killed(stage, fresh, &["--allow-host", "api.good.test", "--allow-host", "10.9.9.9"])
}

// --- traces -------------------------------------------------------------------------------------------------------------

type Snapshot = BTreeMap<String, String>;

/// Names, numbers, modes, sizes and times of everything below the case's folders, and what the machine has of ours.
fn snapshot(stage: &Stage, fresh: &Fresh) -> Snapshot {
    let mut all = Snapshot::new();
    walk(&fresh.home, &mut all);
    all.retain(|p, _| !p.contains("/.local"));
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        for e in fs::read_dir(folder).into_iter().flatten().flatten() {
            let ours = e.metadata().is_ok_and(|m| m.uid() == stage.account().uid)
                || e.file_name().to_string_lossy().contains("ringfence");
            if ours {
                all.insert(e.path().to_string_lossy().into_owned(), "there".into());
            }
        }
    }
    let mounts = run::run(
        &mut stage.command(
            Who::User,
            ground(stage),
            Path::new("/"),
            &fresh.launcher_env(stage),
            &words(&["cat", "/proc/self/mountinfo"]),
        ),
        Duration::from_secs(10),
    );
    all.insert("mounts".into(), mounts.out);
    all
}

fn walk(folder: &Path, into: &mut Snapshot) {
    let note = |p: &Path, m: &fs::Metadata| {
        format!(
            "ino {} mode {:o} size {} mtime {}.{} links {}",
            m.ino(),
            m.mode(),
            if m.is_dir() { 0 } else { m.size() },
            m.mtime(),
            m.mtime_nsec(),
            if m.is_dir() { 0 } else { m.nlink() }
        ) + if p.is_symlink() { " link" } else { "" }
    };
    if let Ok(m) = fs::symlink_metadata(folder) {
        into.insert(folder.to_string_lossy().into_owned(), note(folder, &m));
    }
    for e in fs::read_dir(folder).into_iter().flatten().flatten() {
        let p = e.path();
        match fs::symlink_metadata(&p) {
            Ok(m) if m.is_dir() => walk(&p, into),
            Ok(m) => drop(into.insert(p.to_string_lossy().into_owned(), note(&p, &m))),
            Err(_) => {}
        }
    }
}

fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut all: Vec<String> = after
        .iter()
        .filter(|(k, v)| before.get(*k) != Some(v))
        .map(|(k, v)| format!("{k}: {:?} -> {v}", before.get(k)))
        .collect();
    all.extend(before.keys().filter(|k| !after.contains_key(*k)).map(|k| format!("{k} is gone")));
    all
}

fn furnish(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "mkdir -p ~/.ssh ~/.config/git ~/.local/share ~/bin; echo k > ~/.ssh/id_ed25519; echo rc > ~/.bashrc; git init -q .; mkdir sub; echo e > .env; echo s > sub/.env";
    let r = bare(stage, fresh, text);
    want(r.ok(), "could not furnish the home", &r)
}

fn nothing_left(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    furnish(stage, fresh)?;
    let before = snapshot(stage, fresh);
    let flags = ["--deny-read", "$WS/.env", "--deny-write", "$WS/sub", "--deny-read", "$HOME/.ssh"];
    let r = shell(stage, fresh, &flags, "ls -la ~ . >/dev/null; cat .env; true");
    want(r.ok(), "the run failed", &r)?;
    want(!r.out.contains('e'), "the denied file was read", &r)?;
    match differences(&before, &snapshot(stage, fresh)) {
        d if d.is_empty() => Ok(()),
        d => Err(format!("left behind:\n  {}", d.join("\n  "))),
    }
}

/// The machine's package clients are asked where their registries are; they must leave nothing either.
fn nothing_left_with_presets(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    furnish(stage, fresh)?;
    let before = snapshot(stage, fresh);
    let mut flags = Vec::new();
    for preset in ["node", "python", "rust", "go", "java", "git", "github", "mcp"] {
        flags.extend(["--preset", preset]);
    }
    let r = shell(stage, fresh, &flags, "true");
    want(r.ok(), "the run failed", &r)?;
    match differences(&before, &snapshot(stage, fresh)) {
        d if d.is_empty() => Ok(()),
        d => Err(format!("left behind:\n  {}", d.join("\n  "))),
    }
}

fn ci_preset(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = shell(stage, fresh, &["--preset", "ci"], "echo works");
    want(r.out == "works\n", "the preset for headless jobs runs as everybody", &r)
}

fn nothing_left_after_kill(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    furnish(stage, fresh)?;
    let before = snapshot(stage, fresh);
    let mut child = launch(stage, fresh, &["--deny-read", "$WS/.env"], "sleep 60", &Env::new())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    std::thread::sleep(Duration::from_millis(1500));
    run::signal(&child, Signal::KILL);
    let _ = child.wait();
    std::thread::sleep(Duration::from_millis(700));
    match differences(&before, &snapshot(stage, fresh)) {
        d if d.is_empty() => Ok(()),
        d => Err(format!("left behind:\n  {}", d.join("\n  "))),
    }
}

fn twenty_at_once(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    furnish(stage, fresh)?;
    let text = "for i in 1 2 3 4 5; do cat ~/.ssh/id_ed25519 .env 2>/dev/null && echo BROKEN; echo x 2>/dev/null > .git/hooks/pre-commit && echo BROKEN; sleep 0.3; done; echo $$ > own-$N && echo held";
    let children: Result<Vec<_>, _> = (0..20)
        .map(|n| {
            let more = Env::from([("N".to_owned(), n.to_string())]);
            launch(stage, fresh, &["--deny-read", "$WS/.env"], text, &more)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
        .collect();
    let mut bad = Vec::new();
    for (n, child) in children.map_err(|e| e.to_string())?.into_iter().enumerate() {
        let out = child.wait_with_output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        if !out.status.success() || said.trim() != "held" {
            bad.push(format!("{n}: {} {said} {}", out.status, String::from_utf8_lossy(&out.stderr)));
        }
    }
    let made = (0..20).filter(|n| fresh.ws.join(format!("own-{n}")).exists()).count();
    if bad.is_empty() && made == 20 {
        Ok(())
    } else {
        Err(format!("{} of 20 failed, {made} files were made\n{}", bad.len(), bad.join("\n")))
    }
}

// --- signals and streams ------------------------------------------------------------------------------------------------

fn signals(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    for (name, number) in [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("USR1", Signal::USR1),
        ("QUIT", Signal::QUIT),
    ] {
        let _ = fs::remove_file(fresh.ws.join("ready"));
        let text = format!("trap 'echo got-{name}; exit 7' {name}; touch ready; while :; do sleep 0.1; done");
        let mut child = launch(stage, fresh, &[], &text, &Env::new())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        if !until(Duration::from_secs(15), || fresh.ws.join("ready").exists()) {
            run::kill_group(&child);
            return Err("the command did not come up".into());
        }
        std::thread::sleep(Duration::from_millis(100));
        run::signal(&child, number);
        let (status, late) = run::wait(&mut child, Duration::from_secs(10));
        let mut said = String::new();
        if let Some(mut out) = child.stdout.take() {
            let _ = std::io::Read::read_to_string(&mut out, &mut said);
        }
        if status != 7 || late || said.trim() != format!("got-{name}") {
            return Err(format!("SIG{name}: status {status}, late {late}, said {said:?}"));
        }
    }
    let r = shell(stage, fresh, &[], "kill -KILL $$");
    want(r.status == 137, "death by SIGKILL", &r)?;
    let r = shell(stage, fresh, &[], "ulimit -c 0; kill -ABRT $$");
    want(r.status == 134, "death by SIGABRT", &r)
}

fn typed(stage: &Stage, fresh: &Fresh, text: &str, keys: &[(u64, &str)]) -> Result<Ran, String> {
    let keys: Vec<Key> =
        keys.iter().map(|(ms, k)| Key { after: Duration::from_millis(*ms), text: (*k).to_owned() }).collect();
    let account = stage.account();
    let owner = if fresh.who == Who::Root { (0, 0) } else { (account.uid, account.gid) };
    let command = launch(stage, fresh, &[], text, &Env::new());
    let seen = Terminal::open(owner)
        .and_then(|t| t.run(&command, &keys, Duration::from_secs(30)))
        .map_err(|e| e.to_string())?;
    want(seen.modes_kept, "the modes of the terminal are not as they were", &seen.ran)?;
    Ok(seen.ran)
}

fn interrupt_key(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = typed(stage, fresh, "trap 'echo got-int; exit 9' INT; echo ready; sleep 20", &[(1000, "\u{3}")])?;
    want(r.status == 9 && r.out.contains("got-int"), "Ctrl-C", &r)?;
    let r = typed(stage, fresh, "exec sleep 20", &[(1000, "\u{3}")])?;
    want(r.status == 130, "Ctrl-C without a handler", &r)
}

fn resize(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = typed(
        stage,
        fresh,
        "stty size; for i in $(seq 60); do sleep 0.1; [ \"$(stty size)\" = '33 111' ] && break; done; stty size",
        &[(800, "@resize 33 111")],
    )?;
    want(r.out.contains("24 80") && r.out.contains("33 111"), "the new size did not arrive", &r)
}

fn streams(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = shell(stage, fresh, &[], "echo out; echo err >&2");
    want(r.out == "out\n" && r.err.contains("err\n"), "standard output is the command's alone", &r)?;
    let r = shell(stage, fresh, &["--quiet"], "echo out; echo err >&2");
    want(r.out == "out\n" && r.err == "err\n", "--quiet adds nothing", &r)?;
    let mut command = launch(stage, fresh, &["--quiet"], "read a; echo \"[$a]\"; cat | wc -c", &Env::new());
    let r = run::run_with(&mut command, Duration::from_secs(30), run::Input::Text("first\nsecond\n"));
    want(r.out == "[first]\n7\n", "standard input arrives untouched", &r)
}

fn descriptors(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = shell(
        stage,
        fresh,
        &["--quiet"],
        "python3 -c 'import os\nprint(sorted(int(f) for f in os.listdir(\"/proc/self/fd\"))[:-1])'",
    );
    want(r.out.trim() == "[0, 1, 2]", "descriptors beyond the streams", &r)
}

fn process_count(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let mut child = launch(stage, fresh, &["--allow-host", "api.good.test"], "touch up; exec sleep 30", &Env::new())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let up = until(Duration::from_secs(15), || fresh.ws.join("up").exists());
    std::thread::sleep(Duration::from_millis(300));
    let family = descendants(child.id());
    run::signal(&child, Signal::KILL);
    let _ = child.wait();
    if !up {
        return Err("the command did not come up".into());
    }
    if family.len() < 3 { Ok(()) } else { Err(format!("{} processes: {family:?}", family.len() + 1)) }
}

fn descendants(of: u32) -> Vec<String> {
    let mut parents = BTreeMap::new();
    for e in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let (Ok(pid), Ok(stat)) =
            (e.file_name().to_string_lossy().parse::<u32>(), fs::read_to_string(e.path().join("stat")))
        {
            let parent = stat.rsplit(") ").next().and_then(|r| r.split(' ').nth(1)).and_then(|p| p.parse::<u32>().ok());
            parents.insert(pid, (parent.unwrap_or(0), stat));
        }
    }
    let mut found = vec![of];
    let mut names = Vec::new();
    while let Some(p) = found.pop() {
        for (pid, (_, stat)) in parents.iter().filter(|(_, (parent, _))| *parent == p) {
            found.push(*pid);
            names.push(stat.chars().take(40).collect());
        }
    }
    names
}

fn listeners(stage: &Stage, fresh: &Fresh) -> String {
    let text = "cat /proc/net/tcp /proc/net/tcp6 | awk '$4==\"0A\"{print $2}' | sort";
    bare(stage, fresh, text).out
}

fn no_listener(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let before = listeners(stage, fresh);
    let flags = ["--allow-host", "api.good.test", "--allow-host", "10.9.9.9"];
    let mut child = launch(stage, fresh, &flags, "curl -s http://api.good.test/up && touch up; sleep 30", &Env::new())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let up = until(Duration::from_secs(15), || fresh.ws.join("up").exists());
    let during = listeners(stage, fresh);
    run::signal(&child, Signal::KILL);
    let _ = child.wait();
    match (up, before == during) {
        (true, true) => Ok(()),
        (false, _) => Err("the command did not come up".into()),
        _ => Err(format!("listeners before:\n{before}\nduring:\n{during}")),
    }
}
