//! The presets as they are shipped: sound, with a reason for every entry, and with the effect that they promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use ringfence_dialect::presets::{self, ALL, NAMES, Preset};
use ringfence_dialect::{ParseContext, native};
use ringfence_policy::lint::lint;
use ringfence_policy::{
    Access, Base, Destination, Fragment, Host, HostPattern, Layer, PathRule, Policy, PortSet, Protocol, Source,
    Verdict, merge,
};
use std::path::Path;
use support::{mirrors, path, render};
use toml::Value;

fn base() -> Base {
    Base { home: path("/home/u"), workspace: path("/home/u/w"), git_dirs: Vec::new(), uid: 1000 }
}

fn load(names: &[&str]) -> Vec<Fragment> {
    let (home, workspace) = (path("/home/u"), path("/home/u/w"));
    let context = ParseContext::presets(&home, &workspace, &mirrors);
    match presets::load(names.iter().copied(), &context) {
        Ok(loaded) => {
            assert!(loaded.warnings.is_empty(), "{}", render(&loaded.warnings));
            loaded.fragments
        }
        Err(problems) => panic!("{}", render(&problems)),
    }
}

fn policy(names: &[&str], more: &str) -> Policy {
    let mut fragments = load(names);
    if !more.is_empty() {
        fragments.push(support::parse(more).unwrap().fragment);
    }
    let (policy, findings) = merge(&base(), fragments);
    assert!(findings.is_empty(), "{findings:?}");
    policy
}

fn file(policy: &Policy, at: &str, access: Access) -> Verdict {
    policy.may_path(&path(at), access).verdict
}

fn host(policy: &Policy, name: &str, port: u16) -> Verdict {
    let destination = Destination::new(Host::parse(name).unwrap(), port, Protocol::Tcp).unwrap();
    policy.may_connect(&destination).verdict
}

/// The entries of every list of rules, and the variables that are set.
fn entries(preset: &Preset) -> Vec<Value> {
    let table: toml::Table = toml::from_str(preset.text).unwrap();
    let lists = [
        ("files", vec!["write", "read", "allow_read", "deny_read", "deny_write", "copy", "protect"]),
        ("network", vec!["allow", "deny"]),
        ("unix", vec!["allow"]),
        ("env", vec!["pass", "deny"]),
    ];
    let mut found: Vec<Value> = table.get("preset").and_then(Value::as_array).into_iter().flatten().cloned().collect();
    for (section, keys) in lists {
        for key in keys {
            let list = table.get(section).and_then(|section| section.get(key)).and_then(Value::as_array);
            found.extend(list.into_iter().flatten().cloned());
        }
    }
    let set = table.get("env").and_then(|env| env.get("set")).and_then(Value::as_table);
    found.extend(set.into_iter().flat_map(|set| set.values().cloned()));
    found
}

#[test]
fn every_entry_has_its_reason() {
    for preset in ALL {
        let entries = entries(preset);
        assert!(!entries.is_empty(), "{} says nothing", preset.name);
        for entry in entries {
            let why = entry.get("why").and_then(Value::as_str);
            assert!(why.is_some_and(|why| why.len() > 3 && !why.ends_with('.')), "{}: {entry}", preset.name);
        }
    }
}

#[test]
fn hosts_are_named_one_by_one_with_their_ports_and_carry_their_origin() {
    for preset in ALL {
        for fragment in load(&[preset.name]) {
            assert_eq!((fragment.layer, fragment.trusted), (Layer::Preset, true));
            for rule in &fragment.hosts {
                assert!(matches!(rule.host, HostPattern::Exact(_)), "{}: {rule}", preset.name);
                assert!(matches!(&rule.ports, PortSet::List(ports) if ports.len() == 1), "{}: {rule}", preset.name);
                let Source::Preset(name) = &rule.origin.source else { panic!("{:?}", rule.origin) };
                assert!(NAMES.contains(&name.as_str()) && rule.origin.line.is_some());
            }
            let wide = |rule: &&PathRule| !rule.pattern.to_string().starts_with("/home/u/.");
            assert_eq!(fragment.paths.iter().find(wide), None, "{} opens more than a tool's files", preset.name);
        }
    }
}

