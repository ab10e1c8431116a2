//! One table for each threat of the egress list that a pure decision can answer, each with a control that is allowed.

use crate::*;

fn good() -> Policy {
    with_hosts(&["+ api.good.test:443"])
}

fn parses_to(text: impl AsRef<[u8]>) -> Option<String> {
    Destination::parse_authority(text, Some(443), Protocol::Tcp).ok().map(|d| d.to_string())
}

fn allowed(policy: &Policy, text: &str) -> bool {
    let parsed = Destination::parse_authority(text, Some(443), Protocol::Tcp);
    parsed.is_ok_and(|d| policy.may_connect(&d).verdict == Verdict::Allowed)
}

/// T7: no name leads to this host, its networks or a metadata service.
#[test]
fn t7_addresses_that_are_not_public() {
    let policy = good();
    let at = |policy: &Policy, address: &str| policy.may_address(&to("api.good.test"), address.parse().unwrap(), &[]);
    for (address, code) in [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "reserved"),
        ("0.1.2.3", "reserved"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.0.1", "private"),
        ("fd00::1", "private"),
        ("fc00::1", "private"),
        ("100.64.0.1", "cgnat"),
        ("169.254.1.1", "link_local"),
        ("fe80::1", "link_local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.2.1", "reserved"),
        ("198.51.100.1", "reserved"),
        ("203.0.113.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("::", "reserved"),
    ] {
        let decision = at(&policy, address);
        assert_eq!((decision.verdict, decision.code), (Verdict::Denied, code), "{address}");
        // The control: named by a rule with its port, it is reached.
        let rule = if address.contains(':') { format!("+ [{address}]:443") } else { format!("+ {address}:443") };
        let named = with_hosts(&["+ api.good.test:443", &rule]);
        assert_eq!(at(&named, address).code, "named_by_rule", "{address}");
    }
    for address in ["1.1.1.1", "93.184.216.34", "2606:4700::1111"] {
        assert_eq!(at(&policy, address).code, "public", "{address}");
    }
}

#[test]
fn t7_metadata_services_are_never_opened() {
    let networks = [
        "+ 169.254.0.0/16:*",
        "+ 169.254.169.254:*",
        "+ 0.0.0.0/0:*",
        "+ [::/0]:*",
        "+ 168.63.129.16:*",
        "+ [fd00:ec2::254]:*",
        "+ 100.64.0.0/10:*",
        "+ [64:ff9b::/96]:*",
    ];
    let mut hosts = vec!["+ api.good.test:443", "+ *:*", "+ metadata.google.internal:*", "+ metadata:*"];
    hosts.extend(networks);
    let mut fragment = fragment(Layer::Managed, &[], &hosts);
    fragment.hosts[0].addresses =
        vec!["0.0.0.0/0".parse().unwrap(), "169.254.0.0/16".parse().unwrap(), "::/0".parse().unwrap()];
    let policy = policy(vec![fragment]);
    for address in [
        "169.254.169.254",
        "169.254.169.253",
        "169.254.169.123",
        "169.254.170.2",
        "169.254.170.23",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ] {
        let ip: std::net::IpAddr = address.parse().unwrap();
        assert_eq!(policy.may_address(&to("api.good.test"), ip, &[]).code, "metadata", "{address}");
        let literal = Destination::new(Host::from_address(ip), 80, Protocol::Http).unwrap();
        assert_eq!(policy.may_connect(&literal).code, "metadata", "{address}");
    }
    for name in ["metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data"] {
        assert_eq!(policy.may_connect(&to(name)).code, "metadata", "{name}");
    }
    // The control: a neighbour in the same network is opened by the same rules.
    assert_eq!(policy.may_address(&to("api.good.test"), "169.254.1.1".parse().unwrap(), &[]).code, "named_by_rule");
}

/// T8: what an IPv6 address embeds is judged as well.
#[test]
fn t8_embedded_addresses() {
    let policy = good();
    let at = |address: &str| policy.may_address(&to("api.good.test"), address.parse().unwrap(), &[]);
    for address in [
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:7f00:0:100::",
        "2002:7f00:1::1",
        "2001:0:1:1:1:1:80ff:fffe",
        "2a00::5efe:7f00:1",
        "2a00::200:5efe:a00:1",
        "64:ff9b::a00:1",
        "::ffff:0:10.0.0.1",
    ] {
        assert_eq!(at(address).verdict, Verdict::Denied, "{address}");
    }
    for address in ["::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "2a00::5efe:101:101"] {
        assert_eq!(at(address).verdict, Verdict::Allowed, "{address}");
    }
    // Naming the outer network is not naming what it embeds.
    let outer = with_hosts(&["+ api.good.test:443", "+ [2002::/16]:443"]);
    assert_eq!(outer.may_address(&to("api.good.test"), "2002:7f00:1::1".parse().unwrap(), &[]).code, "loopback");
    assert_eq!(outer.may_connect(&to("[2002:7f00:1::1]")).code, "loopback");
    assert_eq!(outer.may_connect(&to("[2002:101:101::1]")).code, "allowed");
}

/// T9: every spelling of an address is that address; what only looks like one is nothing.
#[test]
fn t9_spellings_of_addresses() {
    for text in ["0x7f.1", "0177.0.0.1", "2130706433", "127.1", "127.0.0.1.", "0x7f000001", "[::ffff:127.0.0.1]"] {
        assert_eq!(parses_to(text).as_deref(), Some("127.0.0.1:443"), "{text}");
        assert!(!allowed(&with_hosts(&["+ *:*", "+ 0.0.0.0/0:*"]), text), "{text}");
        assert!(allowed(&with_hosts(&["+ 127.0.0.1:443"]), text), "{text}");
    }
    for text in [
        "%31%32%37.0.0.1",
        "[::1%25lo]",
        "[::1%lo]",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127.0.0.1.1",
        "127.0.0.256",
        ".127.0.0.1",
    ] {
        assert_eq!(parses_to(text), None, "{text}");
    }
}

/// T10: bytes, lengths and dots.
#[test]
fn t10_bytes_lengths_dots_case() {
    let policy = good();
    for text in ["api.good.test", "API.GOOD.TEST.", "Api.Good.Test:443"] {
        assert!(allowed(&policy, text), "{text}");
    }
    for bytes in [
        &b"api.good.test\0.evil"[..],
        b"api.good.test\0",
        b"evil.test\0.api.good.test",
        b"api.good.test%00",
        b"api.good.test ",
        b" api.good.test",
        b"api.good.test\t",
        b"api.good.test\r\n",
        b"api..good.test",
        b".api.good.test",
        b"api.good.test..",
        b"api.good.test\x7f",
        b"api.good.test\xff",
        b"",
        b":443",
    ] {
        assert_eq!(parses_to(bytes), None, "{}", bytes.escape_ascii());
    }
    assert_eq!(parses_to(format!("{}.good.test", "a".repeat(64))), None);
    assert_eq!(parses_to(vec![b'a'; 254]), None);
    assert_eq!(parses_to("a_b.good.test").as_deref(), Some("a_b.good.test:443"));
}

/// T11: letters that look alike are other names.
#[test]
fn t11_homoglyphs() {
    let policy = good();
    assert_eq!(parses_to("\u{430}pi.good.test"), None);
    assert!(!allowed(&policy, "xn--pi-6kc.good.test"));
    let error = HostPattern::parse("\u{430}pi.good.test", Wide::Refused).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("write `xn--pi-6kc.good.test`"));
    assert!(allowed(&with_hosts(&["+ xn--pi-6kc.good.test"]), "XN--PI-6kc.good.test"));
}

