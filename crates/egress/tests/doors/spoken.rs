//! T1 to T5 and T39: what is spoken on a connection that was let in.

use crate::rig::{
    GOOD, HELLO, Manner, Rig, Server, Setup, dial, exactly, head, hello, hello_in, rest, rest_bytes, sni,
};
use ringfence_policy::HostVerb;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

/// A fatal `access_denied` alert.
const ALERT: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 49];

/// The same destination through each door that carries a stream.
fn through_all(rig: &Rig, host: &str, port: u16) -> Vec<(&'static str, TcpStream)> {
    let (answer, connect) = rig.connect(format!("{host}:{port}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (reply, socks) = rig.socks(3, host.as_bytes(), port);
    assert_eq!(reply, 0);
    vec![("connect", connect), ("socks", socks), ("transparent", rig.transparent(host, port))]
}

#[test]
fn t1_t3_a_hello_names_the_destination() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let good: Vec<Vec<u8>> = vec![
        hello("api.good.test"),
        hello("API.Good.Test"),
        hello_in(&[sni("api.good.test")], 7),
        [hello("api.good.test"), b"early data".to_vec()].concat(),
        // A hello with an encrypted one inside (or grease in its place) whose clear part names the destination.
        hello_in(&[sni("api.good.test"), (0xfe0d, vec![0; 100])], 16_000),
    ];
    for bytes in &good {
        for (door, mut stream) in through_all(&rig, "api.good.test", port) {
            stream.write_all(bytes).unwrap();
            assert_eq!(exactly(&mut stream, bytes.len()), *bytes, "{door}");
        }
    }
    assert_eq!(rig.denials(), 0);
    assert_eq!(server.connections(), good.len() * 3);
}

#[test]
fn t1_t3_t4_fronting_is_refused() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let twice = hello_in(&[sni("api.good.test"), sni("evil.test")], 16_000);
    let bad: Vec<(Vec<u8>, &str)> = vec![
        (hello("evil.test"), "sni_mismatch"),
        (hello("api.good.test.evil.test"), "sni_mismatch"),
        (hello("good.test"), "sni_mismatch"),
        (hello("127.0.0.2"), "sni_mismatch"),
        (hello("api.good.test\0.evil.test"), "sni_mismatch"),
        (hello_in(&[sni("evil.test")], 1), "sni_mismatch"),
        (hello_in(&[sni("public-name.test"), (0xfe0d, vec![0; 100])], 16_000), "sni_mismatch"),
        (hello_in(&[(10, vec![0, 2, 0, 29])], 16_000), "sni_missing"),
        (twice, "client_hello"),
        (b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00".to_vec(), "client_hello"),
    ];
    for (bytes, code) in &bad {
        let before = rig.events().iter().filter(|e| e["code"] == *code).count();
        for (door, mut stream) in through_all(&rig, "api.good.test", port) {
            stream.write_all(bytes).unwrap();
            assert_eq!(rest_bytes(&mut stream), ALERT, "{door} {code}");
        }
        assert_eq!(rig.events().iter().filter(|e| e["code"] == *code).count(), before + 3, "{code}");
    }
    server.saw_nothing();
}

/// On a connection that knew of no proxy, a refused hello is refused before anything is dialled.
#[test]
fn t1_a_refused_hello_dials_nothing() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let mut stream = rig.transparent("api.good.test", port);
    stream.write_all(&hello("evil.test")).unwrap();
    assert_eq!(rest_bytes(&mut stream), ALERT);
    assert_eq!(server.connections(), 0);
    assert!(rig.resolver.asked.lock().unwrap().is_empty());
}

#[test]
fn t2_a_request_names_the_destination_each_time() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).allow("other.good.test", &[port]).start();
    for (door, mut stream) in through_all(&rig, "api.good.test", port) {
        let get = |host: &str| format!("GET /{door} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        for _ in 0..2 {
            stream.write_all(get("API.good.test").as_bytes()).unwrap();
            assert!(head(&mut stream).starts_with("HTTP/1.1 200 "), "{door}");
            assert_eq!(exactly(&mut stream, 5), b"hello");
        }
        // Not even a host that is allowed as well: this connection is to another one.
        stream.write_all(get("other.good.test").as_bytes()).unwrap();
        assert!(rest(&mut stream).starts_with("HTTP/1.1 421 "), "{door}");
    }
    assert_eq!(server.requests().len(), 6);
    assert_eq!(server.connections(), 3, "requests on a kept connection share one");
    assert!(server.requests().iter().all(|r| r.contains(&format!("Host: api.good.test:{port}\r\n"))));
    rig.denied("host_mismatch");
}

