//! Hosts: which rule decides, which ports, which addresses a name may stand for.

use crate::*;

fn code(policy: &Policy, destination: &str) -> &'static str {
    policy.may_connect(&to(destination)).code
}

#[test]
fn codes_and_remedies() {
    let policy = with_hosts(&[
        "+ api.good.test",
        "+ *.wild.test:8443",
        "+ git.test:22",
        "- bad.wild.test",
        "- api.good.test:80",
    ]);
    for (destination, code, remedy) in [
        ("api.good.test", "allowed", None),
        ("API.GOOD.TEST.", "allowed", None),
        ("api.good.test:80", "denied_by_rule", None),
        ("api.good.test:8080", "port", Some("--allow-host api.good.test:8080")),
        ("git.test:22", "allowed", None),
        ("git.test", "port", Some("--allow-host git.test")),
        ("x.wild.test:8443", "allowed", None),
        ("bad.wild.test:8443", "denied_by_rule", None),
        ("wild.test:8443", "no_rule", Some("--allow-host wild.test:8443")),
        ("evil.test", "no_rule", Some("--allow-host evil.test")),
        ("8.8.8.8", "no_rule", Some("--allow-host 8.8.8.8")),
        ("[2606:4700::1]:22", "no_rule", Some("--allow-host [2606:4700::1]:22")),
        ("metadata.google.internal:80", "metadata", None),
        ("169.254.169.254:80", "metadata", None),
    ] {
        let decision = policy.may_connect(&to(destination));
        assert_eq!((decision.code, decision.remedy.as_deref()), (code, remedy), "{destination}");
        assert_eq!(decision.verdict == Verdict::Allowed, code == "allowed", "{destination}");
    }
}

#[test]
fn an_empty_list_is_no_network() {
    for policy in [policy(vec![]), with_hosts(&["- evil.test"])] {
        assert!(policy.network_is_off());
        assert_eq!(code(&policy, "api.good.test"), "no_network");
        assert_eq!(policy.transparent_ports(), Vec::<u16>::new());
    }
    assert!(!with_hosts(&["+ a.test"]).network_is_off());
}

#[test]
fn the_narrowest_allow_is_named() {
    let policy = with_hosts(&["+ *", "+ *.good.test", "+ *.api.good.test", "+ x.api.good.test"]);
    let named = |destination: &str| {
        let index = policy.may_connect(&to(destination)).rule.unwrap();
        policy.network.rules[index].to_string()
    };
    assert_eq!(named("x.api.good.test"), "x.api.good.test");
    assert_eq!(named("y.api.good.test"), "*.api.good.test");
    assert_eq!(named("y.good.test"), "*.good.test");
    assert_eq!(named("evil.test"), "*");
}

#[test]
fn a_deny_of_everything_covers_addresses() {
    let policy = with_hosts(&["+ 8.8.8.8:*", "+ a.test", "- *"]);
    assert_eq!(code(&policy, "8.8.8.8"), "denied_by_rule");
    assert_eq!(code(&policy, "a.test"), "denied_by_rule");
    assert_eq!(code(&with_hosts(&["+ *"]), "8.8.8.8"), "no_rule");
}

#[test]
fn an_address_is_named_by_rule_and_port() {
    let policy = with_hosts(&["+ db.test:5432", "+ 10.9.9.9:5432", "+ 0.0.0.0/0:*", "+ 192.168.0.0/16"]);
    let at =
        |destination: &str, address: &str| policy.may_address(&to(destination), address.parse().unwrap(), &[]).code;
    assert_eq!(at("db.test:5432", "10.9.9.9"), "named_by_rule");
    assert_eq!(at("db.test:5432", "10.9.9.8"), "private");
    assert_eq!(at("db.test:443", "10.9.9.9"), "private");
    assert_eq!(at("db.test:443", "192.168.3.4"), "named_by_rule");
    assert_eq!(at("db.test:5432", "192.168.3.4"), "private");
    assert_eq!(at("db.test:5432", "127.0.0.1"), "loopback");
    assert_eq!(at("db.test:5432", "1.1.1.1"), "public");
    assert_eq!(code(&policy, "10.9.9.9:5432"), "allowed");
    assert_eq!(code(&policy, "10.9.9.8:5432"), "private");
    assert_eq!(code(&policy, "127.0.0.1:5432"), "loopback");
    assert_eq!(code(&policy, "9.9.9.9:25"), "allowed");
}

#[test]
fn addresses_of_a_rule_are_for_its_own_names() {
    let mut fragment = fragment(Layer::User, &[], &["+ intern.test", "+ other.test"]);
    fragment.hosts[0].addresses = vec!["10.0.0.0/8".parse().unwrap(), "169.254.0.0/16".parse().unwrap()];
    let policy = policy(vec![fragment]);
    let at =
        |destination: &str, address: &str| policy.may_address(&to(destination), address.parse().unwrap(), &[]).code;
    assert_eq!(at("intern.test", "10.1.2.3"), "named_by_rule");
    assert_eq!(at("intern.test:8080", "10.1.2.3"), "private");
    assert_eq!(at("other.test", "10.1.2.3"), "private");
    assert_eq!(at("intern.test", "169.254.1.1"), "named_by_rule");
    assert_eq!(at("intern.test", "169.254.169.254"), "metadata");
    assert_eq!(at("intern.test", "192.168.1.1"), "private");
}

#[test]
fn own_addresses_and_denied_addresses() {
    let policy = with_hosts(&["+ a.test", "- 203.0.114.0/24", "+ 93.0.0.0/8", "+ 94.1.2.3"]);
    let own = ["93.1.2.3".parse().unwrap(), "::ffff:94.1.2.3".parse().unwrap(), "95.1.2.3".parse().unwrap()];
    let at = |address: &str| policy.may_address(&to("a.test"), address.parse().unwrap(), &own).code;
    assert_eq!(at("93.1.2.3"), "own_address");
    assert_eq!(at("93.1.2.4"), "public");
    assert_eq!(at("94.1.2.3"), "named_by_rule");
    assert_eq!(at("95.1.2.3"), "own_address");
    assert_eq!(at("64:ff9b::5f01:203"), "own_address");
    assert_eq!(at("203.0.114.7"), "denied_by_rule");
    assert_eq!(at("::ffff:203.0.114.7"), "denied_by_rule");
    assert_eq!(at("64:ff9b::cb00:7207"), "denied_by_rule");
}

#[test]
fn ports_of_the_transparent_door() {
    let policy = with_hosts(&["+ a.test", "+ b.test:22", "+ c.test:22", "+ d.test:8443", "- e.test:99"]);
    assert_eq!(policy.transparent_ports(), [22, 80, 443, 8443]);
    assert_eq!(policy.transparent_note(), None);
    let policy = with_hosts(&["+ a.test:*"]);
    assert_eq!(policy.transparent_ports(), [22, 80, 443]);
    assert!(policy.transparent_note().unwrap().starts_with("`a.test:*` covers every port"));
}

#[test]
fn the_risk_that_remains() {
    assert_eq!(
        policy(vec![]).residual_risk(),
        "no host is reachable; what it may write it can destroy (ringfence explain)"
    );
    let policy = with_hosts(&["+ a.test"]);
    assert_eq!(policy.residual_risk(), "an allowed host can receive anything the program can read (ringfence explain)");
    assert!(with_hosts(&["+ *"]).residual_risk().starts_with("any host"));
}
