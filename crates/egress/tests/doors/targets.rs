//! T9 to T15, T24 to T26: what a client may write in the place of a host.

use crate::rig::{GOOD, HELLO, Manner, Server, Setup, dial, head, hello, rest};
use ringfence_policy::HostVerb;
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Spellings of the loopback, and names that hold bytes which no name may hold, through every door that takes text. None
/// may reach the server on the loopback, and none may be resolved.
#[test]
fn t9_t10_t13_no_spelling_gets_past_the_rules() {
    let sink = Server::at(SocketAddr::from(([127, 0, 0, 1], 0)), Manner::Http(HELLO));
    let port = sink.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let hosts: &[&[u8]] = &[
        b"127.0.0.1",
        b"127.1",
        b"0x7f.1",
        b"0x7f000001",
        b"0177.0.0.1",
        b"2130706433",
        b"017700000001",
        b"127.0.0.1.",
        b"0",
        b"0.0.0.0",
        b"[::1]",
        b"[::]",
        b"[::ffff:127.0.0.1]",
        b"[::127.0.0.1]",
        b"[::1%25lo]",
        b"[::1%lo]",
        b"localhost",
        b"LOCALHOST.",
        b"a.localhost",
        b"%31%32%37.0.0.1",
        b"127.0.0.1%00.good.test",
        b"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
        b"api.good.test\0.evil.test",
        b"evil.test\0.api.good.test",
        b"api.good.test%00",
        b"api.good.test\\@127.0.0.1",
        b"127.0.0.1\\.api.good.test",
        b"api.good.test@127.0.0.1",
        b"user:pw@127.0.0.1",
        b"a@b@127.0.0.1",
        b"127.0.0.1#@api.good.test",
        b"127.0.0.1?.api.good.test",
        b"127.0.0.1/.api.good.test",
        b"api..good.test",
        b".api.good.test",
        b"api.good.test..",
        b"api.good.test ",
        b"api.good.test\t",
        b"evilapi.good.test",
        b"api.good.test.evil.test",
        b"good.test",
        b"\xd0\xb0pi.good.test",
        b"xn--pi-7kc.good.test",
        b"*",
        b"1.2.3",
        b"256.1.1.1",
        b"api.good.test,127.0.0.1",
        b"",
    ];
    for host in hosts {
        let shown = String::from_utf8_lossy(host).into_owned();
        let port_text = port.to_string();
        let answer = rig.raw([b"CONNECT ", *host, b":", port_text.as_bytes(), b" HTTP/1.1\r\n\r\n"].concat());
        let refused = |answer: &str| answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 403 ");
        assert!(refused(&answer), "CONNECT {shown}: {answer}");
        let target = [b"http://", *host, b":", port_text.as_bytes(), b"/"].concat();
        let answer = rig.raw(
            [b"GET ", &target[..], b" HTTP/1.1\r\nHost: ", host, b":", port_text.as_bytes(), b"\r\n\r\n"].concat(),
        );
        assert!(refused(&answer), "GET {shown}: {answer}");
        let (reply, _) = rig.socks(3, host, port);
        assert!(reply == 1 || reply == 2, "SOCKS5 {shown}: {reply}");
    }
    let (reply, _) = rig.socks(1, &[127, 0, 0, 1], port);
    assert_eq!(reply, 2);
    let (reply, _) = rig.socks(4, &std::net::Ipv6Addr::LOCALHOST.octets(), port);
    assert_eq!(reply, 2);
    sink.saw_nothing();
    assert_eq!(sink.connections(), 0);
    assert_eq!(rig.resolver.asked.lock().unwrap().len(), 0);
    assert_eq!(rig.denials(), hosts.len() * 3 + 2);
}

