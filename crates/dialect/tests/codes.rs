//! Every code of a policy is brought about by its own example, and by nothing that is sound.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use ringfence_dialect::codes::{self, CODES, Code, Example};
use ringfence_dialect::command_line::{self, Flags};
use ringfence_dialect::native;
use ringfence_dialect::{Diagnostic, ParseContext, Severity, Trust};
use ringfence_policy::lint::lint;
use ringfence_policy::{Base, Layer, merge};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use support::{mirrors, parse, parse_as, path, render};

/// Codes of a policy whose example is no policy; tested below by hand.
const BY_HAND: &[Code] = &[codes::SET_UNRESOLVED, codes::TOO_LARGE, codes::NOT_UTF8, codes::FLAG_VALUE];

fn problems(text: &str) -> Vec<Diagnostic> {
    match parse(text) {
        Ok(parsed) => parsed.warnings,
        Err(problems) => problems,
    }
}

#[test]
fn each_example_brings_its_code_about_and_nothing_else() {
    let mut tried = 0;
    for entry in CODES.iter().filter(|entry| entry.code.as_text().starts_with("RF01")) {
        let Example::Policy(text) = entry.example else {
            assert!(BY_HAND.contains(&entry.code), "{} has no example that can be tried", entry.code);
            continue;
        };
        let found = problems(text);
        assert!(!found.is_empty(), "{} is not reported for\n{text}", entry.code);
        for problem in &found {
            assert_eq!(problem.code, entry.code, "{text}\n{}", render(&found));
            let label = problem.labels.first().expect("a problem has a place");
            assert!(!label.text.is_empty() || problem.hint.is_some(), "{}: says nothing of what to do", entry.code);
        }
        tried += 1;
    }
    assert!(tried > 25, "{tried}");
}

#[test]
fn a_set_that_stands_for_nothing_is_a_warning() {
    let parsed = parse("version = 1\n[network]\nallow = [\"@debian\", \"@npm\"]\n").unwrap();
    assert_eq!(parsed.warnings.len(), 1);
    assert_eq!(parsed.warnings[0].code, codes::SET_UNRESOLVED);
    assert_eq!(parsed.warnings[0].severity, Severity::Warning);
    assert_eq!(parsed.fragment.hosts.len(), 1, "the other set holds");
    assert_eq!(parsed.fragment.hosts[0].to_string(), "npm.mirror.test:8443");
    assert_eq!(parsed.fragment.hosts[0].origin.line, Some(3), "whose word it is, is who wrote `@npm`");
    assert_eq!(parsed.fragment.hosts[0].origin.layer, Layer::User);
}

#[test]
fn bytes_that_are_no_policy() {
    let large = format!("version = 1\n#{}", "x".repeat(1 << 20));
    assert_eq!(problems(&large)[0].code, codes::TOO_LARGE);
    let (home, base) = (path("/home/u"), path("/home/u/w"));
    let context = ParseContext::file(Layer::User, Path::new("p.toml"), &home, &base, &mirrors);
    let found = native::parse_bytes(b"version = 1\n# caf\xe9\n", "p.toml", &context).unwrap_err();
    assert_eq!(found[0].code, codes::NOT_UTF8);
    assert_eq!(found[0].labels[0].source.position(found[0].labels[0].span.start), (2, 6));
    assert!(native::parse_bytes("version = 1\n# café\n".as_bytes(), "p.toml", &context).is_ok());
}

#[test]
fn a_flag_that_is_not_text() {
    let (home, base) = (path("/home/u"), path("/home/u/w"));
    let context = ParseContext::flags(&home, &base, &mirrors);
    let bytes = OsString::from_vec(b"a\xff.example.com".to_vec());
    let flags = Flags { allow_host: vec![bytes.clone()], ..Flags::default() };
    let found = command_line::parse(&flags, &context).unwrap_err();
    assert_eq!(found[0].code, codes::FLAG_VALUE);
    let flags = Flags { write: vec![bytes], ..Flags::default() };
    let parsed = command_line::parse(&flags, &context).unwrap();
    assert_eq!(parsed.fragment.paths.len(), 1, "a path may hold any bytes");
}

#[test]
fn a_ceiling_is_taken_from_a_managed_file_alone() {
    let text = "version = 1\n[ceiling]\nhosts = [\"*.example.com\"]\nhome = \"private\"\nports = false\n\
                limits = { memory = \"8G\" }\n";
    let ceiling = parse_as(Layer::Managed, text).unwrap().fragment.ceiling.unwrap();
    assert_eq!(ceiling.hosts.unwrap().len(), 1);
    assert!(!ceiling.ports && ceiling.unix && ceiling.allow_weaker && ceiling.write.is_none());
    assert_eq!(ceiling.limits.memory.unwrap().value, 8 << 30);
    for layer in [Layer::CommandLine, Layer::User, Layer::Project, Layer::Preset] {
        assert_eq!(parse_as(layer, text).unwrap_err()[0].code, codes::CEILING, "{layer:?}");
    }
}

#[test]
fn each_example_of_a_finding_brings_it_about() {
    let base = Base { home: path("/home/u"), workspace: path("/home/u/w"), git_dirs: Vec::new(), uid: 1000 };
    let mut tried = 0;
    for entry in CODES.iter().filter(|entry| entry.code.as_text().starts_with("RF03")) {
        let Example::Policy(text) = entry.example else { continue };
        let layer = if text.starts_with("# ringfence.toml") { Layer::Project } else { Layer::User };
        let (home, workspace) = (&base.home, &base.workspace);
        let context =
            ParseContext::file(layer, Path::new("/home/u/.config/ringfence/policy.toml"), home, workspace, &mirrors)
                .with_trust(if layer == Layer::Project { Trust::Untrusted } else { Trust::Trusted });
        let fragment = native::parse(text, "policy.toml", &context).expect("a sound file").fragment;
        let (policy, mut findings) = merge(&base, vec![fragment]);
        findings.extend(lint(&policy));
        assert!(findings.iter().any(|f| f.code == entry.code.as_text()), "{}: {findings:?}", entry.code);
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}
