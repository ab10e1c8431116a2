//! DNS messages (RFC 1035, RFC 6891), as far as a resolver needs them that answers addresses of its own.

use super::Cursor;
use ringfence_policy::HostName;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The largest query that is read.
pub(crate) const QUERY_MAX: usize = 1024;
/// The time that a client may keep an answer, in seconds. The mapping itself lives longer.
const TTL: u32 = 1;
/// What is announced as our UDP payload size.
const UDP_SIZE: u16 = 1232;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// Response codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// No error.
    NoError,
    /// The query is malformed.
    FormErr,
    /// The server cannot answer now.
    ServFail,
    /// There is no such name.
    NxDomain,
    /// Not a query.
    NotImp,
    /// Not for this class.
    Refused,
    /// An EDNS version above 0 (RFC 6891 section 6.1.3).
    BadVersion,
}

impl Code {
    /// The low four bits, and the extended bits that go into the OPT record.
    fn split(self) -> (u8, u8) {
        match self {
            Self::NoError => (0, 0),
            Self::FormErr => (1, 0),
            Self::ServFail => (2, 0),
            Self::NxDomain => (3, 0),
            Self::NotImp => (4, 0),
            Self::Refused => (5, 0),
            Self::BadVersion => (0, 1),
        }
    }
}

/// Which addresses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IPv4.
    A,
    /// IPv6.
    Aaaa,
    /// Anything else: there is none.
    Other,
}

/// What a message asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// What is repeated in the answer.
    pub(crate) echo: Echo,
    /// The name, where it is a host name.
    pub(crate) name: Option<HostName>,
    /// What is asked.
    pub(crate) kind: Kind,
}

/// What an answer repeats of its query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Echo {
    id: u16,
    recursion: u8,
    opcode: u8,
    question: Vec<u8>,
    edns: bool,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// A question to answer.
    Query(Query),
    /// A message to refuse with this code.
    Refuse(Echo, Code),
    /// A message that gets no answer: a response, or too short to have an id. Answering a response would let two
    /// resolvers talk to each other for ever.
    Ignore,
}

/// Reads a message.
pub(crate) fn parse(bytes: &[u8]) -> Message {
    let mut cursor = Cursor::new(bytes);
    let (Some(id), Some(high), Some(_low)) = (cursor.u16(), cursor.u8(), cursor.u8()) else { return Message::Ignore };
    if high & 0x80 != 0 {
        return Message::Ignore;
    }
    let opcode = high >> 3 & 0x0f;
    let mut echo = Echo { id, recursion: high & 1, opcode, question: Vec::new(), edns: false };
    if opcode != 0 {
        return Message::Refuse(echo, Code::NotImp);
    }
    if bytes.len() > QUERY_MAX {
        return Message::Refuse(echo, Code::FormErr);
    }
    match question(&mut cursor, &mut echo) {
        Some(Ok(query)) => Message::Query(Query { echo, name: query.0, kind: query.1 }),
        Some(Err(code)) => Message::Refuse(echo, code),
        None => Message::Refuse(echo, Code::FormErr),
    }
}

type Question = (Option<HostName>, Kind);

/// `None`: malformed.
fn question(cursor: &mut Cursor<'_>, echo: &mut Echo) -> Option<Result<Question, Code>> {
    let counts = [cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?];
    let [1, 0, 0, additional] = counts else { return None };
    let section = cursor.rest();
    let name = labels(cursor)?;
    let kind = cursor.u16()?;
    let class = cursor.u16()?;
    let question = section.get(..section.len() - cursor.rest().len())?.to_vec();
    let mut version = 0u8;
    match additional {
        0 => {}
        1 => version = opt(cursor)?,
        _ => return None,
    }
    if !cursor.is_empty() {
        return None;
    }
    echo.question = question;
    echo.edns = additional == 1;
    if version != 0 {
        return Some(Err(Code::BadVersion));
    }
    if class != CLASS_IN {
        return Some(Err(Code::Refused));
    }
    let kind = match kind {
        TYPE_A => Kind::A,
        TYPE_AAAA => Kind::Aaaa,
        _ => Kind::Other,
    };
    // A label may hold any byte, a dot as well; only what reads back as the same labels is a host name.
    let name = HostName::parse(&name).ok();
    Some(Ok((name, kind)))
}

/// Reads a name. A query has nothing that a compression pointer could point at, so a pointer is malformed.
fn labels(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    loop {
        let length = cursor.u8()?;
        if length == 0 {
            return Some(name);
        }
        if length > 63 {
            return None;
        }
        let label = cursor.take(usize::from(length))?;
        if !name.is_empty() {
            name.push(b'.');
        }
        // A dot inside a label would read as two labels: make it a byte that no host holds.
        name.extend(label.iter().map(|b| if *b == b'.' { 0 } else { *b }));
        if name.len() > 253 {
            return None;
        }
    }
}

/// Reads an OPT record (RFC 6891 section 6.1.2) and answers its version.
fn opt(cursor: &mut Cursor<'_>) -> Option<u8> {
    if cursor.u8()? != 0 || cursor.u16()? != TYPE_OPT {
        return None;
    }
    let _size = cursor.u16()?;
    let _extended = cursor.u8()?;
    let version = cursor.u8()?;
    let _flags = cursor.u16()?;
    cursor.vector()?;
    Some(version)
}

/// Addresses of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// None: the name has no record of this type.
    Empty,
    /// One IPv4 address.
    V4(Ipv4Addr),
    /// One IPv6 address.
    V6(Ipv6Addr),
}