/// The same name in any case and with its dot is the name (the control of the test above).
#[test]
fn t10_every_spelling_of_an_allowed_name_is_that_name() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for host in ["api.good.test", "API.GOOD.TEST", "api.good.test.", "Api.Good.Test."] {
        let (answer, mut stream) = rig.connect(format!("{host}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
        let bytes = hello("API.good.test.");
        stream.write_all(&bytes).unwrap();
        let mut echoed = vec![0; bytes.len()];
        stream.read_exact(&mut echoed).unwrap();
        assert_eq!(echoed, bytes);
        let (reply, _) = rig.socks(3, host.as_bytes(), port);
        assert_eq!(reply, 0, "{host}");
    }
    assert_eq!(rig.denials(), 0);
}

#[test]
fn t12_wildcards_end_at_labels() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let mut setup = Setup::new(port).allow("*.good.test", &[port]);
    let names =
        ["a.good.test", "a.b.good.test", "good.test", "evilgood.test", "good.test.evil.test", "a.good.test.evil.test"];
    for name in names {
        setup = setup.answer(name, &[&[GOOD]]);
    }
    let rig = setup.start();
    for (name, allowed) in names.iter().zip([true, true, false, false, false, false]) {
        let answer = rig.raw(format!("GET http://{name}:{port}/ HTTP/1.0\r\n\r\n"));
        let want = if allowed { "HTTP/1.1 200 " } else { "HTTP/1.1 403 " };
        assert!(answer.starts_with(want), "{name}: {answer}");
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(*rig.resolver.asked.lock().unwrap(), ["a.good.test", "a.b.good.test"]);
}

#[test]
fn t14_a_rule_is_for_its_ports() {
    let server = Server::good(Manner::Echo);
    let other = Server::good(Manner::Echo);
    let rig = Setup::new(server.port()).allow("api.good.test", &[server.port()]).start();
    let (answer, _) = rig.connect(format!("api.good.test:{}", server.port()));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (answer, _) = rig.connect(format!("api.good.test:{}", other.port()));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    rig.denied("port");
    let (reply, _) = rig.socks(3, b"api.good.test", 25);
    assert_eq!(reply, 2);
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_deny_beats_an_allow_through_every_door() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let setup = Setup::new(port).allow("*.good.test", &[port]).rule(HostVerb::Deny, "bad.good.test", &[], &[]);
    let rig = setup.answer("bad.good.test", &[&[GOOD]]).answer("ok.good.test", &[&[GOOD]]).start();
    let (answer, _) = rig.connect(format!("bad.good.test:{port}"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(rig.socks(3, b"bad.good.test", port).0, 2);
    assert!(rig.raw(format!("GET http://bad.good.test:{port}/ HTTP/1.0\r\n\r\n")).starts_with("HTTP/1.1 403 "));
    let mut stream = rig.transparent("bad.good.test", port);
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: bad.good.test:{port}\r\n\r\n").as_bytes()).unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 403 "));
    server.saw_nothing();
    assert!(rig.raw(format!("GET http://ok.good.test:{port}/ HTTP/1.0\r\n\r\n")).ends_with("hello"));
    assert_eq!(rig.events().iter().filter(|e| e["code"] == "denied_by_rule").count(), 4);
}

/// The same verdict through every door, with a refusal that its client shows.
#[test]
fn t24_t25_t26_one_decision_behind_all_doors() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).answer("evil.test", &[&[GOOD]]).start();

    let (answer, mut stream) = rig.connect(format!("evil.test:{port}"));
    assert!(
        answer.starts_with(&format!("HTTP/1.1 403 ringfence: evil.test:{port} refused: no rule allows it")),
        "{answer}"
    );
    assert!(answer.contains("\r\nX-Proxy-Error: no_rule; "), "{answer}");
    let body: serde_json::Value = serde_json::from_str(&rest(&mut stream)).unwrap();
    assert_eq!(body["code"], "no_rule");
    assert!(body["remedy"].as_str().unwrap().contains("--allow-host evil.test"), "{body}");

    let answer = rig.raw(format!("GET http://evil.test:{port}/x?secret HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(rig.socks(3, b"evil.test", port).0, 2);

    // As an address that the client looked up itself, through SOCKS, CONNECT and no proxy.
    let Some(std::net::IpAddr::V4(evil)) = rig.lookup("evil.test", 1) else { panic!() };
    assert_eq!(rig.socks(1, &evil.octets(), port).0, 2);
    let (answer, _) = rig.connect(format!("{evil}:{port}"));
    assert!(answer.starts_with(&format!("HTTP/1.1 403 ringfence: evil.test:{port} ")), "{answer}");
    let mut stream = dial(SocketAddr::from((evil, port)));
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n").as_bytes()).unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 403 "));
    let mut stream = dial(SocketAddr::from((evil, port)));
    stream.write_all(&hello("evil.test")).unwrap();
    assert_eq!(crate::rig::rest_bytes(&mut stream), [0x15, 3, 3, 0, 2, 2, 49]);

    server.saw_nothing();
    assert_eq!(server.connections(), 0);
    assert!(rig.resolver.asked.lock().unwrap().is_empty(), "a refused name was resolved");
    assert_eq!(rig.events().iter().filter(|e| e["code"] == "no_rule").count(), 7);

    // The control, by name and by the address that stands for it.
    let Some(std::net::IpAddr::V4(good)) = rig.lookup("api.good.test", 1) else { panic!() };
    for (reply, mut stream) in [rig.socks(3, b"api.good.test", port), rig.socks(1, &good.octets(), port)] {
        assert_eq!(reply, 0);
        stream
            .write_all(format!("GET / HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: close\r\n\r\n").as_bytes())
            .unwrap();
        assert!(rest(&mut stream).ends_with("hello"));
    }
    let (answer, _) = rig.connect(format!("{good}:{port}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut stream = dial(SocketAddr::from((good, port)));
    stream
        .write_all(format!("GET / HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    assert!(rest(&mut stream).ends_with("hello"));
}

/// A program inside that relays for another one changes nothing: the relay is refused what its client would be.
#[test]
fn t25_a_relay_inside_is_refused_like_its_client() {
    let server = Server::good(Manner::Echo);
    let rig = Setup::new(server.port()).allow("api.good.test", &[server.port()]).start();
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap();
    let http = rig.http;
    std::thread::spawn(move || {
        let (inside, _) = relay.accept().unwrap();
        let outside = dial(http);
        let (mut a, mut b) = (inside.try_clone().unwrap(), outside.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut a, &mut b));
        let (mut inside, mut outside) = (inside, outside);
        let _ = std::io::copy(&mut outside, &mut inside);
    });
    let mut stream = dial(address);
    stream.write_all(format!("CONNECT evil.test:{} HTTP/1.1\r\n\r\n", server.port()).as_bytes()).unwrap();
    assert!(head(&mut stream).starts_with("HTTP/1.1 403 "));
    // Nor does the proxy reach itself, by any of its addresses.
    for door in [rig.http, rig.socks, rig.dns_tcp] {
        let (answer, _) = rig.connect(door.to_string());
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    assert_eq!(server.connections(), 0);
    rig.denied("own_loopback");
}

#[test]
fn t24_only_socks5_connect() {
    let server = Server::good(Manner::Echo);
    let rig = Setup::new(server.port()).allow("api.good.test", &[server.port()]).start();
    for (command, want) in [(2u8, 7u8), (3, 7), (9, 7)] {
        let mut stream = dial(rig.socks);
        stream.write_all(&[5, 1, 0]).unwrap();
        stream
            .write_all(&[&[5, command, 0, 3, 13][..], b"api.good.test", &server.port().to_be_bytes()].concat())
            .unwrap();
        let mut reply = [0; 12];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[3], want);
    }
    let mut stream = dial(rig.socks);
    stream.write_all(b"\x04\x01\x00\x50\x00\x00\x00\x01user\0api.good.test\0").unwrap();
    let mut reply = [0; 8];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[1], 0x5b);
    let mut stream = dial(rig.socks);
    stream.write_all(&[5, 1, 2]).unwrap();
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [5, 0xff]);
    assert_eq!(server.connections(), 0);
    assert_eq!(rig.socks(3, b"api.good.test", server.port()).0, 0);
}

#[test]
fn connect_takes_no_body_and_no_second_host() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for (fields, code) in [
        ("Host: evil.test".to_owned(), "host_mismatch"),
        ("Host: api.good.test:1".to_owned(), "host_mismatch"),
        (format!("Host: api.good.test:{port}\r\nHost: api.good.test:{port}"), "bad_request"),
        ("Content-Length: 5".to_owned(), "bad_request"),
        ("Transfer-Encoding: chunked".to_owned(), "bad_request"),
    ] {
        let answer = rig.raw(format!("CONNECT api.good.test:{port} HTTP/1.1\r\n{fields}\r\n\r\nhello"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{fields}: {answer}");
        rig.denied(code);
    }
    assert_eq!(server.connections(), 0);
    for fields in [
        format!("Host: api.good.test:{port}"),
        "Host: api.good.test".to_owned(),
        "X: y".to_owned(),
        "Content-Length: 0".to_owned(),
    ] {
        let mut stream = dial(rig.http);
        stream.write_all(format!("CONNECT api.good.test:{port} HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes()).unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200 "), "{fields}");
    }
}
