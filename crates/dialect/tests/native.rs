//! What a sound file means.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use proptest::prelude::*;
use ringfence_dialect::{ParseContext, Trust, fuzz_native, native};
use ringfence_policy::host_rule::HostVerb;
use ringfence_policy::secret::SecretSource;
use ringfence_policy::{Fragment, HomeMode, HostPath, Layer, PathPattern, PathVerb, Source};
use std::path::Path;
use std::time::Duration;
use support::{mirrors, parse, parse_as, path, render};

fn full() -> Fragment {
    match parse(include_str!("samples/full.toml")) {
        Ok(parsed) => {
            assert!(parsed.warnings.is_empty(), "{}", render(&parsed.warnings));
            parsed.fragment
        }
        Err(problems) => panic!("{}", render(&problems)),
    }
}

fn pattern(pattern: &PathPattern) -> String {
    match pattern {
        PathPattern::Subtree(path) => path.to_string(),
        PathPattern::Glob(glob) => format!("{} {}", glob.base, glob.pattern),
    }
}

#[test]
fn every_key_becomes_its_part_of_the_model() {
    let fragment = full();
    assert!(fragment.trusted && fragment.ceiling.is_none());
    let names: Vec<_> = fragment.presets.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["claude-code", "rust"]);

    let mut paths: Vec<_> = fragment.paths.iter().map(|rule| (rule.verb, pattern(&rule.pattern))).collect();
    paths.sort_by_key(|(verb, pattern)| (format!("{verb:?}"), pattern.clone()));
    let wanted = [
        (PathVerb::AllowRead, "/home/u/.ssh/known_hosts"),
        (PathVerb::AllowRead, "/opt/tool"),
        (PathVerb::AllowWrite, "/home/u/.cache/tool"),
        (PathVerb::AllowWrite, "/home/u/w"),
        (PathVerb::AllowWrite, "/srv/data"),
        (PathVerb::DenyRead, "/home/u/documents"),
        (PathVerb::DenyRead, "/home/u/w **/.env"),
        (PathVerb::DenyWrite, "/home/u/w/.github/workflows"),
    ];
    assert_eq!(paths, wanted.map(|(verb, text)| (verb, text.to_owned())));
    let reasons: Vec<_> = fragment.paths.iter().filter_map(|rule| rule.why.as_deref()).collect();
    assert_eq!(reasons, ["data"]);
    assert_eq!(fragment.home.as_ref().unwrap().0, HomeMode::Private);
    assert_eq!(
        (fragment.copies[0].path.to_string().as_str(), fragment.copies[0].why.as_str()),
        ("/home/u/.toolrc", "replaced by rename")
    );
    assert_eq!(fragment.protected[0].pattern, "deploy/*.sh");
    assert_eq!(fragment.unprotect[0].0, ".vscode");

    let hosts = |verb| {
        let rules = fragment.hosts.iter().filter(move |rule| rule.verb == verb);
        rules.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        hosts(HostVerb::Allow),
        [
            "api.anthropic.com",
            "npm.mirror.test:8443",
            "crates.mirror.test:8443",
            "github.com:22",
            "*.example.com:*",
            "10.9.9.9:80",
            "[2001:db8::1]:443",
            "10.0.0.0/8",
            "git.corp.example",
            "*"
        ]
    );
    assert_eq!(hosts(HostVerb::Deny), ["telemetry.example.com", "*"]);
    let inside = fragment.hosts.iter().find(|rule| rule.to_string() == "git.corp.example").unwrap();
    let networks: Vec<_> = inside.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.0.0.0/8", "fd00::/8", "10.1.2.3/32"]);
    assert_eq!(fragment.publish[0].port, 3000);
    assert_eq!(fragment.host_ports[0].port, 5432);
    assert_eq!(fragment.upstream.as_ref().unwrap().url, "http://proxy.example.com:3128");

    assert_eq!(fragment.requests.len(), 2);
    assert_eq!(fragment.requests[0].methods, ["GET"]);
    assert_eq!(fragment.requests[0].paths, ["/repos/acme/**"]);
    let github = &fragment.credentials[0];
    assert_eq!(github.source, SecretSource::Exec(vec!["gh".into(), "auth".into(), "token".into()]));
    assert_eq!((github.header.as_str(), github.format.as_str()), ("Authorization", "Bearer {}"));
    assert_eq!(github.phantom_env.as_deref(), Some("GH_TOKEN"));
    assert_eq!(fragment.credentials[1].format, "{}");
    assert_eq!(fragment.credentials[1].source, SecretSource::File(path("/home/u/token")));

    let sockets: Vec<_> = fragment.unix.iter().map(|rule| rule.path.to_string()).collect();
    assert_eq!(sockets, ["/run/user/1000/podman/podman.sock", "/home/u/s.sock"]);
    let passed: Vec<_> = fragment.env_pass.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(passed, ["GH_TOKEN", "AWS_*"]);
    assert_eq!(fragment.env_deny[0].pattern, "*_SECRET");
    let mut set: Vec<_> = fragment.env_set.iter().map(|set| (set.name.as_str(), set.value.as_str())).collect();
    set.sort_unstable();
    assert_eq!(set, [("CI", "1"), ("EMPTY", ""), ("LONG", "x")]);

    let limits = fragment.limits;
    assert_eq!(limits.memory.unwrap().value, 8 << 30);
    assert_eq!(limits.disk.unwrap().value, 20 << 30);
    assert_eq!(limits.pids.unwrap().value, 2048);
    assert_eq!(limits.open_files.unwrap().value, 1024);
    assert_eq!(limits.wall.unwrap().value, Duration::from_secs(7200));
    assert_eq!(limits.cpu.unwrap().value, Duration::from_secs(5400));
    assert!(fragment.allow_weaker.is_some() && fragment.skip_proof.is_some());
}