/// Writes an answer.
pub(crate) fn write(echo: &Echo, code: Code, answer: Answer) -> Vec<u8> {
    let (low, extended) = code.split();
    let mut out = Vec::with_capacity(64 + echo.question.len());
    out.extend_from_slice(&echo.id.to_be_bytes());
    // QR, opcode, AA; RD as asked; RA.
    out.push(0x84 | echo.opcode << 3 | echo.recursion);
    out.push(0x80 | low);
    let questions = u16::from(!echo.question.is_empty());
    let answers = u16::from(answer != Answer::Empty);
    for count in [questions, answers, 0, u16::from(echo.edns)] {
        out.extend_from_slice(&count.to_be_bytes());
    }
    out.extend_from_slice(&echo.question);
    let record = |out: &mut Vec<u8>, kind: u16, data: &[u8]| {
        // A pointer to the name of the question, which follows the header of 12 bytes.
        out.extend_from_slice(&[0xc0, 12]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&CLASS_IN.to_be_bytes());
        out.extend_from_slice(&TTL.to_be_bytes());
        out.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(data);
    };
    match answer {
        Answer::Empty => {}
        Answer::V4(address) => record(&mut out, TYPE_A, &address.octets()),
        Answer::V6(address) => record(&mut out, TYPE_AAAA, &address.octets()),
    }
    if echo.edns {
        out.push(0);
        out.extend_from_slice(&TYPE_OPT.to_be_bytes());
        out.extend_from_slice(&UDP_SIZE.to_be_bytes());
        out.extend_from_slice(&[extended, 0, 0, 0, 0, 0]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8], kind: u16, class: u16, tail: &[u8], additional: u16) -> Vec<u8> {
        let mut out = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0];
        out.extend_from_slice(&additional.to_be_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(tail);
        out
    }

    const GOOD: &[u8] = b"\x03Api\x04good\x04test\x00";
    const OPT: &[u8] = &[0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0];

    fn code(bytes: &[u8]) -> Code {
        match parse(bytes) {
            Message::Refuse(_, code) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn questions_and_answers() {
        let Message::Query(q) = parse(&query(GOOD, TYPE_A, 1, OPT, 1)) else { panic!() };
        assert_eq!(q.name.as_ref().map(HostName::as_text), Some("api.good.test"));
        assert_eq!(q.kind, Kind::A);
        let out = write(&q.echo, Code::NoError, Answer::V4(Ipv4Addr::new(198, 18, 1, 0)));
        assert_eq!(&out[..12], &[0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 1]);
        assert!(out[12..].starts_with(GOOD), "the question is repeated byte for byte, its case as well");
        assert!(out.windows(4).any(|w| w == [198, 18, 1, 0]));
        assert!(out.ends_with(&[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]));
        for kind in [2, 5, 6, 12, 15, 16, 33, 64, 65, 255] {
            let Message::Query(q) = parse(&query(GOOD, kind, 1, &[], 0)) else { panic!() };
            assert_eq!(q.kind, Kind::Other);
        }
    }

    #[test]
    fn malformed_and_foreign_queries() {
        assert_eq!(parse(&[]), Message::Ignore);
        assert_eq!(parse(&[0, 1, 0x80, 0, 0, 1]), Message::Ignore);
        assert_eq!(code(&[0, 1, 1, 0]), Code::FormErr);
        assert_eq!(code(&[0, 1, 0x29, 0]), Code::NotImp);
        assert_eq!(code(&query(GOOD, 1, 3, &[], 0)), Code::Refused);
        assert_eq!(code(&query(GOOD, 1, 1, &[0], 0)), Code::FormErr);
        assert_eq!(code(&query(b"\xc0\x0c", 1, 1, &[], 0)), Code::FormErr);
        assert_eq!(code(&query(b"\x03api\xc0\x0c", 1, 1, &[], 0)), Code::FormErr);
        assert_eq!(code(&query(b"\x40aaaa\x00", 1, 1, &[], 0)), Code::FormErr);
        assert_eq!(code(&query(b"\x09short\x00", 1, 1, &[], 0)), Code::FormErr);
        assert_eq!(code(&query(GOOD, 1, 1, OPT, 0)), Code::FormErr);
        assert_eq!(code(&query(GOOD, 1, 1, &[], 1)), Code::FormErr);
        let mut version = OPT.to_vec();
        version[6] = 1;
        assert_eq!(code(&query(GOOD, 1, 1, &version, 1)), Code::BadVersion);
        let mut two = query(GOOD, 1, 1, GOOD, 0);
        two.extend_from_slice(&[0, 1, 0, 1]);
        two[5] = 2;
        assert_eq!(code(&two), Code::FormErr);
        let mut none = query(GOOD, 1, 1, &[], 0);
        none[5] = 0;
        assert_eq!(code(&none), Code::FormErr);
        let mut long = Vec::new();
        for _ in 0..5 {
            long.push(63);
            long.extend_from_slice(&[b'a'; 63]);
        }
        long.push(0);
        assert_eq!(code(&query(&long, 1, 1, &[], 0)), Code::FormErr);
    }

    #[test]
    fn names_that_are_no_hosts_have_no_name() {
        for name in [
            &b"\x03a.b\x04test\x00"[..],
            b"\x03a\0b\x04test\x00",
            b"\x00",
            b"\x03a b\x00",
            b"\x01\xff\x00",
            b"\x0a127.0.0.1.\x00",
            b"\x03127\x010\x010\x011\x00",
        ] {
            let Message::Query(q) = parse(&query(name, 1, 1, &[], 0)) else { panic!("{name:?}") };
            assert_eq!(q.name, None, "{}", crate::proto::escape(name, 60));
        }
    }
}