#[test]
fn presets_bring_those_that_they_name_each_once() {
    let names = |wanted: &[&str]| {
        let sources = load(wanted).into_iter().flat_map(|fragment| {
            let rule = fragment.hosts.first().map(|rule| rule.origin.source.clone());
            rule.or_else(|| fragment.paths.first().map(|rule| rule.origin.source.clone()))
        });
        sources
            .map(|source| match source {
                Source::Preset(name) => name,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["claude-code", "codex", "github"]), ["claude-code", "git", "codex", "github"]);
    assert_eq!(load(&["mcp"]).len(), 3);
    assert_eq!(load(&[]), []);
    assert_eq!(load(&["no such preset"]), []);
    assert_eq!(policy(&["mcp"], "").presets.len(), 2, "those that a fragment names are listed");
}

#[test]
fn claude_code_gets_its_login_and_its_configuration_and_no_way_to_leave_code_behind() {
    let with = policy(&["claude-code"], "");
    let without = policy(&[], "");
    let home = |name: &str| format!("/home/u/{name}");
    let login = home(".claude/.credentials.json");
    assert_eq!(file(&with, &login, Access::Write), Verdict::Allowed);
    assert_ne!(file(&without, &login, Access::Read), Verdict::Allowed);
    for shown in ["settings.json", "CLAUDE.md", "agents/a.md", "plugins/p/hooks.json"] {
        let at = home(&format!(".claude/{shown}"));
        assert_eq!(file(&with, &at, Access::Read), Verdict::Allowed, "{at}");
        assert_eq!(file(&with, &at, Access::Write), Verdict::Denied, "{at}");
        assert_ne!(file(&without, &at, Access::Read), Verdict::Allowed, "{at}");
    }
    for own in [".claude/projects/x.jsonl", ".claude/shell-snapshots/s.sh", ".claude/todos", ".claude.json", ".cache/x"]
    {
        for access in [Access::Read, Access::Write] {
            assert_eq!(file(&with, &home(own), access), Verdict::Private, "{own}");
        }
    }
    assert_eq!(with.files.copies[0].path, path("/home/u/.claude.json"));
    for other in [".codex/auth.json", ".aws/credentials", ".ssh/id_ed25519", ".npmrc"] {
        assert_ne!(file(&with, &home(other), Access::Read), Verdict::Allowed, "{other}");
    }
    assert_eq!(host(&with, "api.anthropic.com", 443), Verdict::Allowed);
    assert_eq!(host(&with, "api.anthropic.com", 80), Verdict::Denied);
    for elsewhere in ["evil.test", "storage.googleapis.com", "anthropic.com", "api.openai.com"] {
        assert_eq!(host(&with, elsewhere, 443), Verdict::Denied, "{elsewhere}");
    }
    assert!(with.env.pass.iter().any(|rule| rule.pattern == "ANTHROPIC_API_KEY"));
    assert!(with.env.set.iter().any(|set| set.name == "DISABLE_AUTOUPDATER" && set.value == "1"));
}

#[test]
fn each_agent_reaches_its_model_and_not_its_neighbours_login() {
    for (agent, model, login, neighbour) in [
        ("claude-code", "api.anthropic.com", ".claude/.credentials.json", ".codex/auth.json"),
        ("codex", "api.openai.com", ".codex/auth.json", ".claude/.credentials.json"),
        ("gemini", "generativelanguage.googleapis.com", ".gemini/oauth_creds.json", ".codex/auth.json"),
        ("opencode", "opencode.ai", ".local/share/opencode/auth.json", ".gemini/oauth_creds.json"),
    ] {
        let policy = policy(&[agent], "");
        assert_eq!(host(&policy, model, 443), Verdict::Allowed, "{agent}");
        assert_eq!(file(&policy, &format!("/home/u/{login}"), Access::Write), Verdict::Allowed, "{agent}");
        assert_ne!(file(&policy, &format!("/home/u/{neighbour}"), Access::Read), Verdict::Allowed, "{agent}");
    }
    assert_eq!(host(&policy(&["aider"], ""), "openrouter.ai", 443), Verdict::Allowed);
}

#[test]
fn tools_get_their_registry_and_keep_their_caches_to_themselves() {
    for (preset, mirror, cache) in [
        ("node", "npm.mirror.test", ".npm/_cacache"),
        ("python", "pypi.mirror.test", ".cache/pip"),
        ("rust", "crates.mirror.test", ".cargo/registry"),
        ("go", "go.mirror.test", "go/pkg/mod"),
        ("java", "maven.mirror.test", ".m2/repository"),
    ] {
        let policy = policy(&[preset], "");
        assert_eq!(host(&policy, mirror, 8443), Verdict::Allowed, "{preset}");
        assert_eq!(host(&policy, mirror, 443), Verdict::Denied, "{preset}");
        for access in [Access::Read, Access::Write] {
            assert_eq!(file(&policy, &format!("/home/u/{cache}"), access), Verdict::Private, "{preset}");
        }
    }
    let github = policy(&["github"], "");
    assert_eq!(host(&github, "github.com", 22), Verdict::Allowed);
    assert_eq!(host(&github, "gist.github.com", 443), Verdict::Denied);
    assert_ne!(file(&github, "/home/u/.config/gh/hosts.yml", Access::Read), Verdict::Allowed);
    let mcp = policy(&["mcp"], "");
    assert_eq!(host(&mcp, "npm.mirror.test", 8443), Verdict::Allowed);
    assert!(mcp.env.deny.iter().any(|rule| rule.pattern == "ANTHROPIC_*"));
}

#[test]
fn ci_protects_pipelines() {
    let at = "/home/u/w/Jenkinsfile";
    assert_eq!(file(&policy(&[], ""), at, Access::Write), Verdict::Allowed, "the control");
    let ci = policy(&["ci"], "");
    assert_eq!(file(&ci, at, Access::Write), Verdict::Denied);
    assert_eq!(file(&ci, "/home/u/w/sub/.circleci/config.yml", Access::Write), Verdict::Denied);
    assert_eq!(file(&ci, "/home/u/w/src/main.rs", Access::Write), Verdict::Allowed);
}

#[test]
fn a_users_word_is_stronger_than_a_presets() {
    let text = "version = 1\n[files]\ndeny_read = [\"~/.claude/settings.json\"]\n[network]\ndeny = [\"claude.ai\"]\n\
                [env]\nset = { IS_SANDBOX = \"0\" }\n";
    let policy = policy(&["claude-code"], text);
    assert_ne!(file(&policy, "/home/u/.claude/settings.json", Access::Read), Verdict::Allowed);
    assert_eq!(host(&policy, "claude.ai", 443), Verdict::Denied);
    assert!(policy.env.set.iter().any(|set| set.name == "IS_SANDBOX" && set.value == "0"));
}

#[test]
fn a_preset_is_a_policy_file_like_any_other() {
    let (home, base) = (path("/home/u"), path("/home/u/w"));
    for preset in ALL {
        let context = ParseContext::file(Layer::User, Path::new("copy.toml"), &home, &base, &mirrors);
        assert!(native::parse(preset.text, "copy.toml", &context).is_ok(), "{}", preset.name);
    }
}

#[test]
fn nothing_in_a_preset_is_dangerous_but_what_it_says() {
    for preset in ALL {
        let codes: Vec<_> = lint(&policy(&[preset.name], "")).into_iter().map(|finding| finding.code).collect();
        let expected = if preset.name == "github" { "RF0326" } else { "none" };
        assert!(codes.iter().all(|code| *code == expected), "{}: {codes:?}", preset.name);
        assert_eq!(codes.is_empty(), preset.name != "github", "{}", preset.name);
    }
}