/// T12: a wildcard ends at a label and never reaches the apex or an address.
#[test]
fn t12_wildcards() {
    let policy = with_hosts(&["+ *.github.test"]);
    for text in ["api.github.test", "a.b.github.test"] {
        assert!(allowed(&policy, text), "{text}");
    }
    for text in [
        "github.test",
        "evilgithub.test",
        "github.test.evil.test",
        "api.github.test.evil.test",
        "127.0.0.1",
        "xn--github.test",
    ] {
        assert!(!allowed(&policy, text), "{text}");
    }
    for text in ["*", "*.com", "*.co.uk", "*.github.io", "**.github.test", "a*.github.test", "api.*.test"] {
        assert!(HostPattern::parse(text, Wide::Refused).is_err(), "{text}");
    }
}

/// T13: an authority that two readers could read differently is refused, or read as any reader would.
#[test]
fn t13_authorities() {
    for text in [
        "api.good.test@evil.test",
        "api.good.test:443@evil.test",
        "evil.test@api.good.test",
        "user:pass@api.good.test:443",
        "a@b@api.good.test",
        "api.good.test\\@evil.test",
        "api.good.test\\.evil.test",
        "api.good.test#@evil.test",
        "api.good.test?@evil.test",
        "api.good.test/..",
        "/api.good.test",
        "//api.good.test",
        "http://api.good.test",
        "api.good.test#",
        "api.good.test?",
        "api.good.test;evil.test",
        "api.good.test,evil.test",
        "api.good.test|evil.test",
        "api.good.test&evil.test",
        "api.good.test=evil.test",
        "<api.good.test>",
        "\"api.good.test\"",
        "'api.good.test'",
        "(api.good.test)",
        "{api.good.test}",
        "[api.good.test]",
        "api.good.test:443:443",
        "api.good.test:",
        "api.good.test:0",
        "api.good.test:65536",
        "api.good.test:443 ",
        "api.good.test: 443",
        "api.good.test:+443",
        "api.good.test:0x1bb",
        "api.good.test:4 43",
        "api.good.test:443/",
        "api.good.test:443#",
        "::1",
        "[::1",
        "::1]",
        "[::1]443",
        "[::1]:",
        "[]",
        "*.good.test",
        "api.good.test\u{2028}",
    ] {
        assert_eq!(parses_to(text), None, "{text}");
    }
    for (text, read) in [
        ("api.good.test:443", "api.good.test:443"),
        ("api.good.test:0443", "api.good.test:443"),
        ("[::1]:443", "[::1]:443"),
        ("1.1.1.1", "1.1.1.1:443"),
    ] {
        assert_eq!(parses_to(text).as_deref(), Some(read), "{text}");
    }
}

/// T14: a host is not its ports.
#[test]
fn t14_ports() {
    let policy = with_hosts(&["+ api.good.test", "+ git.good.test:22"]);
    for (text, code) in [
        ("api.good.test:443", "allowed"),
        ("api.good.test:80", "allowed"),
        ("api.good.test:25", "port"),
        ("api.good.test:22", "port"),
        ("api.good.test:6379", "port"),
        ("git.good.test:22", "allowed"),
        ("git.good.test:443", "port"),
    ] {
        let decision = policy.may_connect(&to(text));
        assert_eq!(decision.code, code, "{text}");
    }
}
