//! The threats of the network, through every door of the finished program, two-sided: the client was refused and the
//! pretended outside saw nothing; beside each refusal stands something that must work, and a control without walls.

use crate::case::load;
use crate::fresh::Fresh;
use crate::run;
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use crate::wall::{Spec, Wall};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// One line of `doors.jsonl`.
#[derive(Debug, Clone, serde::Deserialize)]
struct Threat {
    threat: String,
    title: String,
    net: Vec<String>,
    attempts: Vec<Value>,
}

/// One attempt at one door, with what must come of it.
struct Attempt {
    mark: String,
    what: String,
    expect: String,
    control: String,
    value: Value,
}

/// What one run of the list showed: per attempt the client's word and the lines of the pretended outside.
struct Seen {
    got: BTreeMap<String, (String, String)>,
    outside: BTreeMap<String, Vec<String>>,
    audit: Vec<String>,
    show: String,
}

pub fn collect(trials: &mut Vec<Trial>) {
    let threats: Vec<Threat> = load("doors.jsonl");
    for who in [Who::User, Who::Root] {
        for threat in threats.clone() {
            trials.push(Trial::new(format!("doors::{}::{}", who.name(), threat.threat), Cost::Slow, move |stage| {
                one(stage, who, &threat)
            }));
        }
    }
}

