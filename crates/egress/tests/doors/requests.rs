//! T15 to T17, T20, T21, T26 and T40: plain requests through the proxy.

use crate::rig::{HELLO, Manner, Server, Setup, dial, exactly, head, rest};
use std::io::{Read, Write};

#[test]
fn t15_target_and_host_field_agree() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).answer("evil.test", &[&[crate::rig::GOOD]]).start();
    for (target, host, want) in [
        ("http://api.good.test:{}/", "evil.test:{}", "400"),
        ("http://evil.test:{}/", "api.good.test:{}", "400"),
        ("http://api.good.test:{}/", "api.good.test", "400"),
        ("https://api.good.test:{}/", "api.good.test:{}", "400"),
        ("ftp://api.good.test:{}/", "api.good.test:{}", "400"),
        ("/", "api.good.test:{}", "400"),
        ("api.good.test:{}/", "api.good.test:{}", "400"),
        ("http://user:secretpw@api.good.test:{}/", "api.good.test:{}", "400"),
        ("http://evil.test:{}/", "evil.test:{}", "403"),
        ("http://api.good.test:{}/", "api.good.test:{}", "200"),
        ("HTTP://API.good.test.:{}/", "api.GOOD.test:{}", "200"),
    ] {
        let fill = |text: &str| text.replace("{}", &port.to_string());
        let answer =
            rig.raw(format!("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", fill(target), fill(host)));
        assert!(answer.starts_with(&format!("HTTP/1.1 {want} ")), "{target} {host}: {answer}");
    }
    assert!(rig.raw(format!("GET http://api.good.test:{port}/ HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 400 "));
    assert_eq!(server.requests().len(), 2);
    assert!(!format!("{:?}", rig.events()).contains("secretpw"));
}

#[test]
fn t16_each_request_of_a_kept_connection_is_judged() {
    let server = Server::good(Manner::Http(HELLO));
    let other = Server::good(Manner::Http("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).allow("other.good.test", &[other.port()]).start();
    let get = |host: &str, port: u16| format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    // Pipelined: allowed, another allowed one, refused, and one that must not be served after the refusal.
    let all = [
        get("api.good.test", port),
        get("other.good.test", other.port()),
        get("evil.test", port),
        get("api.good.test", port),
    ];
    let answer = rig.raw(all.concat());
    let statuses: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "200", "403"], "{answer}");
    assert!(answer.contains("hello") && answer.contains("other"));
    assert_eq!((server.requests().len(), other.requests().len()), (1, 1));

    // On a connection to one host: 200, then 421.
    let mut stream = rig.transparent("api.good.test", port);
    let origin = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all([origin("api.good.test"), origin("evil.test")].concat().as_bytes()).unwrap();
    let answer = rest(&mut stream);
    let statuses: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "421"], "{answer}");
    assert_eq!(server.requests().len(), 2);
}

