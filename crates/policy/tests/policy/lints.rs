//! What is allowed but dangerous is said, and what is not dangerous is not.

use crate::*;
use std::collections::BTreeSet;

fn codes(policy: &Policy) -> Vec<&'static str> {
    let codes: BTreeSet<_> = lint(policy).iter().map(|f| f.code).collect();
    codes.into_iter().collect()
}

#[test]
fn files() {
    for (rules, expected) in [
        (&["+r /home/u/.ssh"][..], &["RF0321"][..]),
        (&["+r /home/u/.ssh/id_rsa"], &["RF0321"]),
        (&["+r /home/u/.ssh/known_hosts"], &["RF0321"]),
        (&["+w /home/u"], &["RF0322"]),
        (&["+w /home"], &["RF0322", "RF0335"]),
        (&["+w /"], &["RF0322", "RF0335"]),
        (&["+w /etc"], &["RF0335"]),
        (&["+w /home/u/.local/bin"], &["RF0336"]),
        (&["+w /home/u/.config/systemd"], &["RF0336"]),
        (&["+w /home/u/.bashrc"], &["RF0336"]),
        (&["+r /home/u/docs", "+w /data"], &[]),
    ] {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(codes(&with_paths(Layer::CommandLine, rules)), expected, "{rules:?}");
    }
    assert_eq!(codes(&with_paths(Layer::Preset, &["+w /home/u/.claude", "+r /home/u/.config/gh"])), Vec::<&str>::new());
    assert_eq!(codes(&policy(vec![])), Vec::<&str>::new());
}

#[test]
fn hosts() {
    for (rule, expected) in [
        ("+ *", &["RF0323"][..]),
        ("+ *.github.io", &["RF0324"]),
        ("+ *.com", &["RF0324"]),
        ("+ github.com", &["RF0326"]),
        ("+ *.github.com", &["RF0326"]),
        ("+ api.anthropic.com", &[]),
        ("+ a.test:*", &["RF0328"]),
        ("+ 10.0.0.1:80", &["RF0329"]),
        ("+ 127.0.0.1:80", &["RF0329"]),
        ("+ 0.0.0.0/0", &["RF0329"]),
        ("+ 8.8.8.8", &[]),
        ("+ 169.254.169.254", &["RF0333"]),
        ("+ metadata.google.internal", &["RF0333"]),
        ("+ localhost:3000", &["RF0334"]),
        ("- github.com", &[]),
    ] {
        assert_eq!(codes(&with_hosts(&[rule])), expected, "{rule}");
    }
}

#[test]
fn sockets_walls_and_variables() {
    let at = origin(Layer::User, 1);
    let mut user = Fragment::empty(Layer::User);
    user.unix = ["/run/docker.sock", "/run/user/1000/bus", "/home/u/.gnupg/S.gpg-agent", "/data/own.sock"]
        .map(|socket| UnixRule { path: path(socket), origin: at.clone() })
        .to_vec();
    user.allow_weaker = Some(at.clone());
    user.skip_proof = Some(at.clone());
    user.home = Some((HomeMode::Visible, at.clone()));
    user.env_pass = vec![EnvRule { pattern: "*".into(), origin: at }];
    let policy = policy(vec![user]);
    assert_eq!(codes(&policy), ["RF0320", "RF0325", "RF0330", "RF0331", "RF0332"]);
    let sockets: Vec<_> = lint(&policy).into_iter().filter(|f| f.code == "RF0320").map(|f| f.message).collect();
    assert_eq!(sockets.len(), 3, "{sockets:#?}");
    assert!(
        sockets.contains(&"`/run/docker.sock` is open, which ends every wall: docker: root on the host".to_owned()),
        "{sockets:#?}"
    );
}

#[test]
fn every_code_is_listed_once() {
    let listed: BTreeSet<_> = lint::CODES.iter().map(|(code, _)| *code).collect();
    assert_eq!(listed.len(), lint::CODES.len());
    for source in [
        include_str!("../../src/lint.rs"),
        include_str!("../../src/layer.rs"),
        include_str!("../../src/layer/narrow.rs"),
        include_str!("../../src/layer/ceilings.rs"),
    ] {
        for (at, _) in source.match_indices("\"RF") {
            let code = &source[at + 1..at + 7];
            assert!(listed.contains(code), "{code} is not listed");
        }
    }
}
