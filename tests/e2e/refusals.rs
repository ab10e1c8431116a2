//! Bad input and bad hosts: each has its diagnosis and its exit status, and nothing is run.

use crate::fresh::{Env, Fresh};
use crate::lifecycle::{guarded, launch};
use crate::run::{self, Ran};
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A launch that must be refused: a shell text that prepares (with `$RF` the program), the arguments after `run`, the
/// status, and a word that the message must have.
struct Refusal {
    name: &'static str,
    prepare: &'static str,
    args: &'static str,
    status: i32,
    says: &'static str,
}

const RAN: &str = "touch \"$WS/it-ran\"";

const REFUSALS: &[Refusal] = &[
    Refusal {
        name: "missing-program",
        prepare: "",
        args: "-- no-such-program-here",
        status: 127,
        says: "no-such-program-here",
    },
    Refusal { name: "missing-program-by-path", prepare: "", args: "-- ./not-there", status: 127, says: "not-there" },
    Refusal {
        name: "not-executable",
        prepare: "echo 'touch $WS/it-ran' > plain",
        args: "-- ./plain",
        status: 126,
        says: "plain",
    },
    Refusal { name: "a-folder-as-program", prepare: "mkdir folder", args: "-- ./folder", status: 126, says: "folder" },
    Refusal {
        name: "policy-is-not-toml",
        prepare: "echo '{ this is not a policy' > \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "p.toml",
    },
    Refusal {
        name: "policy-is-not-there",
        prepare: "",
        args: "--policy \"$STATE/none.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "none.toml",
    },
    Refusal {
        name: "policy-is-a-folder",
        prepare: "mkdir \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "p.toml",
    },
    Refusal {
        name: "policy-unknown-key",
        prepare: "printf 'version = 1\\n[network]\\nallow_hosts = [\"api.example.com\"]\\n' > \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "allow_hosts",
    },
    Refusal {
        name: "policy-wrong-type",
        prepare: "printf 'version = 1\\n[files]\\nwrite = 7\\n' > \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "write",
    },
    Refusal {
        name: "policy-of-the-future",
        prepare: "printf 'version = 99\\n' > \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "version",
    },
    Refusal {
        name: "policy-with-credentials",
        prepare: "printf 'version = 1\\n[network]\\nallow = [\"api.example.com\"]\\n[[credential]]\\nname = \"x\"\\nsource = { env = \"X\" }\\nfor = [\"api.example.com\"]\\ninject = { header = \"Authorization\", format = \"Bearer {}\" }\\n' > \"$STATE/p.toml\"",
        args: "--policy \"$STATE/p.toml\" -- bash -c \"$RAN\"",
        status: 125,
        says: "credential",
    },
    Refusal {
        name: "project-policy-broken",
        prepare: "echo 'version = ' > ringfence.toml",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "ringfence.toml",
    },
    Refusal {
        name: "user-policy-broken",
        prepare: "mkdir -p ~/.config/ringfence; echo '[files' > ~/.config/ringfence/policy.toml",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "policy.toml",
    },
    Refusal {
        name: "unknown-preset",
        prepare: "",
        args: "--preset no-such-preset -- bash -c \"$RAN\"",
        status: 125,
        says: "no-such-preset",
    },
    Refusal {
        name: "workspace-is-the-root",
        prepare: "",
        args: "--workspace / -- bash -c \"$RAN\"",
        status: 125,
        says: "workspace",
    },
    Refusal {
        name: "workspace-is-the-home",
        prepare: "",
        args: "--workspace \"$HOME\" -- bash -c \"$RAN\"",
        status: 125,
        says: "workspace",
    },
    Refusal {
        name: "workspace-is-above-the-home",
        prepare: "",
        args: "--workspace \"$HOME/..\" -- bash -c \"$RAN\"",
        status: 125,
        says: "workspace",
    },
    Refusal {
        name: "writable-root-is-a-link",
        prepare: "ln -s \"$OUT\" build",
        args: "--write \"$WS/build\" -- bash -c \"$RAN\"",
        status: 125,
        says: "build",
    },
    Refusal {
        name: "too-wide-a-host",
        prepare: "",
        args: "--allow-host '*.com' -- bash -c \"$RAN\"",
        status: 125,
        says: "*.com",
    },
    Refusal {
        name: "not-a-host",
        prepare: "",
        args: "--allow-host 'a@b.test' -- bash -c \"$RAN\"",
        status: 125,
        says: "a@b.test",
    },
    Refusal { name: "not-a-size", prepare: "", args: "--memory lots -- bash -c \"$RAN\"", status: 125, says: "lots" },
    Refusal {
        name: "unknown-flag",
        prepare: "",
        args: "--no-such-flag -- bash -c \"$RAN\"",
        status: 125,
        says: "no-such-flag",
    },
    Refusal { name: "no-program", prepare: "", args: "", status: 125, says: "" },
    Refusal {
        name: "deleted-working-directory",
        prepare: "mkdir gone; cd gone; rmdir ../gone",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "",
    },
    Refusal {
        name: "user-namespaces-forbidden",
        prepare: "WRAP='unshare -Ur sh -c \"echo 0 > /proc/sys/user/max_user_namespaces && exec \\\"\\$@\\\"\" sh'",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "user_namespaces",
    },
    Refusal {
        name: "audit-cannot-be-written",
        prepare: "",
        args: "--audit /proc/none/audit.jsonl -- bash -c \"$RAN\"",
        status: 125,
        says: "audit",
    },
];

