//! The stored inputs of the fuzzer, through the same functions, on every compiler.

#![allow(clippy::unwrap_used, reason = "an integration test is one crate of test code")]

use ringfence_egress::fuzz;

fn run(target: &str, parse: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        parse(&bytes);
        // And every prefix, since bytes arrive in pieces.
        for end in 0..bytes.len().min(512) {
            parse(bytes.get(..end).unwrap_or_default());
        }
        inputs += 1;
    }
    assert!(inputs >= 10, "{folder} holds {inputs} inputs");
}

#[test]
fn connect() {
    run("connect", fuzz::connect);
}

#[test]
fn http_head() {
    run("http_head", fuzz::http_head);
}

#[test]
fn socks5() {
    run("socks5", fuzz::socks5);
}

#[test]
fn dns() {
    run("dns", fuzz::dns);
}

#[test]
fn client_hello() {
    run("client_hello", fuzz::client_hello);
}

#[test]
fn host() {
    run("host", fuzz::host);
}
