//! T4, T22 and T23: the resolver inside.

use crate::rig::{GOOD, HELLO, Manner, Server, Setup, address_of, dial, exactly, query};
use std::io::Write;

#[test]
fn t22_no_question_leaves() {
    let rig = Setup::new(1).ports_only(&[]).allow("api.good.test", &[443]).allow("*.wild.test", &[443]).start();
    for name in [
        "api.good.test",
        "evil.test",
        "c2VjcmV0LWRhdGE.evil.test",
        "secret.wild.test",
        "a.b.c.d.e.evil.test",
        "_sip._tcp.evil.test",
    ] {
        for kind in [1u16, 28, 16, 15, 10, 2, 5, 6, 12, 33, 64, 65, 255] {
            let reply = rig.query(&query(name, kind));
            assert_eq!(reply[3] & 15, 0, "{name} {kind}");
            assert_eq!(address_of(&reply).is_some(), matches!(kind, 1 | 28), "{name} {kind}");
        }
    }
    let mut bytes = query("tcp.evil.test", 1);
    let mut stream = dial(rig.dns_tcp);
    let framed = [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat();
    // Two at once on one connection, and split anywhere.
    for part in [&framed[..], &framed[..7], &framed[7..]] {
        stream.write_all(part).unwrap();
    }
    for _ in 0..2 {
        let length = usize::from(u16::from_be_bytes(exactly(&mut stream, 2).try_into().unwrap()));
        assert!(address_of(&exactly(&mut stream, length)).is_some());
    }
    assert!(rig.resolver.asked.lock().unwrap().is_empty(), "{:?}", rig.resolver.asked.lock().unwrap());

    // Malformed, foreign, and not for us.
    bytes[5] = 2;
    assert_eq!(rig.query(&bytes)[3] & 15, 1);
    bytes[5] = 1;
    let last = bytes.len() - 1;
    bytes[last] = 3;
    assert_eq!(rig.query(&bytes)[3] & 15, 5);
    assert_eq!(rig.query(&query("127.0.0.1", 1))[3] & 15, 3);
}

/// The control of the test above: the resolver is asked once a connection is allowed.
#[test]
fn t22_an_allowed_connection_asks() {
    let server = Server::good(Manner::Echo);
    let rig = Setup::new(server.port()).allow("api.good.test", &[server.port()]).start();
    assert!(rig.connect(format!("api.good.test:{}", server.port())).0.starts_with("HTTP/1.1 200 "));
    assert!(rig.connect(format!("evil.test:{}", server.port())).0.starts_with("HTTP/1.1 403 "));
    assert_eq!(*rig.resolver.asked.lock().unwrap(), ["api.good.test"]);
}

#[test]
fn addresses_are_stable_and_different() {
    let rig = Setup::new(1).ports_only(&[]).start();
    let one = rig.lookup("one.test", 1).unwrap();
    let two = rig.lookup("two.test", 1).unwrap();
    assert_ne!(one, two);
    assert_eq!(rig.lookup("ONE.test", 1).unwrap(), one);
    assert!(rig.lookup("one.test", 28).unwrap().is_ipv6());
    assert_eq!(rig.lookup("localhost", 1).unwrap().to_string(), "127.0.0.1");
    assert_eq!(rig.lookup("x.localhost", 28).unwrap().to_string(), "::1");
}

#[test]
fn t23_data_in_the_labels_of_a_wildcard() {
    let server = Server::good(Manner::Http(HELLO));
    let port = server.port();
    let mut setup = Setup::new(port).allow("*.good.test", &[port]);
    for number in 0..200 {
        setup = setup.answer(&format!("x{number}.good.test"), &[&[GOOD]]);
    }
    let rig = setup.start();
    let mut allowed = 0;
    for number in 0..200 {
        let answer = rig.raw(format!("GET http://x{number}.good.test:{port}/ HTTP/1.0\r\n\r\n"));
        if answer.starts_with("HTTP/1.1 200 ") {
            allowed += 1;
        } else {
            assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        }
    }
    // A hundred at once, and one a second while the test runs.
    assert!((100..115).contains(&allowed), "{allowed}");
    assert_eq!(rig.resolver.asked.lock().unwrap().len(), allowed);
    rig.denied("name_rate");
    // A name that was seen is not new.
    assert!(rig.raw(format!("GET http://x0.good.test:{port}/ HTTP/1.0\r\n\r\n")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn t23_new_names_are_limited_for_the_pool_too() {
    let rig = Setup::new(1).ports_only(&[]).start();
    let mut stream = dial(rig.dns_tcp);
    let mut refused = 0;
    for number in 0..4_300u32 {
        if number % 900 == 0 {
            stream = dial(rig.dns_tcp);
        }
        let message = query(&format!("n{number}.evil.test"), 1);
        stream.write_all(&[&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()).unwrap();
        let length = usize::from(u16::from_be_bytes(exactly(&mut stream, 2).try_into().unwrap()));
        if exactly(&mut stream, length)[3] & 15 == 2 {
            refused += 1;
        }
    }
    assert!(refused > 0, "no limit was met");
    rig.denied("name_rate");
    assert!(rig.lookup("n0.evil.test", 1).is_some());
}
