//! What stands at which path: the policy's answers at the paths where they change.
//!
//! A layout is a sparse tree. Each node says what the command finds there and below, until a deeper node says otherwise.
//! The nodes are the paths that rules name (after following symlinks), what patterns matched, and places of ours; what
//! stands at each is not decided here but asked of [`Policy::may_path`]. So the mounts cannot mean anything else than
//! the answers that `why` prints, and the order of rules cannot matter.

use crate::fs_view::Kind;
use ringfence_policy::HostPath;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

#[cfg(doc)]
use ringfence_policy::Policy;

/// What the command finds at a path and below, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Want {
    /// Nothing that can be read.
    Hidden,
    /// A file system of ours.
    Private(Place),
    /// What is there on the host, read-only.
    ReadOnly,
    /// What is there on the host.
    Writable,
}

/// A file system of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// Empty at start, gone at the end.
    Temporary,
    /// In the place of the home folder.
    Home,
}

impl Want {
    /// Whether the host's own files are seen.
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Writable)
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// What stands there.
    pub(crate) want: Want,
    /// What it is on the host.
    pub(crate) kind: Kind,
    /// The reason, for `explain`.
    pub(crate) why: String,
    /// Whether the folder must be a mount of its own although nothing changes at it: a mount point cannot be renamed
    /// (rename(2), EBUSY), so what is protected below keeps its name.
    pub(crate) pinned: bool,
}

/// The bytes of a path. Paths are normalised, so equal bytes are equal paths.
pub(crate) fn bytes(path: &HostPath) -> &[u8] {
    path.as_path().as_os_str().as_encoded_bytes()
}

/// A path as its folder and its name; `None` for the root.
pub(crate) fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().rposition(|&b| b == b'/')?;
    let (folder, name) = (path.get(..slash.max(1))?, path.get(slash + 1..)?);
    (!name.is_empty()).then_some((folder, name))
}

/// Bytes that sort as paths do, component by component: a slash comes before every byte that a name can hold.
fn sort_key(path: &HostPath) -> Vec<u8> {
    let mut key: Vec<u8> = bytes(path).iter().map(|b| if *b == b'/' { 0 } else { *b }).collect();
    key.push(0);
    if path.depth() == 0 {
        key.pop();
    }
    key
}

/// The tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// By [`sort_key`].
    nodes: BTreeMap<Vec<u8>, (HostPath, Node)>,
    /// What stands at each node, by the bytes of its path: asked for more often than anything else.
    wants: HashMap<Vec<u8>, Want>,
    /// Symlinks to make in file systems of ours, so that a path that the policy names leads where it leads outside.
    links: BTreeMap<HostPath, HostPath>,
}

impl Layout {
    /// Puts a node; of two at the same path (two names of one file) the stricter stays.
    pub(crate) fn put(&mut self, path: HostPath, want: Want, kind: Kind, why: impl Into<String>) {
        let why = why.into();
        match self.nodes.entry(sort_key(&path)) {
            Entry::Vacant(entry) => {
                self.wants.insert(bytes(&path).to_vec(), want);
                entry.insert((path, Node { want, kind, why, pinned: false }));
            }
            Entry::Occupied(mut entry) => {
                let (_, node) = entry.get_mut();
                // The smaller text wins a tie, so that the order of rules does not show.
                if want < node.want || want == node.want && why < node.why {
                    self.wants.insert(bytes(&path).to_vec(), want);
                    node.want = want;
                    node.why = why;
                }
            }
        }
    }

    /// Makes a folder keep its name; see [`Node::pinned`].
    pub(crate) fn pin(&mut self, path: HostPath, why: &str) {
        let want = self.want(&path);
        self.wants.insert(bytes(&path).to_vec(), want);
        let new = || Node { want, kind: Kind::Dir, why: why.to_owned(), pinned: true };
        self.nodes.entry(sort_key(&path)).or_insert_with(|| (path, new())).1.pinned = true;
    }