#[test]
fn t2_t25_other_requests_inside_a_tunnel() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let rows = [
        (format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "421"),
        ("GET / HTTP/1.1\r\nHost: api.good.test\r\n\r\n".to_owned(), "421"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n"), "400"),
        (format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "421"),
        (format!("GET http://api.good.test:{port}/ HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "400"),
        (format!("GET evil.test HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n"), "400"),
        (format!("CONNECT evil.test:{port} HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "400"),
        (format!("CONNECT api.good.test:{port} HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n"), "400"),
        (format!("\r\nGET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\nHost: api.good.test:{port}, evil.test\r\n\r\n"), "400"),
    ];
    for (request, want) in &rows {
        for (door, mut stream) in through_all(&rig, "api.good.test", port) {
            stream.write_all(request.as_bytes()).unwrap();
            let answer = rest(&mut stream);
            assert!(answer.starts_with(&format!("HTTP/1.1 {want} ")), "{door} {request}: {answer}");
        }
    }
    server.saw_nothing();
    // The forms that mean the destination.
    for request in [
        format!("GET http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: close\r\n\r\n"),
        "GET / HTTP/1.0\r\n\r\n".to_owned(),
        format!("OPTIONS * HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: close\r\n\r\n"),
    ] {
        for (door, mut stream) in through_all(&rig, "api.good.test", port) {
            stream.write_all(request.as_bytes()).unwrap();
            assert!(rest(&mut stream).ends_with("hello"), "{door} {request}");
        }
    }
}

/// A request must not slip past its check because it comes in pieces.
#[test]
fn t2_a_request_in_single_bytes_is_still_a_request() {
    let server = Server::good(Manner::Http(HELLO));
    let (web, other) = (server.port(), Server::good(Manner::Silent));
    let rig = Setup::new(web).and_port(other.port()).allow("api.good.test", &[]).start();
    for port in [web, other.port()] {
        let (_, mut stream) = rig.connect(format!("api.good.test:{port}"));
        for byte in format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n").bytes() {
            stream.write_all(&[byte]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(rest(&mut stream).starts_with("HTTP/1.1 421 "));
    }
    server.saw_nothing();
    other.saw_nothing();
}

#[test]
fn t5_an_address_of_the_pool_that_stands_for_nothing() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let unmapped = SocketAddr::from(([127, 64, 9, 9], port));
    let mut stream = dial(unmapped);
    stream.write_all(&hello("api.good.test")).unwrap();
    assert_eq!(rest_bytes(&mut stream), ALERT);
    let mut stream = dial(unmapped);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: api.good.test\r\n\r\n").unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 403 "));
    let (answer, _) = rig.connect(unmapped.to_string());
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("no_name_for_address"), "{answer}");
    rig.denied("no_name_for_address");
    server.saw_nothing();
}

/// The transparent listener covers the loopback inside, which is never the host's.
#[test]
fn the_loopback_inside_is_not_the_hosts() {
    let sink = Server::at(SocketAddr::from(([127, 0, 0, 1], 0)), Manner::Echo);
    let port = sink.port();
    let rig = Setup::new(port).rule(HostVerb::Allow, "127.0.0.0/8", &[], &[]).start();
    let mut stream = dial(SocketAddr::from(([127, 0, 0, 77], port)));
    let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
    assert!(!rest(&mut stream).contains("HTTP"));
    rig.denied("own_loopback");
    sink.saw_nothing();
}

#[test]
fn t5_tls_to_an_address_needs_no_name_and_takes_only_allowed_ones() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port)
        .rule(HostVerb::Allow, GOOD, &[port], &[])
        .rule(HostVerb::Allow, "api.good.test", &[port], &[])
        .start();
    let nameless = hello_in(&[(10, vec![0, 2, 0, 29])], 16_000);
    for bytes in [nameless, hello("api.good.test")] {
        let (answer, mut stream) = rig.connect(format!("{GOOD}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        stream.write_all(&bytes).unwrap();
        assert_eq!(exactly(&mut stream, bytes.len()), bytes);
    }
    let before = server.bytes().len();
    let (_, mut stream) = rig.connect(format!("{GOOD}:{port}"));
    stream.write_all(&hello("evil.test")).unwrap();
    assert_eq!(rest_bytes(&mut stream), ALERT);
    rig.denied("sni_mismatch");
    assert_eq!(server.bytes().len(), before);
}

#[test]
fn t39_ports_of_the_web_carry_the_web() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.2 Debian\r\n"[..],
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"EHLO me\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        for (door, mut stream) in through_all(&rig, "api.good.test", port) {
            stream.write_all(bytes).unwrap();
            let answer = rest(&mut stream);
            let told = answer.is_empty() || answer == "(reset)" || answer.starts_with("HTTP/1.1 400 ");
            assert!(told, "{door}: {answer}");
        }
    }
    assert_eq!(rig.events().iter().filter(|e| e["code"] == "protocol_mismatch").count(), 12);
    server.saw_nothing();
}

