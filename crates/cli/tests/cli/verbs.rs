//! The verbs that run nothing.

use crate::scene::{Scene, everybody};

fn scene() -> Scene {
    Scene::new(everybody()[0])
}

#[test]
fn dry_run_prints_the_plan_and_runs_nothing() {
    let scene = scene();
    let outcome = scene.ringfence(["run", "--dry-run", "--", "sh", "-c", "echo ran > trace"]);
    outcome.ok();
    for part in ["workspace", "home", "files", "network", "walls", "plan"] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    assert!(!scene.work().join("trace").exists());
    scene.untouched();
}

#[test]
fn explain_tells_every_rule_with_its_origin() {
    let scene = scene();
    scene.file(
        &scene.home().join(".config/ringfence/policy.toml"),
        "version = 1\n[network]\nallow = [\"api.example.com\"]\n",
    );
    scene.file(&scene.work().join("ringfence.toml"), "version = 1\n[files]\ndeny_read = [\"secret\"]\n");
    let outcome = scene.ringfence(["explain", "--write", ".."]);
    let text = &outcome.ok().stdout;
    assert!(text.contains("policy.toml:3"), "{text}");
    assert!(text.contains("ringfence.toml:3"), "{text}");
    assert!(text.contains("not trusted"), "{text}");
    assert!(text.contains("--write"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&scene.ringfence(["explain", "--json"]).ok().stdout).unwrap();
    assert_eq!(json["sources"].as_array().unwrap().len(), 2);
    assert!(json["plan"]["mounts"].as_array().is_some_and(|mounts| !mounts.is_empty()));
    scene.ringfence(["explain", "--allow-host", "http://x"]).refused(125, &["RF0108"]);
}

#[test]
fn explain_knows_every_code() {
    let scene = scene();
    let outcome = scene.ringfence(["explain", "RF0103"]);
    assert!(outcome.ok().stdout.starts_with("RF0103: unknown key\n"));
    assert_eq!(scene.ringfence(["explain", "rf0103"]).stdout, outcome.stdout);
    assert!(scene.ringfence(["explain", "RF0327"]).ok().stdout.contains("policy file"));
    scene.ringfence(["explain", "RF9999"]).refused(125, &["RF9999"]);
    let all = scene.ringfence(["explain", "--codes"]);
    assert!(all.ok().stdout.contains("## RF0103") && all.stdout.contains("RF0327"));
}

#[test]
fn why_answers_with_the_rule_and_the_exit_status() {
    let scene = scene();
    scene.file(&scene.work().join(".env"), "KEY=1");
    let denied = scene.ringfence(["why", "--deny-read", ".env", "read", ".env"]);
    assert_eq!(denied.status, 1, "{denied:#?}");
    assert!(denied.stdout.starts_with("denied  "), "{}", denied.stdout);
    assert!(denied.stdout.contains("--deny-read"), "{}", denied.stdout);
    let allowed = scene.ringfence(["why", "write", "."]);
    assert!(allowed.ok().stdout.starts_with("allowed "), "{}", allowed.stdout);
    assert_eq!(scene.ringfence(["why", "write", "/etc/passwd"]).status, 1);
    // A link is judged by where it leads.
    std::os::unix::fs::symlink("/etc/passwd", scene.work().join("link")).unwrap();
    let link = scene.ringfence(["why", "write", "link"]);
    assert_eq!(link.status, 1);
    assert!(link.stdout.contains("/etc/passwd"), "{}", link.stdout);
    let host = scene.ringfence(["why", "evil.test:443"]);
    assert_eq!(host.status, 1);
    assert!(host.stdout.contains("--allow-host evil.test"), "{}", host.stdout);
    scene.ringfence(["why", "--allow-host", "good.test", "good.test"]).ok();
    let json = scene.ringfence(["why", "--json", "evil.test"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["verdict"].as_str(), json["destination"].as_str()), (Some("denied"), Some("evil.test:443")));
    scene.ringfence(["why", "read"]).refused(125, &["which path"]);
    scene.ringfence(["why", "a b"]).refused(125, &["a b"]);
    scene.untouched();
}

#[test]
fn presets_are_listed_and_printed() {
    let scene = scene();
    let list = scene.ringfence(["preset", "list"]);
    for name in ["claude-code", "codex", "gemini", "opencode", "aider", "git", "github", "node", "python", "rust", "go"]
    {
        assert!(list.ok().stdout.lines().any(|line| line.starts_with(name)), "{name}: {}", list.stdout);
    }
    let shown = scene.ringfence(["preset", "show", "rust"]);
    assert!(shown.ok().stdout.contains("version = 1"));
    scene.ringfence(["preset", "show", "nothing"]).refused(125, &["nothing"]);
}

#[test]
fn the_programs_name_picks_a_preset() {
    let scene = scene();
    let picked = |args: &[&str]| scene.ringfence(args).ok().stdout.contains("preset     claude-code");
    assert!(picked(&["explain", "claude"]));
    assert!(!picked(&["explain", "bash"]));
    assert!(!picked(&["explain", "--no-preset", "claude"]));
}

#[test]
fn a_repository_widens_only_what_the_user_trusted() {
    let scene = scene();
    let file = scene.work().join("ringfence.toml");
    scene.file(&file, "version = 1\n[network]\nallow = [\"api.example.com\"]\ndeny = [\"bad.example.com\"]\n");
    let allowed = || scene.ringfence(["why", "api.example.com"]).status == 0;
    assert!(!allowed(), "not trusted yet");
    let said = scene.ringfence(["run", "--", "true"]).ok().stderr.clone();
    assert!(said.contains("ringfence trust"), "{said}");
    let trusted = scene.ringfence(["trust"]);
    assert!(trusted.ok().stderr.contains("api.example.com"), "what is trusted is shown: {}", trusted.stderr);
    assert!(allowed());
    assert!(scene.ringfence(["trust", "--list"]).ok().stdout.contains("ringfence.toml"));
    // One byte more is another content.
    scene.file(&file, "version = 1\n[network]\nallow = [\"api.example.com\"]\ndeny = [\"bad.example.com\"]\n\n");
    assert!(!allowed());
    scene.ringfence(["trust", "ringfence.toml"]).ok();
    assert!(allowed());
    scene.ringfence(["trust", "--revoke"]).ok();
    assert!(!allowed());
    std::fs::remove_file(&file).unwrap();
    scene.ringfence(["trust"]).refused(125, &["ringfence.toml"]);
}

#[test]
fn denials_hold_also_when_the_repository_is_not_trusted() {
    let scene = scene();
    scene.file(&scene.work().join("ringfence.toml"), "version = 1\n[network]\ndeny = [\"bad.example.com\"]\n");
    let outcome = scene.ringfence(["why", "--allow-host", "bad.example.com", "bad.example.com"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.stdout.contains("ringfence.toml"), "{}", outcome.stdout);
}

#[test]
fn the_policy_file_that_is_named_stands_alone() {
    let scene = scene();
    let allow = |host: &str| format!("version = 1\n[network]\nallow = [\"{host}\"]\n");
    scene.file(&scene.home().join(".config/ringfence/policy.toml"), &allow("user.example.com"));
    scene.file(&scene.work().join("alone.toml"), &allow("alone.example.com"));
    let status = |args: &[&str]| scene.ringfence([&["why"], args].concat()).status;
    assert_eq!(status(&["user.example.com"]), 0);
    assert_eq!(status(&["--policy", "alone.toml", "user.example.com"]), 1);
    assert_eq!(status(&["--policy", "alone.toml", "alone.example.com"]), 0);
    assert_eq!(status(&["--policy", "alone.toml", "--allow-host", "flag.example.com", "flag.example.com"]), 0);
}

#[test]
fn the_log_tells_runs_and_filters() {
    let scene = scene();
    scene.ringfence(["run", "--", "sh", "-c", "exit 7"]);
    let text = scene.ringfence(["log"]).ok().stdout.clone();
    assert!(text.contains("started") && text.contains("status 7"), "{text}");
    assert_eq!(scene.ringfence(["log", "--denied"]).ok().stdout, "");
    let audit = scene.home().join("audit.jsonl");
    let named = audit.to_str().unwrap();
    scene.ringfence(["run", "--audit", named, "--", "true"]).ok();
    let json = scene.ringfence(["log", "--file", named, "--json"]).ok().stdout.clone();
    let events: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(events, ["started", "proved", "exited"]);
    scene.ringfence(["log", "--file", "missing.jsonl"]).refused(125, &["missing.jsonl"]);
}

#[test]
fn homes_are_listed_and_removed() {
    let scene = scene();
    assert_eq!(scene.ringfence(["home", "list"]).ok().stdout, "");
    scene.ringfence(["run", "--", "sh", "-c", "echo kept > ~/file"]).ok();
    assert!(!scene.home().join("file").exists(), "the real home is not touched");
    assert_eq!(scene.ringfence(["run", "--", "sh", "-c", "cat ~/file"]).stdout, "kept\n", "it persists");
    let list = scene.ringfence(["home", "list"]).ok().stdout.clone();
    assert!(list.contains("work") && list.contains("homes"), "{list}");
    scene.ringfence(["home", "clean"]).ok();
    assert_eq!(scene.ringfence(["home", "list"]).ok().stdout, "");
    assert_ne!(scene.ringfence(["run", "--", "sh", "-c", "cat ~/file"]).status, 0, "it is gone");
}

#[test]
fn doctor_says_what_this_host_can_do() {
    let scene = scene();
    let outcome = scene.ringfence(["doctor"]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    assert!(outcome.stdout.contains("process"), "{}", outcome.stdout);
    let json: serde_json::Value = serde_json::from_str(&scene.ringfence(["doctor", "--json"]).ok().stdout).unwrap();
    assert!(json.is_object() || json.is_array());
    let without = scene
        .script("exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$RINGFENCE\" doctor'");
    assert_eq!(without.status, 1, "{without:#?}");
    assert!(without.stdout.contains("max_user_namespaces"), "{without:#?}");
}

#[test]
fn bench_measures() {
    let scene = scene();
    let json = scene.ringfence(["bench", "-n", "3", "--json"]).ok().stdout.clone();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["ringfence"]["min_us"].as_u64() > json["plain"]["min_us"].as_u64(), "{json}");
    scene.ringfence(["bench", "-n", "1", "false"]).refused(125, &["false"]);
}

#[test]
fn manual_completions_and_schema_are_printed() {
    let scene = scene();
    assert!(scene.ringfence(["man"]).ok().stdout.contains(".TH ringfence"));
    assert!(scene.ringfence(["man", "run"]).ok().stdout.contains("allow"));
    scene.ringfence(["man", "nothing"]).refused(125, &["nothing"]);
    for shell in ["bash", "zsh", "fish"] {
        assert!(scene.ringfence(["completions", shell]).ok().stdout.contains("ringfence"));
    }
    let schema: serde_json::Value = serde_json::from_str(&scene.ringfence(["schema"]).ok().stdout).unwrap();
    assert!(schema.is_object());
    scene.untouched();
}

#[test]
fn help_and_version_go_to_standard_output() {
    let scene = scene();
    for args in [&["--help"][..], &["run", "--help"], &["--version"], &["-V"]] {
        let outcome = scene.ringfence(args);
        assert!(!outcome.ok().stdout.is_empty(), "{args:?}");
        assert_eq!(outcome.stderr, "");
    }
}