/// The same for things that only root can arrange, in a mount namespace of their own.
const ROOT_REFUSALS: &[Refusal] = &[
    Refusal {
        name: "no-proc",
        prepare: "WRAP='unshare -m sh -c \"umount -l /proc && exec \\\"\\$@\\\"\" sh'",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "/proc",
    },
    Refusal {
        name: "full-disk",
        prepare: "WRAP='unshare -m sh -c \"mkdir -p \\$HOME/.local/share && mount -t tmpfs -o size=16k,nr_inodes=4 none \\$HOME/.local/share && head -c 16384 /dev/zero > \\$HOME/.local/share/fill; touch \\$HOME/.local/share/a \\$HOME/.local/share/b; exec \\\"\\$@\\\"\" sh'",
        args: "-- bash -c \"$RAN\"",
        status: 125,
        says: "",
    },
];

type Check = fn(&Stage, &Fresh) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("policy-inside-the-workspace", policy_inside),
    ("longest-path", longest_path),
    ("names-that-are-not-text", odd_names),
    ("project-policy-only-narrows", project_narrows),
    ("trust-pins-the-content", trust),
    ("dry-run", dry_run),
    ("why-and-explain", why),
    ("audit-of-a-run", audit),
];

pub fn collect(trials: &mut Vec<Trial>) {
    for who in [Who::User, Who::Root] {
        let list = REFUSALS.iter().chain(if who == Who::Root { ROOT_REFUSALS } else { &[] });
        for refusal in list {
            let name = format!("refusals::{}::{}", who.name(), refusal.name);
            trials.push(Trial::new(name, Cost::Quick, move |stage| {
                if let Some(why) = stage.lacks(who, false) {
                    return Outcome::Skipped(why);
                }
                refuse(stage, &Fresh::new(stage, who, refusal.name), refusal)
            }));
        }
        for (name, check) in CHECKS {
            trials.push(Trial::new(format!("refusals::{}::{name}", who.name()), Cost::Quick, move |stage| {
                guarded(stage, who, name, *check)
            }));
        }
    }
}

/// Runs a shell text on the host with `$RF` and `$RAN` set.
pub fn host(stage: &Stage, fresh: &Fresh, text: &str) -> Ran {
    let mut env = fresh.env(stage);
    env.insert("RF".into(), stage.bin.to_string_lossy().into_owned());
    env.insert("RAN".into(), RAN.into());
    env.insert("NO_COLOR".into(), "1".into());
    let argv = ["bash", "-c", text].map(str::to_owned);
    run::run(&mut stage.command(fresh.who, Ground::Host, &fresh.ws, &env, &argv), Duration::from_secs(40))
}