/// Requests that two readers could cut at different places. The server sees none of them, and nothing of what they hide.
#[test]
fn t17_smuggling() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let hidden = "GET /hidden HTTP/1.1\r\nHost: api.good.test\r\n\r\n";
    let chunk = format!("0\r\n\r\n{hidden}");
    let rows: Vec<(String, String)> = vec![
        (format!("Content-Length: {}\r\nTransfer-Encoding: chunked", chunk.len()), chunk.clone()),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {}", chunk.len()), chunk.clone()),
        (format!("Transfer-Encoding: chunked\r\nContent-length: {}", chunk.len()), chunk.clone()),
        ("Transfer-Encoding: xchunked".to_owned(), chunk.clone()),
        ("Transfer-Encoding: chunked, identity".to_owned(), chunk.clone()),
        ("Transfer-Encoding: identity, chunked".to_owned(), chunk.clone()),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x".to_owned(), chunk.clone()),
        ("Transfer-Encoding : chunked".to_owned(), chunk.clone()),
        ("Transfer-Encoding\t: chunked".to_owned(), chunk.clone()),
        (" Transfer-Encoding: chunked".to_owned(), chunk.clone()),
        ("X: y\r\n Transfer-Encoding: chunked".to_owned(), chunk.clone()),
        ("Transfer-Encoding:\x0bchunked".to_owned(), chunk.clone()),
        ("Transfer-Encoding: \"chunked\"".to_owned(), chunk.clone()),
        ("Transfer-Encoding: chunked\0".to_owned(), chunk.clone()),
        ("X: y\nTransfer-Encoding: chunked".to_owned(), chunk.clone()),
        ("X: y\rTransfer-Encoding: chunked".to_owned(), chunk.clone()),
        ("Content-Length: 0\r\nContent-Length: 5".to_owned(), "hello".to_owned()),
        ("Content-Length: 5\r\nContent-Length: 5".to_owned(), "hello".to_owned()),
        ("Content-Length: 5, 5".to_owned(), "hello".to_owned()),
        ("Content-Length: +5".to_owned(), "hello".to_owned()),
        ("Content-Length: 0x5".to_owned(), "hello".to_owned()),
        ("Content-Length: 5 ; x".to_owned(), "hello".to_owned()),
        ("Content-Length: -1".to_owned(), String::new()),
        ("Content-Length: 18446744073709551621".to_owned(), "hello".to_owned()),
        ("Content-Length : 5".to_owned(), "hello".to_owned()),
        ("Content-Length: 5\nX: y".to_owned(), "hello".to_owned()),
        ("Host: evil.test".to_owned(), String::new()),
        ("X\0: y".to_owned(), String::new()),
        ("X y: z".to_owned(), String::new()),
        (": y".to_owned(), String::new()),
        ("no colon".to_owned(), String::new()),
    ];
    for (fields, body) in &rows {
        let request = format!(
            "POST http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n{fields}\r\n\r\n{body}{hidden}"
        );
        let answer = rig.raw(&request);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{fields:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{fields:?}: {answer}");
        let mut stream = rig.transparent("api.good.test", port);
        stream
            .write_all(
                format!("POST / HTTP/1.1\r\nHost: api.good.test:{port}\r\n{fields}\r\n\r\n{body}{hidden}").as_bytes(),
            )
            .unwrap();
        assert!(rest(&mut stream).starts_with("HTTP/1.1 400 "), "{fields:?}");
    }
    server.saw_nothing();
    assert_eq!(rig.denials(), rows.len() * 2);
}

/// A body whose chunks are malformed ends the connection; what follows is not taken for a request.
#[test]
fn t17_malformed_chunks() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for body in [
        "5\nhello\n0\n\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "ffffffffffffffff\r\nhello",
    ] {
        let request = format!(
            "POST http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\nTransfer-Encoding: chunked\r\n\r\n{body}GET http://api.good.test:{port}/hidden HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n"
        );
        let answer = rig.raw(&request);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer}");
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    assert!(!String::from_utf8_lossy(&server.bytes()).contains("hidden"));
}

#[test]
fn what_a_server_gets_is_written_anew() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let answer = rig.raw(format!(
        "POST http://API.good.test:{port}?q=1 HTTP/1.1\r\nAccept: */*\r\nHost: api.good.test:{port}\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nConnection: close, X-Hop, Host, Content-Length\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nUser-Agent: t\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-T: v\r\n\r\n"
    ));
    assert!(answer.ends_with("hello"), "{answer}");
    let request = server.requests().concat();
    let (got_head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        got_head,
        format!(
            "POST /?q=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: api.good.test:{port}\r\nAccept: */*\r\nUser-Agent: t"
        )
    );
    assert!(body.ends_with("0\r\n\r\n") && !body.contains("ext") && !body.contains("X-T"), "{body}");
}