    /// Puts a symlink.
    pub(crate) fn link(&mut self, path: HostPath, target: HostPath) {
        self.links.insert(path, target);
    }

    /// The node at exactly this path.
    pub(crate) fn node(&self, path: &HostPath) -> Option<&Node> {
        self.nodes.get(&sort_key(path)).map(|(_, node)| node)
    }

    /// What stands at a path: the word of the deepest node on the way to it. Without one, the host's, read-only.
    pub(crate) fn want(&self, path: &HostPath) -> Want {
        let mut at = bytes(path);
        loop {
            if let Some(want) = self.wants.get(at) {
                return *want;
            }
            match split(at) {
                Some((folder, _)) => at = folder,
                None => return Want::ReadOnly,
            }
        }
    }

    /// All nodes, in the order of paths.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&HostPath, &Node)> {
        self.nodes.values().map(|(path, node)| (path, node))
    }

    /// The nodes strictly below a path.
    pub(crate) fn below(&self, path: &HostPath) -> impl Iterator<Item = (&HostPath, &Node)> {
        let key = sort_key(path);
        // Everything below a path follows it without a gap.
        let after = self.nodes.range((Bound::Excluded(key.clone()), Bound::Unbounded));
        after.take_while(move |(below, _)| below.starts_with(&key)).map(|(_, (path, node))| (path, node))
    }

    /// All symlinks, in the order of paths.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&HostPath, &HostPath)> {
        self.links.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> HostPath {
        HostPath::new(text).unwrap()
    }

    #[test]
    fn a_path_is_a_folder_and_a_name() {
        let split = |text: &str| {
            let path = path(text);
            split(bytes(&path)).map(|(folder, name)| (folder.to_vec(), name.to_vec()))
        };
        assert_eq!(split("/"), None);
        assert_eq!(split("/a"), Some((b"/".to_vec(), b"a".to_vec())));
        assert_eq!(split("/a/b c"), Some((b"/a".to_vec(), b"b c".to_vec())));
    }

    #[test]
    fn the_deepest_node_speaks() {
        let mut layout = Layout::default();
        layout.put(path("/a/b"), Want::Writable, Kind::Dir, "");
        layout.put(path("/a/b/c"), Want::Hidden, Kind::Dir, "");
        for (at, want) in [
            ("/", Want::ReadOnly),
            ("/a", Want::ReadOnly),
            ("/a/b", Want::Writable),
            ("/a/bc", Want::ReadOnly),
            ("/a/b/x/y", Want::Writable),
            ("/a/b/c/d", Want::Hidden),
        ] {
            assert_eq!(layout.want(&path(at)), want, "{at}");
        }
        layout.put(path("/"), Want::Hidden, Kind::Dir, "");
        assert_eq!(layout.want(&path("/a")), Want::Hidden);
    }

    #[test]
    fn of_two_words_on_one_path_the_stricter_stays() {
        let mut layout = Layout::default();
        layout.put(path("/a"), Want::ReadOnly, Kind::Dir, "first");
        layout.put(path("/a"), Want::Writable, Kind::Dir, "second");
        assert_eq!(layout.want(&path("/a")), Want::ReadOnly);
        layout.put(path("/a"), Want::Hidden, Kind::Dir, "third");
        assert_eq!((layout.want(&path("/a")), layout.node(&path("/a")).unwrap().why.as_str()), (Want::Hidden, "third"));
    }

    #[test]
    fn what_lies_below_is_found_among_names_that_sort_around_it() {
        let mut layout = Layout::default();
        for at in ["/a", "/a-b", "/a.b/c", "/a/b", "/a/b/c", "/ab"] {
            layout.put(path(at), Want::ReadOnly, Kind::Dir, "");
        }
        let below = path("/a");
        let below: Vec<_> = layout.below(&below).map(|(path, _)| path.to_string()).collect();
        assert_eq!(below, ["/a/b", "/a/b/c"]);
    }
}