fn refuse(stage: &Stage, fresh: &Fresh, refusal: &Refusal) -> Outcome {
    if stage.wall != crate::wall::Wall::Ringfence {
        return Outcome::Skipped("a test of ringfence alone".into());
    }
    let ran = host(
        stage,
        fresh,
        &format!(
            "WRAP=; {}\neval \"$WRAP \\\"\\$RF\\\" run --no-ask \"'{}'",
            refusal.prepare,
            refusal.args.replace('\'', "'\\''")
        ),
    );
    let mut wrong = Vec::new();
    if ran.status != refusal.status {
        wrong.push(format!("status {} and not {}", ran.status, refusal.status));
    }
    if fresh.ws.join("it-ran").exists() {
        wrong.push("the command was run".into());
    }
    if !ran.out.is_empty() {
        wrong.push("something stands on standard output".into());
    }
    let said = ran.err.to_lowercase();
    if said.trim().is_empty() || !said.contains(&refusal.says.to_lowercase()) {
        wrong.push(format!("the message does not say {:?}", refusal.says));
    }
    if said.contains("panicked") || said.contains("backtrace") {
        wrong.push("it is a crash and not a message".into());
    }
    if wrong.is_empty() {
        Outcome::Passed(String::new())
    } else {
        Outcome::Failed(format!("{}\n{}", wrong.join("; "), ran.show()))
    }
}

fn want(good: bool, what: &str, ran: &Ran) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{what}\n{}", ran.show())) }
}

fn policy_inside(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.put(stage, &fresh.ws.join("mine.toml"), "version = 1\n[files]\nwrite = [\".\"]\n");
    let r = host(
        stage,
        fresh,
        "$RF run --no-ask --policy mine.toml -- bash -c 'echo \"# more\" >> mine.toml && echo WROTE; mv mine.toml x 2>/dev/null && echo MOVED; touch other && echo other'",
    );
    want(r.out == "other\n", "the policy file is write-protected and the rest is not", &r)?;
    want(r.err.contains("mine.toml"), "a policy file in a writable folder is warned of", &r)
}

fn longest_path(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    // PATH_MAX is 4096 with the terminating NUL (limits.h(0p)); this folder is a little below it.
    let part = "d".repeat(200);
    let n = (4000 - fresh.ws.as_os_str().len()) / 201;
    let r = host(
        stage,
        fresh,
        &format!(
            "p=$(printf '{part}/%.0s' $(seq {n})); mkdir -p $p && cd $p && $RF run --quiet --no-ask -- bash -c 'echo x > f && cat f; echo y 2>/dev/null > $OUT/f'; cat f; ls $OUT"
        ),
    );
    want(r.out == "x\nx\n", "a workspace with a path of nearly 4096 bytes", &r)
}

fn odd_names(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "d=$'bad\\xff\\xfename \\n x'; mkdir \"$d\" && cd \"$d\" && mkdir -p $'sub\\x80' && echo s > $'sub\\x80/.env' && $RF run --quiet --no-ask --write \"$PWD\" --deny-read \"$PWD\"/$'sub\\x80/.env' -- bash -c \"cat sub*/.env 2>/dev/null; echo x > $'f\\xff' && cat $'f\\xff'; pwd | wc -c\"; pwd | wc -c; [ -e $'f\\xff' ] && echo there";
    let r = host(stage, fresh, text);
    let lines: Vec<&str> = r.out.lines().collect();
    want(
        lines.len() == 4 && lines[0] == "x" && lines[1] == lines[2] && lines[3] == "there",
        "names that are not UTF-8",
        &r,
    )
}

fn project_narrows(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.folder(stage, &fresh.home.join(".ssh"));
    fresh.put(stage, &fresh.home.join(".ssh/id_ed25519"), "KEY");
    fresh.put(stage, &fresh.ws.join("private.txt"), "PRIVATE\n");
    fresh.put(stage, &fresh.ws.join("ringfence.toml"), "version = 1\n[files]\nwrite = [\"~/outside\", \"/\"]\nallow_read = [\"~/.ssh\"]\nhome = \"visible\"\ndeny_read = [\"private.txt\"]\n[network]\nallow = [\"evil.test\"]\n[env]\n");
    let r = host(
        stage,
        fresh,
        "$RF run --no-ask -- bash -c 'cat ~/.ssh/id_ed25519 private.txt 2>/dev/null; echo x 2>/dev/null > ~/outside/f; getent hosts evil.test; echo end'; ls ~/outside",
    );
    want(r.out == "end\n", "an untrusted project file narrows and never widens", &r)
}

