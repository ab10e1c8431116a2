//! Lists of rules that are asked for what covers one path, host or name, without looking at every rule.
//!
//! Each rule has one key, a hash of the literal text that whatever it covers must contain at a certain place: the base
//! folder of a path rule, the name of a host rule, the first component of a protected name. A question computes the keys
//! that may matter (one for each folder above a path, one for each parent domain of a host) and gets the rules that have
//! one of them. Those are candidates: the caller still matches them, so a hash that is met by chance changes nothing.

use crate::host::HostName;
use crate::path_rule::HostPath;
use serde::{Serialize, Serializer};
use std::ops::Deref;

/// What has a key.
pub trait Keyed {
    /// The key; `None` when the text is not literal, and the rule may matter to any question.
    fn key(&self) -> Option<Key>;
}

/// A hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

/// Rules in a fixed order, read like a slice. They cannot be changed, because the index would not know; make a new list of
/// [`Indexed::from`] instead.
#[derive(Debug, Clone)]
pub struct Indexed<T> {
    items: Vec<T>,
    keys: Vec<Option<Key>>,
    /// First item of each bucket.
    heads: Vec<Option<usize>>,
    /// The item behind each, in its bucket.
    next: Vec<Option<usize>>,
    /// Items without a key.
    anywhere: Vec<usize>,
}

impl<T: Keyed> From<Vec<T>> for Indexed<T> {
    fn from(items: Vec<T>) -> Self {
        let mut heads = vec![None; (items.len() * 2).next_power_of_two()];
        let mut next = vec![None; items.len()];
        let mut anywhere = Vec::new();
        let keys: Vec<_> = items.iter().map(T::key).collect();
        for (i, (key, next)) in keys.iter().zip(&mut next).enumerate() {
            match key.map(|key| key.bucket(heads.len())).and_then(|bucket| heads.get_mut(bucket)) {
                Some(head) => *next = head.replace(i),
                None => anywhere.push(i),
            }
        }
        Self { items, keys, heads, next, anywhere }
    }
}

impl<T: Keyed> FromIterator<T> for Indexed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl<T> Indexed<T> {
    /// The items with one of the keys, and those without a key, with their positions; in no order.
    pub(crate) fn candidates(&self, keys: impl Iterator<Item = Key>) -> impl Iterator<Item = (usize, &T)> {
        let with_key = keys.flat_map(move |key| {
            let first = self.heads.get(key.bucket(self.heads.len())).copied().flatten();
            let chain = std::iter::successors(first, |i| self.next.get(*i).copied().flatten());
            chain.filter(move |i| self.keys.get(*i) == Some(&Some(key)))
        });
        let all = with_key.chain(self.anywhere.iter().copied());
        all.filter_map(|i| self.items.get(i).map(|item| (i, item)))
    }
}

impl<T> Deref for Indexed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<'a, T> IntoIterator for &'a Indexed<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<T: PartialEq> PartialEq for Indexed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T: Serialize> Serialize for Indexed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl Key {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// FNV-1a: short texts, one byte after the other, and nobody chooses both a policy and the questions.
    fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The buckets are a power of two; the upper half of the hash is the better mixed one.
    fn bucket(self, buckets: usize) -> usize {
        usize::try_from(self.0 >> 32).unwrap_or_default() & buckets.wrapping_sub(1)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        bytes.iter().fold(Self::EMPTY, |key, &byte| key.with(byte))
    }

    pub(crate) fn of_path(path: &HostPath) -> Self {
        if path.bytes() == b"/" { Self::EMPTY } else { Self::of_bytes(path.bytes()) }
    }

    pub(crate) fn of_name(name: &HostName) -> Self {
        name.as_text().bytes().rev().fold(Self::EMPTY, Self::with)
    }

    /// The keys of the path and of every folder above it.
    pub(crate) fn of_path_and_above(path: &HostPath) -> impl Iterator<Item = Self> {
        let bytes = if path.bytes() == b"/" { &[][..] } else { path.bytes() };
        let mut key = Self::EMPTY;
        let below = bytes.iter().enumerate().filter_map(move |(at, &byte)| {
            key = key.with(byte);
            matches!(bytes.get(at + 1), None | Some(b'/')).then_some(key)
        });
        std::iter::once(Self::EMPTY).chain(below)
    }

    /// The keys of the name and of every domain above it.
    pub(crate) fn of_name_and_above(name: &HostName) -> impl Iterator<Item = Self> {
        let bytes = name.as_text().as_bytes();
        let mut key = Self::EMPTY;
        bytes.iter().enumerate().rev().filter_map(move |(at, &byte)| {
            key = key.with(byte);
            let starts_label = at.checked_sub(1).is_none_or(|before| bytes.get(before) == Some(&b'.'));
            starts_label.then_some(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Word(Option<&'static str>);

    impl Keyed for Word {
        fn key(&self) -> Option<Key> {
            self.0.map(|word| Key::of_bytes(word.as_bytes()))
        }
    }

    #[test]
    fn candidates_are_those_with_the_key_and_those_without_any() {
        let words: Indexed<Word> = [Some("a"), None, Some("b"), Some("a")].into_iter().map(Word).collect();
        let of = |text: &str| {
            let mut found: Vec<usize> =
                words.candidates([Key::of_bytes(text.as_bytes())].into_iter()).map(|(i, _)| i).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(of("a"), [0, 1, 3]);
        assert_eq!(of("b"), [1, 2]);
        assert_eq!(of("c"), [1]);
        let none = Indexed::<Word>::from(vec![]);
        assert_eq!(none.candidates([Key::of_bytes(b"a")].into_iter()).count(), 0);
    }

    #[test]
    fn the_keys_above_are_the_keys_of_what_is_above() {
        let path = |text: &str| HostPath::new(text).unwrap();
        let above: Vec<Key> = Key::of_path_and_above(&path("/a/bc/d")).collect();
        assert_eq!(above, ["/", "/a", "/a/bc", "/a/bc/d"].map(|text| Key::of_path(&path(text))));
        assert_eq!(Key::of_path_and_above(&path("/")).collect::<Vec<_>>(), [Key::of_path(&path("/"))]);
        let name = |text: &str| HostName::parse(text).unwrap();
        let above: Vec<Key> = Key::of_name_and_above(&name("x.a.test")).collect();
        assert_eq!(above, ["test", "a.test", "x.a.test"].map(|text| Key::of_name(&name(text))));
    }
}