/// One attempt for each door that is named, with a mark of its own.
fn unfold(threat: &Threat, fresh: &Fresh) -> Vec<Attempt> {
    let mut all = Vec::new();
    for a in &threat.attempts {
        let doors: Vec<&str> = match &a["door"] {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        for door in doors {
            let mark = format!("{}n{:03}", fresh.mark, all.len());
            let text = serde_json::to_string(a).unwrap_or_default().replace("$MARK", &mark);
            let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
            value["door"] = json!(door);
            value["id"] = json!(mark);
            value["mark"] = json!(mark);
            let expect = a["expect"].as_str().unwrap_or("refused").to_owned();
            let control = a["control"].as_str().unwrap_or("reached").to_owned();
            let what = format!("{door} {}", a.get("authority").or(a.get("address")).unwrap_or(&a["host"]));
            let what = format!("{what} port {}", a["port"]);
            all.push(Attempt { mark, what, expect, control, value });
        }
    }
    all
}

fn one(stage: &Stage, who: Who, threat: &Threat) -> Outcome {
    if let Some(why) = stage.lacks(who, true) {
        return Outcome::Skipped(why);
    }
    let mut wrong = Vec::new();

    let fresh = Fresh::new(stage, who, &threat.threat);
    // Where the control cannot show anything (nobody is at that address, no client would send that name), it only waits.
    let attempts: Vec<Attempt> = unfold(threat, &fresh).into_iter().filter(|a| a.control == "reached").collect();
    let control = try_all(stage, &fresh, threat, &attempts, Wall::Nothing);
    for a in &attempts {
        let (got, detail) = control.got.get(&a.mark).cloned().unwrap_or_default();
        let seen = control.outside.get(&a.mark).is_some_and(|l| !l.is_empty());
        if got != "reached" && !seen {
            wrong.push(format!("control: {} shows nothing without walls: {got} {detail}", a.what));
        }
    }
    drop(fresh);

    let fresh = Fresh::new(stage, who, &threat.threat);
    let attempts = unfold(threat, &fresh);
    let seen = try_all(stage, &fresh, threat, &attempts, stage.wall);
    let mut refused = 0;
    for a in &attempts {
        let Some((got, detail)) = seen.got.get(&a.mark) else {
            wrong.push(format!("{}: no answer", a.what));
            continue;
        };
        let lines = seen.outside.get(&a.mark).cloned().unwrap_or_default();
        let good = match a.expect.as_str() {
            "reached" => got == "reached" && lines.iter().any(|l| !l.starts_with("dns")),
            "answered" => got == "reached",
            "refused" => got == "refused" && lines.is_empty(),
            "unseen" => got != "error" && lines.is_empty(),
            "harmless" => {
                got != "error" && !lines.iter().any(|l| l.starts_with("loop") || l.contains("169.254.169.254"))
            }
            other => panic!("no such expectation: {other}"),
        };
        refused += usize::from(a.expect == "refused" && a.value["door"] != "udp" && a.value["door"] != "direct");
        if !good {
            wrong.push(format!(
                "{}: {got} ({detail}) where {} was expected; the outside saw {lines:?}",
                a.what, a.expect
            ));
        }
    }
    if stage.wall == Wall::Ringfence {
        check_audit(&fresh, &seen.audit, refused, &mut wrong);
    }
    if wrong.is_empty() {
        return Outcome::Passed(format!("{}: {} attempts", threat.title, attempts.len()));
    }
    Outcome::Failed(format!(
        "{}: {} of {} attempts\n  {}\n{}",
        threat.title,
        wrong.len(),
        attempts.len(),
        wrong.join("\n  "),
        seen.show
    ))
}

fn check_audit(fresh: &Fresh, audit: &[String], refused: usize, wrong: &mut Vec<String>) {
    let mut denied = 0;
    for line in audit {
        match serde_json::from_str::<Value>(line) {
            Ok(v) if v["event"] == "denied" => {
                denied += 1;
                if v["code"].as_str().is_none_or(str::is_empty) || v["reason"].as_str().is_none_or(str::is_empty) {
                    wrong.push(format!("audit: a denial without code or reason: {line}"));
                }
            }
            Ok(v) if v.get("forged").is_some() => wrong.push(format!("audit: a forged line: {line}")),
            Ok(_) => {}
            Err(e) => wrong.push(format!("audit: not JSON ({e}): {line}")),
        }
        if line.contains(&format!("SECRET-{}", fresh.mark)) {
            wrong.push(format!("audit: a secret is logged: {line}"));
        }
    }
    if denied < refused {
        wrong.push(format!("audit: {denied} denials for {refused} refused attempts"));
    }
}

fn try_all(stage: &Stage, fresh: &Fresh, threat: &Threat, attempts: &[Attempt], wall: Wall) -> Seen {
    let list: Vec<&Value> = attempts.iter().map(|a| &a.value).collect();
    let list = fresh.put(stage, &fresh.ws.join("attempts.json"), serde_json::to_string(&list).unwrap_or_default());
    let script = fs::read(stage.base.join("bin/doors.py")).unwrap_or_default();
    let script = fresh.put(stage, &fresh.ws.join("doors.py"), script);
    let audit = fresh.state.join("audit.jsonl");
    let spec = Spec {
        net: Some(threat.net.clone()),
        flags: vec!["--audit".into(), audit.to_string_lossy().into_owned()],
        ..Spec::default()
    };
    let inner =
        ["/usr/bin/python3".to_owned(), script.to_string_lossy().into_owned(), list.to_string_lossy().into_owned()];
    let argv = wall.argv(stage, fresh, &spec, &inner);
    let ran = run::run(
        &mut stage.command(fresh.who, Ground::World, &fresh.ws, &fresh.launcher_env(stage), &argv),
        Duration::from_secs(240),
    );
    std::thread::sleep(Duration::from_millis(300));
    let mut got = BTreeMap::new();
    for line in ran.out.lines() {
        if let Ok(v) = serde_json::from_str::<Value>(line) {
            let text = |k: &str| v[k].as_str().unwrap_or_default().to_owned();
            got.insert(text("id"), (text("got"), text("detail")));
        }
    }
    let outside = attempts.iter().map(|a| (a.mark.clone(), stage.seen_outside(&a.mark))).collect();
    let audit = fs::read_to_string(audit).unwrap_or_default().lines().map(str::to_owned).collect();
    Seen { got, outside, audit, show: ran.show() }
}