fn trust(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.put(stage, &fresh.ws.join("ringfence.toml"), "version = 1\n[files]\nwrite = [\"~/outside\"]\n");
    let attempt = "$RF run --no-ask --quiet -- bash -c 'echo x 2>/dev/null > ~/outside/f'; ls ~/outside";
    let r = host(stage, fresh, attempt);
    want(r.out.is_empty(), "before trust", &r)?;
    let r = host(
        stage,
        fresh,
        &format!(
            "$RF trust ringfence.toml >/dev/null </dev/null || $RF trust --yes ringfence.toml > /dev/null; {attempt}"
        ),
    );
    want(r.out == "f\n", "after trust", &r)?;
    let r = host(stage, fresh, &format!("rm ~/outside/f; echo '# changed' >> ringfence.toml; {attempt}"));
    want(r.out.is_empty(), "after the trusted content changed", &r)?;
    let r = host(
        stage,
        fresh,
        "$RF run --no-ask -- bash -c 'echo \"# by the agent\" >> ringfence.toml'; tail -n 1 ringfence.toml",
    );
    want(r.out == "# changed\n", "the project's policy file is write-protected inside", &r)
}

fn dry_run(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let before = tree(&fresh.home);
    let r = host(stage, fresh, "$RF run --dry-run -- bash -c \"$RAN\"");
    want(r.ok() && !fresh.ws.join("it-ran").exists(), "--dry-run runs nothing", &r)?;
    want(tree(&fresh.home) == before, "--dry-run makes nothing", &r)
}

fn tree(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for e in fs::read_dir(folder).into_iter().flatten().flatten() {
        all.push(e.path().to_string_lossy().into_owned());
        if e.file_type().is_ok_and(|t| t.is_dir()) {
            all.extend(tree(&e.path()));
        }
    }
    all.sort();
    all
}

fn why(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.folder(stage, &fresh.home.join(".ssh"));
    fresh.put(stage, &fresh.home.join(".ssh/id_ed25519"), "KEY");
    let r = host(stage, fresh, "$RF why read ~/.ssh/id_ed25519");
    want(r.out.contains("ssh") && !r.out.contains("allowed"), "why read", &r)?;
    let r = host(stage, fresh, "$RF why write \"$WS/file\"");
    want(r.out.contains("allowed"), "why write in the workspace", &r)?;
    let r = host(stage, fresh, "$RF why evil.test:443");
    want(r.out.contains("denied") && r.out.contains("--allow-host"), "why a host that no rule names", &r)?;
    let r = host(stage, fresh, "$RF why --allow-host api.good.test api.good.test:443");
    want(r.out.contains("allowed"), "why a host that a flag allows", &r)?;
    let r = host(stage, fresh, "$RF explain --json --allow-host api.good.test");
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(&r.out);
    want(r.ok() && parsed.is_ok() && r.out.contains("api.good.test"), "explain --json", &r)?;
    let r = host(stage, fresh, "$RF doctor");
    want(r.ok() && r.out.contains("process"), "doctor", &r)?;
    let r = host(stage, fresh, "$RF preset list && $RF preset show claude-code");
    want(r.ok() && r.out.contains("claude-code") && r.out.contains("api.anthropic.com"), "preset", &r)
}

fn audit(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let file = fresh.state.join("audit.jsonl");
    let path = file.to_string_lossy().into_owned();
    let flags = ["--audit", path.as_str(), "--allow-host", "api.good.test", "--allow-host", "10.9.9.9"];
    let r = run::run(
        &mut launch(stage, fresh, &flags, "curl -s -m 5 http://evil.test/ -o /dev/null; exit 3", &Env::new()),
        Duration::from_secs(40),
    );
    want(r.status == 3, "the run", &r)?;
    let text = fs::read_to_string(&file).map_err(|e| format!("no audit file: {e}\n{}", r.show()))?;
    let events: Vec<serde_json::Value> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let has = |kind: &str| events.iter().any(|e| e["event"] == kind);
    want(
        events.len() == text.lines().count() && has("started") && has("proved") && has("denied") && has("exited"),
        &format!("events:\n{text}"),
        &r,
    )?;
    want(
        events.iter().any(|e| e["event"] == "exited" && e["status"] == 3),
        &format!("the status is logged:\n{text}"),
        &r,
    )?;
    let shown = host(stage, fresh, &format!("$RF log --file '{path}' --denied"));
    want(shown.ok() && shown.out.contains("evil.test"), "log --denied", &shown)
}
