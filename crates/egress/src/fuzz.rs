//! One entry for each parser that reads bytes from inside or from a server. The fuzzer calls them, and so does a test on
//! the stored corpora; beyond "does not panic" each checks what must hold for every input.

use crate::proto::{Parsed, chunked, connect, dns, first, http1, sni, socks5};
use ringfence_policy::Host;

/// The target of CONNECT.
pub fn connect(bytes: &[u8]) {
    if let Ok(destination) = connect::connect_target(bytes) {
        let again = connect::connect_target(destination.to_string().as_bytes());
        assert_eq!(again.as_ref(), Ok(&destination), "the canonical form reads as another destination");
    }
    let _ = connect::absolute(bytes);
    let shown = connect::redact(bytes);
    assert!(shown.bytes().all(|b| (0x20..0x7f).contains(&b)), "a log line holds a control byte");
}

/// The head of a request, and what is written from it.
pub fn http_head(bytes: &[u8]) {
    let _ = first::classify(bytes);
    if let Ok(Parsed::Done { value, used }) = http1::Request::parse(bytes) {
        assert!(used <= bytes.len());
        let Ok(framing) = value.framing() else { return };
        let mut stripped = value.clone();
        stripped.fields.strip_hop();
        let mut out = Vec::new();
        stripped.write(framing, &mut out);
        match http1::Request::parse(&out) {
            Ok(Parsed::Done { value: again, used }) => {
                assert_eq!(used, out.len(), "what is written holds two heads");
                assert_eq!(again.framing(), Ok(framing), "what is written has another length");
                assert_eq!(again.target, value.target);
            }
            other => assert!(out.len() > http1::REQUEST_HEAD_MAX, "what is written is not read: {other:?}"),
        }
    }
    let _ = http1::Response::parse(bytes);
    chunks(bytes);
}

/// Chunks: the same content in one piece and in single bytes.
fn chunks(bytes: &[u8]) {
    let whole = decode(bytes, bytes.len().max(1));
    let single = decode(bytes, 1);
    assert_eq!(whole, single, "chunks read differently in pieces");
}

fn decode(bytes: &[u8], step: usize) -> Option<(Vec<u8>, bool)> {
    let mut decoder = chunked::Chunked::new();
    let mut content = Vec::new();
    for piece in bytes.chunks(step) {
        let mut rest = piece;
        loop {
            let (used, found) = decoder.next(rest).ok()?;
            match found {
                chunked::Piece::Data(data) => content.extend_from_slice(data),
                chunked::Piece::End => return Some((content, true)),
                chunked::Piece::More => {}
            }
            rest = rest.get(used..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
        }
    }
    Some((content, false))
}

/// The messages of a SOCKS5 client.
pub fn socks5(bytes: &[u8]) {
    let _ = socks5::greeting(bytes);
    let _ = socks5::requested(bytes);
    if let Ok(Parsed::Done { used, .. }) = socks5::request(bytes) {
        assert!(used <= bytes.len());
        for end in 0..used {
            assert_eq!(socks5::request(bytes.get(..end).unwrap_or_default()).ok(), Some(Parsed::Partial));
        }
    }
}

/// A DNS query and its answer.
pub fn dns(bytes: &[u8]) {
    match dns::parse(bytes) {
        dns::Message::Ignore => {}
        dns::Message::Refuse(echo, code) => assert!(dns::write(&echo, code, dns::Answer::Empty).len() <= 1232),
        dns::Message::Query(query) => {
            let answer = dns::Answer::V6(std::net::Ipv6Addr::LOCALHOST);
            let out = dns::write(&query.echo, dns::Code::NoError, answer);
            assert!(out.len() <= 512, "an answer does not fit into a datagram");
            assert_eq!(out.get(..2), bytes.get(..2), "the answer has another id");
        }
    }
}

/// A ClientHello.
pub fn client_hello(bytes: &[u8]) {
    if let Ok(Parsed::Done { value, used }) = sni::client_hello(bytes) {
        assert!(used <= bytes.len());
        // What follows a hello does not change what it names.
        let alone = sni::client_hello(bytes.get(..used).unwrap_or_default());
        assert_eq!(alone, Ok(Parsed::Done { value, used }));
    }
}

/// A host.
pub fn host(bytes: &[u8]) {
    if let Ok(host) = Host::parse(bytes) {
        let text = host.to_string();
        assert_eq!(Host::parse(&text).as_ref(), Ok(&host), "the canonical form reads as another host");
        assert!(text.len() <= 255);
    }
}
