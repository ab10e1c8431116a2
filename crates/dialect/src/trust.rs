//! Trust in a repository's policy file: by place and by content.
//!
//! A file that the repository brings may only narrow, until the user trusts that very content at that very place. A
//! change of one byte takes the trust away, and so does a move: relative paths would mean others.

use crate::context::Trust;
use ringfence_policy::HostPath;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The SHA-256 of a policy file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Of these bytes: those that are parsed, not those of a second reading.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// From 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        if rest.is_empty() { bytes.try_into().ok().map(Self) } else { None }
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The files that the user trusted. Its text is one line a file: the hash, a space, the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustList {
    entries: BTreeMap<HostPath, ContentHash>,
}

impl TrustList {
    /// Reads the list's text. A line that cannot be read is left out: what it would have trusted is not.
    pub fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let (hash, path) = line.split_once(' ')?;
            Some((HostPath::new(unescape(path)?).ok()?, ContentHash::parse(hash)?))
        };
        Self { entries: text.lines().filter_map(entry).collect() }
    }

    /// Whether this content is trusted at this place.
    pub fn judge(&self, file: &HostPath, content: &[u8]) -> Trust {
        match self.entries.get(file) {
            Some(hash) if *hash == ContentHash::of(content) => Trust::Trusted,
            Some(_) | None => Trust::Untrusted,
        }
    }

    /// Whether another content was trusted at this place: the file changed since.
    pub fn knows(&self, file: &HostPath) -> bool {
        self.entries.contains_key(file)
    }

    /// Trusts this content at this place, and no other any more.
    pub fn trust(&mut self, file: HostPath, content: &[u8]) -> ContentHash {
        let hash = ContentHash::of(content);
        self.entries.insert(file, hash);
        hash
    }

    /// Takes the trust away; tells whether there was any.
    pub fn distrust(&mut self, file: &HostPath) -> bool {
        self.entries.remove(file).is_some()
    }

    /// The files and their hashes.
    pub fn entries(&self) -> impl Iterator<Item = (&HostPath, &ContentHash)> {
        self.entries.iter()
    }
}

/// The list's text.
impl fmt::Display for TrustList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|(path, hash)| writeln!(f, "{hash} {}", escape(path)))
    }
}

/// Printable ASCII as it is, every other byte and the backslash as `\xNN`, so that no name can forge a line.
fn escape(path: &HostPath) -> String {
    let mut out = String::new();
    for byte in path.as_path().as_os_str().as_bytes() {
        match byte {
            b'\\' => out.push_str("\\x5c"),
            0x20..=0x7e => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

fn unescape(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'\\' {
            let (Some(b'x'), Some(high), Some(low)) = (rest.next(), rest.next(), rest.next()) else { return None };
            bytes.push(digit(high)? << 4 | digit(low)?);
        } else {
            bytes.push(byte);
        }
    }
    Some(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &[u8]) -> HostPath {
        HostPath::new(OsString::from_vec(text.to_vec())).unwrap()
    }

    #[test]
    fn the_hash_is_sha_256() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ContentHash::of(b"abc").to_string(), abc);
        assert_eq!(ContentHash::parse(abc), Some(ContentHash::of(b"abc")));
        for bad in ["", "ba", &abc[1..], &abc.to_uppercase(), &format!("{abc}00"), &abc.replace('b', "g")] {
            assert_eq!(ContentHash::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn trust_holds_for_one_content_at_one_place() {
        let mut list = TrustList::default();
        let file = path(b"/w/ringfence.toml");
        assert_eq!(list.judge(&file, b"a"), Trust::Untrusted);
        list.trust(file.clone(), b"a");
        assert_eq!(list.judge(&file, b"a"), Trust::Trusted);
        assert_eq!(list.judge(&file, b"a\n"), Trust::Untrusted, "one byte more");
        assert!(list.knows(&file));
        assert_eq!(list.judge(&path(b"/v/ringfence.toml"), b"a"), Trust::Untrusted, "elsewhere");
        list.trust(file.clone(), b"b");
        assert_eq!(list.judge(&file, b"a"), Trust::Untrusted, "the older content");
        assert!(list.distrust(&file) && !list.distrust(&file));
        assert_eq!(list.judge(&file, b"b"), Trust::Untrusted);
    }

    #[test]
    fn the_list_survives_its_text_with_any_name() {
        let mut list = TrustList::default();
        for name in [&b"/w/ringfence.toml"[..], b"/a b\\c", b"/new\nline /x", b"/\xff\x01", "/é".as_bytes()] {
            list.trust(path(name), name);
        }
        let text = list.to_string();
        assert_eq!(text.lines().count(), 5, "a name cannot make a line: {text}");
        assert_eq!(TrustList::parse(&text), list);
    }

    #[test]
    fn what_cannot_be_read_is_not_trusted() {
        let hash = ContentHash::of(b"a");
        for line in ["", "x", &format!("{hash}"), &format!("{hash} relative"), &format!("{hash} /a\\q"), "zz /a"] {
            assert_eq!(TrustList::parse(line), TrustList::default(), "{line}");
        }
    }
}
