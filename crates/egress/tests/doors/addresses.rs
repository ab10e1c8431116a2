//! T6 to T8: what an allowed name may resolve to.

use crate::rig::{GOOD, HELLO, Manner, Server, Setup, ip, rest};
use ringfence_policy::HostVerb;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

/// Every kind of address that is not for everybody, in the answer for an allowed name.
const REFUSED: &[(&str, &str)] = &[
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("::1", "loopback"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("fd12:3456::1", "private"),
    ("100.64.0.1", "cgnat"),
    ("169.254.1.1", "link_local"),
    ("fe80::1", "link_local"),
    ("169.254.169.254", "metadata"),
    ("fd00:ec2::254", "metadata"),
    ("168.63.129.16", "metadata"),
    ("100.100.100.200", "metadata"),
    ("224.0.0.1", "multicast"),
    ("ff02::1", "multicast"),
    ("0.0.0.0", "reserved"),
    ("0.1.2.3", "reserved"),
    ("255.255.255.255", "reserved"),
    ("240.0.0.1", "reserved"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("::", "reserved"),
    ("2001:db8::1", "reserved"),
    // The same in IPv6 clothes.
    ("::ffff:169.254.169.254", "metadata"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("2002:a9fe:a9fe::1", "metadata"),
    ("::ffff:127.0.0.1", "loopback"),
    ("64:ff9b::7f00:1", "loopback"),
    ("2002:7f00:1::1", "loopback"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::a00:1", "private"),
];

#[test]
fn t7_t8_a_name_must_not_resolve_inwards() {
    let sink = Server::at(SocketAddr::from(([127, 0, 0, 1], 0)), Manner::Http(HELLO));
    let port = sink.port();
    let mut setup = Setup::new(port).rule(HostVerb::Allow, "*.inward.test", &[port], &[]);
    for (number, (address, _)) in REFUSED.iter().enumerate() {
        setup = setup.answer(&format!("n{number}.inward.test"), &[&[address]]);
    }
    let rig = setup.start();
    for (number, (address, code)) in REFUSED.iter().enumerate() {
        let name = format!("n{number}.inward.test");
        let (answer, mut stream) = rig.connect(format!("{name}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        let body: serde_json::Value = serde_json::from_str(&rest(&mut stream)).unwrap();
        assert_eq!(body["code"], *code, "{address}: {body}");
        assert_eq!(body.get("remedy").is_some(), *code != "metadata", "{address}: {body}");
        assert!(
            rig.raw(format!("GET http://{name}:{port}/ HTTP/1.0\r\n\r\n")).starts_with("HTTP/1.1 403 "),
            "{address}"
        );
        assert_eq!(rig.socks(3, name.as_bytes(), port).0, 2, "{address}");
    }
    assert_eq!(sink.connections(), 0);
    assert_eq!(rig.denials(), REFUSED.len() * 3);
}

#[test]
fn t7_metadata_is_never_opened_by_a_host_rule() {
    let rig = Setup::new(80)
        .ports_only(&[])
        .rule(HostVerb::Allow, "169.254.169.254", &[], &[])
        .rule(HostVerb::Allow, "169.254.0.0/16", &[], &[])
        .rule(HostVerb::Allow, "metadata.test", &[], &["169.254.169.254", "0.0.0.0/0"])
        .rule(HostVerb::Allow, "metadata.google.internal", &[], &[])
        .answer("metadata.test", &[&["169.254.169.254"]])
        .start();
    for target in [
        "169.254.169.254:80",
        "0xa9fea9fe:80",
        "[::ffff:169.254.169.254]:80",
        "metadata.test:80",
        "metadata.google.internal:80",
    ] {
        let (answer, mut stream) = rig.connect(target);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
        assert!(rest(&mut stream).contains("\"metadata\""), "{target}");
    }
}

/// The name stands for a good server first and for the loopback then.
#[test]
fn t6_rebinding() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let sink = Server::at(SocketAddr::from(([127, 0, 0, 1], port)), Manner::Http(HELLO));
    let rig =
        Setup::new(port).allow("api.good.test", &[port]).answer("api.good.test", &[&[GOOD], &["127.0.0.1"]]).start();
    let get = format!("GET http://api.good.test:{port}/ HTTP/1.0\r\n\r\n");
    assert!(rig.raw(&get).ends_with("hello"));
    assert_eq!(rig.resolver.asked.lock().unwrap().len(), 1, "the name was looked up between check and use");
    assert!(rig.raw(&get).starts_with("HTTP/1.1 403 "));
    let (answer, _) = rig.connect(format!("api.good.test:{port}"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let mut stream = rig.transparent("api.good.test", port);
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n").as_bytes()).unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 403 "));
    assert_eq!((server.requests().len(), sink.connections()), (1, 0));
}

#[test]
fn t6_one_bad_address_condemns_the_name() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let sink = Server::at(SocketAddr::from(([127, 0, 0, 1], port)), Manner::Http(HELLO));
    for mixed in [[GOOD, "127.0.0.1"], ["127.0.0.1", GOOD], [GOOD, "::1"], [GOOD, "169.254.169.254"]] {
        let rig = Setup::new(port).allow("api.good.test", &[port]).answer("api.good.test", &[&mixed]).start();
        let (answer, _) = rig.connect(format!("api.good.test:{port}"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{mixed:?}: {answer}");
    }
    assert_eq!((server.connections(), sink.connections()), (0, 0));
}

/// A rule that names an address opens it, as itself and for the names that another rule allows; not for other names.
#[test]
fn a_rule_over_an_address() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port)
        .rule(HostVerb::Allow, GOOD, &[port], &[])
        .rule(HostVerb::Allow, "api.good.test", &[port], &[])
        .answer("api.good.test", &[&[GOOD]])
        .answer("other.test", &[&[GOOD]])
        .start();
    for (host, want) in [(GOOD, "200"), ("api.good.test", "200"), ("other.test", "403"), ("127.0.0.1", "403")] {
        let answer = rig.raw(format!("GET http://{host}:{port}/ HTTP/1.0\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {want} ")), "{host}: {answer}");
    }
    // On a connection to the address, a Host field may name what could have resolved to it, and nothing else.
    for (host, want) in [
        (format!("{GOOD}:{port}"), "200"),
        (format!("api.good.test:{port}"), "200"),
        (format!("other.test:{port}"), "421"),
        (GOOD.to_owned(), "421"),
    ] {
        let (_, mut stream) = rig.connect(format!("{GOOD}:{port}"));
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let answer = rest(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {want} ")), "{host}: {answer}");
    }
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn own_addresses_are_refused_for_names() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    // A public address of this host: the wall of the sandbox would be reached from its own outside.
    let mut setup = Setup::new(port).rule(HostVerb::Allow, "me.test", &[port], &[]).answer("me.test", &[&["8.8.4.4"]]);
    setup.own = vec![ip("8.8.4.4")];
    let rig = setup.start();
    let (answer, _) = rig.connect(format!("me.test:{port}"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    rig.denied("own_address");
}

#[test]
fn failures_are_told_apart() {
    let server = Server::good(Manner::Echo);
    let dead = {
        let listener = std::net::TcpListener::bind((ip(GOOD), 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut setup = Setup::new(server.port()).allow("api.good.test", &[]).rule(HostVerb::Allow, "gone.test", &[], &[]);
    setup.tuning.connect = std::time::Duration::from_millis(300);
    let rig = setup.start();
    let (answer, _) = rig.connect(format!("api.good.test:{dead}"));
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("connect_refused"), "{answer}");
    assert_eq!(rig.socks(3, b"api.good.test", dead).0, 5);
    let (answer, _) = rig.connect("gone.test:443");
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("resolve_failed"), "{answer}");
    assert_eq!(rig.socks(3, b"gone.test", 443).0, 4);
    rig.settled();
    assert_eq!(rig.denials(), 0, "what an allowed host does is no refusal of ours");
    let address: IpAddr = ip(GOOD);
    assert!(address.is_loopback());
}