#[test]
fn a_rule_knows_its_file_line_and_layer() {
    let text = "version = 1\n\n[network]\nallow = [\n  \"a.example.com\",\n  { rule = \"b.example.com\" },\n]\n";
    let fragment = parse_as(Layer::Project, text).unwrap().fragment;
    let lines: Vec<_> = fragment.hosts.iter().map(|rule| rule.origin.line).collect();
    assert_eq!(lines, [Some(5), Some(6)]);
    let origin = &fragment.hosts[0].origin;
    assert_eq!(origin.layer, Layer::Project);
    assert_eq!(origin.source, Source::File("/home/u/w/ringfence.toml".into()));
}

#[test]
fn what_is_false_says_nothing() {
    let fragment = parse("version = 1\n[walls]\nallow_weaker = false\nprove = true\n").unwrap().fragment;
    assert_eq!(fragment, Fragment::empty(Layer::User));
}

#[test]
fn relative_paths_of_a_project_are_its_own_folder_those_of_others_the_workspace() {
    let (file, workspace) = (path("/repo/ringfence.toml"), path("/repo/sub"));
    for (layer, base) in [
        (Layer::Project, "/repo"),
        (Layer::User, "/repo/sub"),
        (Layer::CommandLine, "/repo/sub"),
        (Layer::Managed, "/repo/sub"),
        (Layer::Preset, "/repo/sub"),
    ] {
        assert_eq!(ParseContext::base_of(layer, &file, &workspace), path(base), "{layer:?}");
    }
}

#[test]
fn trust_is_carried_into_the_fragment() {
    let (home, base) = (path("/home/u"), path("/w"));
    let context = ParseContext::file(Layer::Project, Path::new("/w/ringfence.toml"), &home, &base, &mirrors);
    let of = |context: &ParseContext<'_>| native::parse("version = 1\n", "f", context).unwrap().fragment.trusted;
    assert!(of(&context));
    assert!(!of(&context.clone().with_trust(Trust::Untrusted)));
}

#[test]
fn a_set_is_asked_for_only_where_it_is_named() {
    let asked = std::cell::RefCell::new(Vec::new());
    let ask = |set: &str| {
        asked.borrow_mut().push(set.to_owned());
        mirrors(set)
    };
    let (home, base) = (path("/home/u"), path("/w"));
    let context = ParseContext::file(Layer::User, Path::new("p"), &home, &base, &ask);
    native::parse(
        "version = 1\n[network]\nallow = [\"a.example.com\", \"@go\"]\ndeny = [\"@unknown\"]\n",
        "p",
        &context,
    )
    .unwrap_err();
    assert_eq!(*asked.borrow(), ["go"]);
}

/// Lines that are nearly right, in any order.
fn nearly() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "version = 1",
        "[files]",
        "[network]",
        "[[network.rule]]",
        "[[credential]]",
        "[env]",
        "[limits]",
        "[walls]",
        "[ceiling]",
        "[unix]",
        "[env.set]",
        "write = [\".\"]",
        "deny_read = [\"**/x[\", \"~\", \"\\u0000\"]",
        "home = \"private\"",
        "allow = [\"*\", \"@npm\", {rule=\"a.b\", force=true}]",
        "ports = {host=[0, 70000, -1]}",
        "memory = \"8G\"",
        "wall = \"1h\"",
        "pids = 1e3",
        "set = {A=\"b\"}",
        "source = {exec=[]}",
        "name = \"é\"",
        "for = [\"[::1]\", \"\"]",
        "host = \"a..b\"",
        "= =",
        "[[",
        "x = [[[[",
        "\"\"\"",
        "copy = [{}]",
        "rule = [{}]",
        "preset = [\"rust\"]",
        "\u{feff}",
        "a.b.c = 1",
        "files.write = 3",
        "# \u{1F600}",
    ]);
    prop::collection::vec(words, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        fuzz_native(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_native(&bytes);
    }

    #[test]
    fn what_is_nearly_a_policy_is_answered(text in nearly()) {
        fuzz_native(text.as_bytes());
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                let label = &problem.labels[0];
                // A renderer can cut the text at every place.
                prop_assert!(label.source.text().get(label.span.clone()).is_some());
            }
        }
    }

    #[test]
    fn a_path_of_a_file_stays_what_it_is(name in "[a-zA-Z0-9 ._%+,@#!=-]{1,20}") {
        prop_assume!(name != "." && name != "..");
        let text = format!("version = 1\n[files]\nread = [\"/base/{name}\"]\n");
        let fragment = parse(&text).unwrap().fragment;
        prop_assert_eq!(&fragment.paths[0].pattern, &PathPattern::Subtree(HostPath::new(format!("/base/{name}")).unwrap()));
    }
}
