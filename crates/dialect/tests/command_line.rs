//! Flags are a source like any other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use ringfence_dialect::codes;
use ringfence_dialect::command_line::{Flags, Proof, Weaker, parse};
use ringfence_dialect::{Diagnostic, ParseContext, Parsed, Severity};
use ringfence_policy::{HomeMode, Layer, Origin, PathPattern, PathVerb};
use std::ffi::OsString;
use std::time::Duration;
use support::{mirrors, path, render};

fn read(flags: &Flags) -> Result<Parsed, Vec<Diagnostic>> {
    let (home, cwd) = (path("/home/u"), path("/home/u/w/sub"));
    parse(flags, &ParseContext::flags(&home, &cwd, &mirrors))
}

fn some(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn every_flag_becomes_its_part_of_the_model() {
    let flags = Flags {
        preset: some(&["rust"]),
        write: some(&["build", "../x", "/a*b"]),
        read: some(&["~/r"]),
        deny_read: some(&["s"]),
        deny_write: some(&["d"]),
        allow_host: some(&["api.example.com:8443", "@npm", "10.9.9.9:80"]),
        deny_host: some(&["*"]),
        publish: some(&["3000"]),
        host_port: some(&["5432"]),
        unix: some(&["/run/x.sock"]),
        env: some(&["GH_TOKEN", "A=b=c", "E="]),
        env_deny: some(&["*_X"]),
        home: Some("visible".into()),
        memory: Some("8G".into()),
        pids: Some("64".into()),
        disk: Some("1T".into()),
        wall: Some("90s".into()),
        allow_weaker: Weaker::Accept,
        proof: Proof::Skip,
    };
    let parsed = read(&flags).unwrap();
    assert!(parsed.warnings.is_empty());
    let fragment = parsed.fragment;
    assert_eq!((fragment.layer, fragment.trusted), (Layer::CommandLine, true));
    assert_eq!(fragment.presets, [("rust".to_owned(), Origin::flag("--preset"))]);
    let paths: Vec<_> = fragment.paths.iter().map(|rule| (rule.verb, rule.pattern.clone())).collect();
    let subtree = |text: &str| PathPattern::Subtree(path(text));
    assert_eq!(
        paths,
        [
            (PathVerb::AllowWrite, subtree("/home/u/w/sub/build")),
            (PathVerb::AllowWrite, subtree("/home/u/w/x")),
            (PathVerb::AllowWrite, subtree("/a*b")),
            (PathVerb::AllowRead, subtree("/home/u/r")),
            (PathVerb::DenyRead, subtree("/home/u/w/sub/s")),
            (PathVerb::DenyWrite, subtree("/home/u/w/sub/d")),
        ]
    );
    assert_eq!(fragment.paths[3].origin, Origin::flag("--read"));
    let hosts: Vec<_> = fragment.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["api.example.com:8443", "npm.mirror.test:8443", "10.9.9.9:80", "*"]);
    assert_eq!((fragment.publish[0].port, fragment.host_ports[0].port), (3000, 5432));
    assert_eq!(fragment.unix[0].path, path("/run/x.sock"));
    assert_eq!(fragment.env_pass[0].pattern, "GH_TOKEN");
    let set: Vec<_> = fragment.env_set.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
    assert_eq!(set, [("A", "b=c"), ("E", "")]);
    assert_eq!(fragment.env_deny[0].pattern, "*_X");
    assert_eq!(fragment.home.unwrap().0, HomeMode::Visible);
    assert_eq!(fragment.limits.memory.unwrap().value, 8 << 30);
    assert_eq!(fragment.limits.disk.unwrap().value, 1 << 40);
    assert_eq!(fragment.limits.pids.unwrap().value, 64);
    assert_eq!(fragment.limits.wall.unwrap().value, Duration::from_secs(90));
    assert_eq!(fragment.allow_weaker, Some(Origin::flag("--allow-weaker")));
    assert_eq!(fragment.skip_proof, Some(Origin::flag("--no-prove")));
    assert!(read(&Flags::default()).unwrap().fragment == ringfence_policy::Fragment::empty(Layer::CommandLine));
}

#[test]
fn all_problems_are_told_at_once_each_with_its_argument() {
    let flags = Flags {
        preset: some(&["rst"]),
        write: some(&[""]),
        allow_host: some(&["*.com", "https://x.example.com", "@npmjs"]),
        publish: some(&["0", "http"]),
        env: some(&["1A=topsecret", "A B"]),
        home: Some("privat".into()),
        memory: Some("lots".into()),
        pids: Some("0".into()),
        wall: Some("90".into()),
        ..Flags::default()
    };
    let problems = read(&flags).unwrap_err();
    let found: Vec<_> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(
        found,
        [
            codes::PRESET_UNKNOWN,
            codes::PATH,
            codes::HOST_TOO_WIDE,
            codes::HOST,
            codes::SET_UNKNOWN,
            codes::PORT,
            codes::PORT,
            codes::ENV_NAME,
            codes::ENV_NAME,
            codes::VALUE,
            codes::SIZE,
            codes::RANGE,
            codes::DURATION,
        ]
    );
    let said = render(&problems);
    assert!(said.contains("   | --allow-host *.com\n   |              ^^^^^ anybody"), "{said}");
    assert!(said.contains("  --> command line:1:10\n"), "{said}");
    assert!(!said.contains("topsecret"), "the value of a variable may be a secret: {said}");
}

#[test]
fn a_set_that_stands_for_nothing_is_a_warning() {
    let parsed = read(&Flags { allow_host: some(&["@debian"]), ..Flags::default() }).unwrap();
    assert_eq!(parsed.warnings[0].code, codes::SET_UNRESOLVED);
    assert_eq!(parsed.warnings[0].severity, Severity::Warning);
    assert!(parsed.fragment.hosts.is_empty());
}
