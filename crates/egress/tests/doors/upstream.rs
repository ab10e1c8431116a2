//! T37: the parent proxy.

use crate::rig::{GOOD, HELLO, Manner, Server, Setup, dial, exactly, head, hello, rest};
use ringfence_policy::HostVerb;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// A proxy that answers CONNECT with 200 and echoes, plain requests with [`HELLO`], and records the heads.
fn parent() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                let got = head(&mut stream);
                seen.lock().unwrap().push(got.clone());
                if got.starts_with("CONNECT refused.") {
                    stream
                        .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                        .unwrap();
                } else if got.starts_with("CONNECT ") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                    let mut copy = stream.try_clone().unwrap();
                    let _ = std::io::copy(&mut stream, &mut copy);
                } else {
                    stream.write_all(HELLO.as_bytes()).unwrap();
                }
            });
        }
    });
    (address, heads)
}

#[test]
fn everything_goes_through_the_parent() {
    let (address, heads) = parent();
    let mut setup = Setup::new(443).ports_only(&[]).rule(HostVerb::Allow, "api.good.test", &[443, 80], &[]).rule(
        HostVerb::Allow,
        "refused.good.test",
        &[443],
        &[],
    );
    setup.upstream = Some(format!("http://us%65r:pw@{address}"));
    let rig = setup.start();
    let (answer, mut stream) = rig.connect("api.good.test:443");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let bytes = hello("api.good.test");
    stream.write_all(&bytes).unwrap();
    assert_eq!(exactly(&mut stream, bytes.len()), bytes);
    drop(stream);
    assert!(
        rig.raw("GET http://api.good.test/x?y HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n")
            .ends_with("hello")
    );
    assert!(rig.connect("refused.good.test:443").0.starts_with("HTTP/1.1 502 "));
    // The policy and the hello are checked before the parent hears of anything.
    assert!(rig.connect("evil.test:443").0.starts_with("HTTP/1.1 403 "));
    let got = heads.lock().unwrap().clone();
    assert_eq!(got.len(), 3, "{got:?}");
    assert!(got[0].starts_with("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n"), "{got:?}");
    assert!(got[1].starts_with("GET http://api.good.test/x?y HTTP/1.1\r\nHost: api.good.test\r\n"), "{got:?}");
    assert!(
        got.iter()
            .all(|h| h.contains("Proxy-Authorization: Basic dXNlcjpwdw==\r\n") && h.contains("Via: 1.1 ringfence-")),
        "{got:?}"
    );
    assert!(rig.resolver.asked.lock().unwrap().is_empty(), "the parent resolves");
    rig.settled();
    let line = format!("{:?}", rig.events());
    assert!(line.contains("(parent proxy)") && !line.contains("pw@") && !line.contains("dXNlcjpwdw"), "{line}");
}

#[test]
fn t37_the_environment_counts_only_when_the_policy_says_so() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    let (address, heads) = parent();
    for (upstream, bypass, through) in
        [(None, "", 0), (Some("environment"), "", 1), (Some("environment"), "good.test", 1)]
    {
        let mut setup = Setup::new(port).allow("api.good.test", &[port]);
        setup.upstream = upstream.map(ToOwned::to_owned);
        setup.proxy_env =
            vec![("HTTPS_PROXY".to_owned(), format!("http://{address}")), ("NO_PROXY".to_owned(), bypass.to_owned())];
        let rig = setup.start();
        assert!(rig.connect(format!("api.good.test:{port}")).0.starts_with("HTTP/1.1 200 "));
        assert_eq!(heads.lock().unwrap().len(), through, "{upstream:?} {bypass}");
    }
}

#[test]
fn t37_a_loop_is_seen() {
    // A published port that leads back to the engine's own proxy: the parent is the engine itself.
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap();
    let mut setup = Setup::new(443).ports_only(&[]).rule(HostVerb::Allow, "api.good.test", &[443, 80], &[]);
    setup.upstream = Some(format!("http://{address}"));
    let rig = setup.start();
    let http = rig.http;
    let passes = Arc::new(Mutex::new(0));
    let count = Arc::clone(&passes);
    std::thread::spawn(move || {
        for inside in relay.incoming() {
            *count.lock().unwrap() += 1;
            let (inside, outside) = (inside.unwrap(), dial(http));
            let (mut a, mut b) = (inside.try_clone().unwrap(), outside.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut a, &mut b));
            let (mut inside, mut outside) = (inside, outside);
            std::thread::spawn(move || std::io::copy(&mut outside, &mut inside));
        }
    });
    assert!(rig.connect("api.good.test:443").0.starts_with("HTTP/1.1 502 "));
    assert!(
        rig.raw("GET http://api.good.test/ HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 508 ")
    );
    rig.denied("proxy_loop");
    assert_eq!(*passes.lock().unwrap(), 2, "each went round once");
}

#[test]
fn a_parent_that_cannot_be_used_is_not_gone_past() {
    let server = Server::good(Manner::Echo);
    let port = server.port();
    for url in ["https://proxy.test:1", "socks5://proxy.test:1", "http://127.0.0.1:1"] {
        let mut setup = Setup::new(port).allow("api.good.test", &[port]).answer("proxy.test", &[&[GOOD]]);
        setup.upstream = Some(url.to_owned());
        let rig = setup.start();
        let (answer, mut stream) = rig.connect(format!("api.good.test:{port}"));
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("upstream_proxy"), "{url}: {answer}");
        rest(&mut stream);
    }
    assert_eq!(server.connections(), 0);
}