#[test]
fn t20_responses_are_written_anew() {
    for (answer, want) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAlt-Svc: h3=\":443\"\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX: y\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nT: v\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
        ),
    ] {
        let server = Server::good(Manner::Http(answer));
        let port = server.port();
        let rig = Setup::new(port).allow("api.good.test", &[port]).start();
        let mut stream = dial(rig.http);
        let get = format!("GET http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n");
        for _ in 0..3 {
            stream.write_all(get.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(exactly(&mut stream, want.len())).unwrap(), want);
        }
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn responses_that_cannot_be_trusted() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"",
    ] {
        let server = Server::good(Manner::Once(answer));
        let port = server.port();
        let rig = Setup::new(port).allow("api.good.test", &[port]).start();
        let got = rig.raw(format!("GET http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n"));
        assert!(got.starts_with("HTTP/1.1 502 "), "{}: {got}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn old_clients_and_bodies_without_a_length() {
    let server = Server::good(Manner::Once(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for version in ["1.0", "1.1"] {
        let got =
            rig.raw(format!("GET http://api.good.test:{port}/ HTTP/{version}\r\nHost: api.good.test:{port}\r\n\r\n"));
        assert_eq!(got, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
    }
    let server =
        Server::good(Manner::Http("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let got = rig.raw(format!("GET http://api.good.test:{port}/ HTTP/1.0\r\n\r\n"));
    assert_eq!(got, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", "chunks are nothing for HTTP/1.0");
    let server = Server::good(Manner::Http("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let mut stream = dial(rig.http);
    for _ in 0..2 {
        stream
            .write_all(
                format!("HEAD http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n").as_bytes(),
            )
            .unwrap();
        assert_eq!(head(&mut stream), "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    }
}

#[test]
fn expect_continue() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let got = head(&mut stream);
        assert!(got.contains("Expect: 100-continue"), "{got}");
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        let body = exactly(&mut stream, 5);
        stream.write_all(HELLO.as_bytes()).unwrap();
        body
    });
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let mut stream = dial(rig.http);
    stream
        .write_all(format!("PUT http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(head(&mut stream), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"12345").unwrap();
    assert!(head(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(server.join().unwrap(), b"12345");
}

#[test]
fn t21_websocket_and_no_other_upgrade() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let got = head(&mut stream);
            if got.contains("Upgrade: websocket\r\n") {
                assert!(got.contains("Connection: Upgrade\r\n") && got.contains("Sec-WebSocket-Key: k\r\n"), "{got}");
                stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi").unwrap();
                let mut buffer = [0; 64];
                while let Ok(count) = stream.read(&mut buffer) {
                    if count == 0 || stream.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
            } else {
                assert!(!got.to_lowercase().contains("upgrade"), "{got}");
                stream.write_all(HELLO.as_bytes()).unwrap();
            }
        }
    });
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let ask = |upgrade: &str| {
        format!(
            "GET http://api.good.test:{port}/ws?token=x HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAA\r\nSec-WebSocket-Key: k\r\n\r\n"
        )
    };
    let mut stream = dial(rig.http);
    stream.write_all(ask("websocket").as_bytes()).unwrap();
    assert_eq!(
        head(&mut stream),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    assert_eq!(exactly(&mut stream, 4), b"\x81\x02hi");
    // From here on bytes are bytes, whatever they look like.
    let frame = b"\x82\x05GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n\x00\xff";
    stream.write_all(frame).unwrap();
    assert_eq!(exactly(&mut stream, frame.len()), frame);
    drop(stream);
    for upgrade in ["h2c", "websocket, h2c", "TLS/1.0"] {
        let mut stream = dial(rig.http);
        stream.write_all(ask(upgrade).as_bytes()).unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200 "), "{upgrade}");
    }
    rig.settled();
    assert!(!format!("{:?}", rig.events()).contains("token"), "a query was logged");
}

#[test]
fn t40_the_record_is_one_line_of_truth() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let get = |host: &str, path: &str| {
        format!(
            "GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer s3cret\r\nCookie: s3cret\r\nConnection: close\r\n\r\n"
        )
    };
    assert!(rig.raw(get("api.good.test", "/a%0A{\"event\":\"allowed\"}?key=s3cret")).ends_with("hello"));
    assert!(rig.raw(get("api.good.test", "/\u{202e}\u{9b}2J?s3cret")).ends_with("hello"));
    let evil = b"CONNECT evil.test:443\x1b[2J\",\"event\":\"allowed HTTP/1.1\r\n\r\n";
    assert!(rig.raw(evil).starts_with("HTTP/1.1 400 "));
    assert_eq!(rig.socks(3, b"evil\n{\"event\":\"allowed\"}", 443).0, 1);
    rig.settled();
    for event in rig.events() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n') && line.bytes().all(|b| (0x20..0x7f).contains(&b)), "{line}");
        assert!(!line.contains("s3cret"), "{line}");
    }
    let event = rig.event("the request", |e| e["path"].as_str().is_some_and(|p| p.starts_with("/a%0A")));
    assert_eq!((event["method"].as_str(), event["event"].as_str()), (Some("GET"), Some("allowed")));
    assert_eq!(rig.events().iter().filter(|e| e["event"] == "allowed").count(), 2);
    assert_eq!(rig.denials(), 2);
}

/// A server closes a kept connection just as the next request goes out.
#[test]
fn a_kept_connection_that_died_is_replaced() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            head(&mut stream);
            stream.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let mut stream = dial(rig.http);
    for _ in 0..20 {
        stream
            .write_all(
                format!("GET http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\n\r\n").as_bytes(),
            )
            .unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200 "));
        assert_eq!(exactly(&mut stream, 5), b"hello");
    }
}

#[test]
fn large_bodies_both_ways() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let body = vec![b'x'; 3 << 20];
    let mut stream = dial(rig.http);
    stream.write_all(format!("POST http://api.good.test:{port}/ HTTP/1.1\r\nHost: api.good.test:{port}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    assert!(rest(&mut stream).ends_with("hello"));
    assert!(server.requests()[0].ends_with(&"x".repeat(1000)));
    assert!(server.requests()[0].len() > body.len());
    rig.settled();
    let closed = rig.event("closed", |e| e["event"] == "closed");
    assert!(closed["sent"].as_u64().unwrap() > 3 << 20);
}

/// Enough to be moved without being read, by both ways in which a body ends; and one that ends too early.
#[test]
fn large_responses_and_cut_ones() {
    const TOTAL: usize = 12 << 20;
    let pattern = |at: usize| ((at * 131) ^ (at >> 9)) as u8;
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let body: Vec<u8> = (0..TOTAL).map(pattern).collect();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let got = head(&mut stream);
            let (fields, count) = match () {
                () if got.starts_with("GET /length") => (format!("Content-Length: {TOTAL}\r\n"), TOTAL),
                () if got.starts_with("GET /close") => (String::new(), TOTAL),
                () => (format!("Content-Length: {TOTAL}\r\n"), TOTAL / 2),
            };
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()).unwrap();
            stream.write_all(&body[..count]).unwrap();
        }
    });
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    for (path, whole) in [("length", true), ("close", true), ("cut", false)] {
        let mut stream = dial(rig.http);
        stream
            .write_all(format!("GET http://api.good.test:{port}/{path} HTTP/1.1\r\nHost: api.good.test:{port}\r\nConnection: close\r\n\r\n").as_bytes())
            .unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200 "), "{path}");
        let mut body = Vec::new();
        let end = stream.read_to_end(&mut body);
        assert_eq!(end.is_ok(), whole, "{path}");
        assert_eq!(body.len() == TOTAL, whole, "{path}");
        assert!(body.iter().enumerate().all(|(at, byte)| *byte == pattern(at)), "{path}");
    }
    rig.settled();
    let errors = rig.events().iter().filter(|e| e["event"] == "closed" && e["error"].is_string()).count();
    assert_eq!(errors, 1);
}
