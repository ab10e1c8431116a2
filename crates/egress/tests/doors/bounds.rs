//! T31 and T36: deadlines, the bound on connections, and the end.

use crate::rig::{HELLO, Manner, Server, Setup, dial, exactly, hello, rest};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

#[test]
fn t31_first_messages_have_a_deadline() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let mut setup = Setup::new(port).allow("api.good.test", &[port]);
    setup.tuning.head = Duration::from_millis(200);
    let rig = setup.start();
    let start = Instant::now();
    // A head that never ends, a greeting that never ends, a hello that never ends, and silence.
    let mut http = dial(rig.http);
    http.write_all(b"GET http://api.good.test/ HTTP/1.1\r\nX: ").unwrap();
    let mut socks = dial(rig.socks);
    socks.write_all(&[5, 9]).unwrap();
    let mut dns = dial(rig.dns_tcp);
    dns.write_all(&[0]).unwrap();
    let mut tls = rig.transparent("api.good.test", port);
    tls.write_all(&hello("api.good.test")[..20]).unwrap();
    let (_, mut tunnel) = rig.connect(format!("api.good.test:{port}"));
    let mut silent = rig.transparent("api.good.test", port);
    assert!(rest(&mut http).starts_with("HTTP/1.1 400 "));
    for stream in [&mut socks, &mut dns, &mut tls, &mut tunnel, &mut silent] {
        let _ = rest(stream);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.saw_nothing();
}

#[test]
fn t31_an_idle_tunnel_ends_and_a_busy_one_does_not() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let mut setup = Setup::new(port).allow("api.good.test", &[port]);
    setup.tuning.tunnel_idle = Duration::from_millis(300);
    let rig = setup.start();
    let bytes = hello("api.good.test");
    let (_, mut idle) = rig.connect(format!("api.good.test:{port}"));
    let (_, mut busy) = rig.connect(format!("api.good.test:{port}"));
    idle.write_all(&bytes).unwrap();
    exactly(&mut idle, bytes.len());
    busy.write_all(&bytes).unwrap();
    exactly(&mut busy, bytes.len());
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1200) {
        busy.write_all(b"x").unwrap();
        exactly(&mut busy, 1);
        std::thread::sleep(Duration::from_millis(50));
    }
    idle.set_nonblocking(true).unwrap();
    let ended = idle.read(&mut [0; 16]);
    assert!(!matches!(&ended, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock), "{ended:?}");
    busy.write_all(b"x").unwrap();
    exactly(&mut busy, 1);
}

/// A thousand connections that never say whom they are for do not keep out one that does.
#[test]
fn t31_drippers_do_not_keep_others_out() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let mut setup = Setup::new(port).allow("api.good.test", &[port]);
    setup.tuning.connections = 64;
    let rig = setup.start();
    let fetch = || {
        let start = Instant::now();
        assert!(rig.raw(format!("GET http://api.good.test:{port}/ HTTP/1.0\r\n\r\n")).ends_with("hello"));
        start.elapsed()
    };
    let before = (0..20).map(|_| fetch()).max().unwrap();
    let mut drippers = Vec::new();
    for number in 0..300 {
        let mut stream = dial(rig.http);
        stream.write_all(b"GET http://api.good.test/ HTTP/1.1\r\nX: ").unwrap();
        drippers.push(stream);
        if number % 20 == 0 {
            fetch();
        }
    }
    let during = (0..20).map(|_| fetch()).max().unwrap();
    assert!(during < before * 20 + Duration::from_millis(200), "{before:?} {during:?}");
    rig.denied("overload");
}

/// Connections that do work are never thrown out for others; those wait.
#[test]
fn t31_working_connections_stay() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let mut setup = Setup::new(port).allow("api.good.test", &[port]);
    setup.tuning.connections = 8;
    let rig = setup.start();
    let bytes = hello("api.good.test");
    let mut tunnels: Vec<_> = (0..8)
        .map(|_| {
            let (_, mut stream) = rig.connect(format!("api.good.test:{port}"));
            stream.write_all(&bytes).unwrap();
            exactly(&mut stream, bytes.len());
            stream
        })
        .collect();
    let mut waiting = dial(rig.http);
    waiting.write_all(format!("CONNECT api.good.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "the bound was passed");
    for stream in &mut tunnels {
        stream.write_all(b"still here").unwrap();
        assert_eq!(exactly(stream, 10), b"still here");
    }
    tunnels.pop();
    waiting.set_read_timeout(Some(crate::rig::PATIENCE)).unwrap();
    assert!(crate::rig::head(&mut waiting).starts_with("HTTP/1.1 200 "));
    assert_eq!(rig.denials(), 0);
}

#[test]
fn t36_the_end_of_the_engine_ends_everything() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let mut rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let bytes = hello("api.good.test");
    let (_, mut tunnel) = rig.connect(format!("api.good.test:{port}"));
    tunnel.write_all(&bytes).unwrap();
    exactly(&mut tunnel, bytes.len());
    rig.end();
    let mut left = Vec::new();
    let _ = tunnel.read_to_end(&mut left);
    assert!(left.is_empty());
    for door in [rig.http, rig.socks, rig.dns_tcp] {
        assert!(std::net::TcpStream::connect(door).is_err(), "{door} is still open");
    }
    rig.settled();
}

#[test]
fn refusals_in_a_loop_do_not_fill_the_record() {
    let rig = Setup::new(1).ports_only(&[]).start();
    for _ in 0..2_300 {
        let (reply, _) = rig.socks(3, b"evil.test", 443);
        assert_eq!(reply, 2);
    }
    let recorded = rig.denials();
    assert!((2_000..2_300).contains(&recorded), "{recorded}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(rig.socks(3, b"last.test", 443).0, 2);
    let last = rig.event("the last", |e| e["destination"] == "last.test:443");
    assert!(last["reason"].as_str().unwrap().contains("were not recorded"), "{last}");
}