/// On a port that a rule names, the server may speak first, and any protocol passes; TLS and HTTP are checked there too.
#[test]
fn other_ports_carry_any_protocol() {
    let ssh = Server::good(Manner::Banner(b"SSH-2.0-server\r\n"));
    let echo = Server::good(Manner::Echo);
    let rig =
        Setup::new(1).ports_only(&[ssh.port(), echo.port()]).allow("git.good.test", &[ssh.port(), echo.port()]).start();
    for (door, mut stream) in through_all(&rig, "git.good.test", ssh.port()) {
        assert_eq!(exactly(&mut stream, 16), b"SSH-2.0-server\r\n", "{door}");
        stream.write_all(b"SSH-2.0-client\r\n").unwrap();
        assert_eq!(exactly(&mut stream, 16), b"SSH-2.0-client\r\n", "{door}");
    }
    for bytes in [
        &b"\x00\x00\x00\x08\x04\xd2\x16\x2f"[..],
        b"PING\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"GET key\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        for (door, mut stream) in through_all(&rig, "git.good.test", echo.port()) {
            stream.write_all(bytes).unwrap();
            assert_eq!(exactly(&mut stream, bytes.len()), bytes, "{door}");
        }
    }
    assert_eq!(rig.denials(), 0);
    let before = echo.bytes().len();
    for (door, mut stream) in through_all(&rig, "git.good.test", echo.port()) {
        stream.write_all(&hello("evil.test")).unwrap();
        assert_eq!(rest_bytes(&mut stream), ALERT, "{door}");
    }
    for (door, mut stream) in through_all(&rig, "git.good.test", echo.port()) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n").unwrap();
        assert!(rest(&mut stream).starts_with("HTTP/1.1 421 "), "{door}");
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert_eq!(echo.bytes().len(), before);
}

#[test]
fn every_connection_has_one_allowed_and_one_closed() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let bytes = hello("api.good.test");
    for (_, mut stream) in through_all(&rig, "api.good.test", port) {
        stream.write_all(&bytes).unwrap();
        exactly(&mut stream, bytes.len());
    }
    rig.settled();
    let events = rig.events();
    for door in ["connect", "socks5", "transparent"] {
        let of =
            |kind: &str| events.iter().filter(|e| e["event"] == kind && e["door"] == door).cloned().collect::<Vec<_>>();
        let (allowed, closed) = (of("allowed"), of("closed"));
        assert_eq!((allowed.len(), closed.len()), (1, 1), "{events:#?}");
        assert_eq!(allowed[0]["destination"], format!("api.good.test:{port}"));
        assert_eq!(allowed[0]["address"], format!("{GOOD}:{port}"));
        assert!(allowed[0]["rule"].to_string().contains("--allow-host"));
        assert_eq!(closed[0]["sent"], bytes.len());
        assert_eq!(closed[0]["received"], bytes.len());
    }
}
