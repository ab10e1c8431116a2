//! Ports that are carried through the wall, and tunnels that carry much.

use crate::rig::{Inside, Manner, Server, Setup, dial, exactly, head, hello, rest};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};

#[test]
fn a_port_of_the_host() {
    let host = Server::at(SocketAddr::from(([127, 0, 0, 1], 0)), Manner::Banner(b"220 ready\r\n"));
    let other = Server::at(SocketAddr::from(([127, 0, 0, 1], 0)), Manner::Echo);
    let mut setup = Setup::new(1).ports_only(&[]).allow("api.good.test", &[443]);
    setup.host_ports = vec![host.port()];
    let rig = setup.start();
    let mut stream = dial(rig.inward[&host.port()]);
    assert_eq!(exactly(&mut stream, 11), b"220 ready\r\n");
    stream.write_all(b"ping").unwrap();
    assert_eq!(exactly(&mut stream, 4), b"ping");
    drop(stream);
    rig.settled();
    let event = rig.event("allowed", |e| e["event"] == "allowed");
    assert_eq!(
        (event["door"].as_str(), event["destination"].as_str()),
        (Some("host-port"), Some(&*format!("127.0.0.1:{}", host.port())))
    );
    // Opened by its own door alone, and no other port with it.
    for port in [host.port(), other.port()] {
        assert!(rig.connect(format!("127.0.0.1:{port}")).0.starts_with("HTTP/1.1 403 "));
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_port_of_the_host_on_ipv6() {
    let listener = std::net::TcpListener::bind("[::1]:0");
    let Ok(listener) = listener else { return eprintln!("skipped: no IPv6 loopback on this host") };
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"six").unwrap();
    });
    let mut setup = Setup::new(1).ports_only(&[]).allow("api.good.test", &[443]);
    setup.host_ports = vec![port];
    let rig = setup.start();
    assert_eq!(rest(&mut dial(rig.inward[&port])), "six");
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn t35_a_published_port_and_no_other() {
    let inside = Server::good(Manner::Banner(b"hello from inside\n"));
    let port = free_port();
    let mut setup = Setup::new(1).ports_only(&[]).allow("api.good.test", &[443]);
    setup.publish = vec![port];
    let dialer = Arc::new(Inside(Mutex::default(), inside.port()));
    let mut rig = setup.start_with(Some(dialer.clone()));
    let mut stream = dial(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(exactly(&mut stream, 18), b"hello from inside\n");
    stream.write_all(b"x").unwrap();
    assert_eq!(exactly(&mut stream, 1), b"x");
    drop(stream);
    rig.settled();
    assert_eq!(*dialer.0.lock().unwrap(), [port]);
    let closed = rig.event("closed", |e| e["event"] == "closed" && e["door"] == "publish");
    assert_eq!((closed["sent"].as_u64(), closed["received"].as_u64()), (Some(19), Some(1)), "as seen from the sandbox");
    // Not on other addresses of the host, and not after the end.
    assert!(std::net::TcpStream::connect(("127.0.0.9", port)).is_err());
    rig.end();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn half_an_end_is_not_an_end() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(format!("{} bytes", all.len()).as_bytes()).unwrap();
    });
    let rig = Setup::new(1).ports_only(&[]).allow("api.good.test", &[port]).start();
    let (_, mut stream) = rig.connect(format!("api.good.test:{port}"));
    stream.write_all(&[0; 1000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), "1000 bytes");
    server.join().unwrap();
}

/// A cut must not look like an end: a body without a length would seem to be whole.
#[test]
fn a_reset_stays_a_reset() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let hello = exactly(&mut stream, 10);
        stream.write_all(&hello).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
    });
    let rig = Setup::new(1).ports_only(&[]).allow("api.good.test", &[port]).start();
    let (_, mut stream) = rig.connect(format!("api.good.test:{port}"));
    stream.write_all(b"\x0012345678\x00").unwrap();
    assert_eq!(exactly(&mut stream, 10).len(), 10);
    assert_eq!(rest(&mut stream), "(reset)");
    server.join().unwrap();
    rig.settled();
    rig.event("closed with an error", |e| e["event"] == "closed" && e["error"].is_string());
}

/// Enough to leave the buffer for the pipe, both ways at once, with a pause, and every byte in its place.
#[test]
fn much_in_both_directions() {
    const TOTAL: usize = 48 << 20;
    let pattern = |at: usize| ((at * 31) ^ (at >> 11)) as u8;
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let rig = Setup::new(port).allow("api.good.test", &[port]).start();
    let bytes = hello("api.good.test");
    for door in ["connect", "transparent"] {
        let mut stream = if door == "connect" {
            rig.connect(format!("api.good.test:{port}")).1
        } else {
            rig.transparent("api.good.test", port)
        };
        stream.write_all(&bytes).unwrap();
        exactly(&mut stream, bytes.len());
        let mut writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            let mut at = 0;
            while at < TOTAL {
                let size = (1 + at % 300_000).min(TOTAL - at);
                let part: Vec<u8> = (at..at + size).map(pattern).collect();
                writer.write_all(&part).unwrap();
                at += size;
                if at / (16 << 20) != (at - size) / (16 << 20) {
                    std::thread::sleep(std::time::Duration::from_millis(1100));
                }
            }
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut at = 0;
        let mut buffer = vec![0; 200_000];
        loop {
            let count = stream.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            for (offset, byte) in buffer[..count].iter().enumerate() {
                assert_eq!(*byte, pattern(at + offset), "at {}", at + offset);
            }
            at += count;
        }
        assert_eq!(at, TOTAL);
        writing.join().unwrap();
    }
    rig.settled();
    for closed in rig.events().iter().filter(|e| e["event"] == "closed") {
        assert_eq!(closed["sent"], TOTAL + bytes.len());
        assert_eq!(closed["received"], TOTAL + bytes.len());
        assert_eq!(closed.get("error"), None);
    }
}

/// A client that does not read must not make the engine hold what the server sends.
#[test]
fn a_slow_reader_holds_back_its_server() {
    let listener = std::net::TcpListener::bind((crate::rig::ip(crate::rig::GOOD), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(Mutex::new(0usize));
    let count = Arc::clone(&sent);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let part = vec![7; 1 << 16];
        while let Ok(written) = stream.write(&part) {
            *count.lock().unwrap() += written;
        }
    });
    let rig = Setup::new(1).ports_only(&[]).allow("api.good.test", &[port]).start();
    let (answer, mut stream) = rig.connect(format!("api.good.test:{port}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let first = *sent.lock().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(*sent.lock().unwrap(), first, "the server is not held back");
    assert!(first < 64 << 20, "{first}");
    exactly(&mut stream, 8 << 20);
    assert_eq!(
        head(
            &mut dial(rig.http)
                .try_clone()
                .map(|mut s| {
                    s.write_all(b"x\r\n\r\n").unwrap();
                    s
                })
                .unwrap()
        )
        .get(..12),
        Some("HTTP/1.1 400")
    );
}
