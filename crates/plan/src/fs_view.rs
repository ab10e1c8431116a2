//! The only seam to the file system.

use ringfence_policy::HostPath;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a path is. Symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
    /// A device, FIFO or anything else.
    Other,
}

/// A view of a file system; the error is the text of the operating system's.
pub trait FsView {
    /// What is there; `None` when nothing is, or when it cannot be seen.
    fn kind(&self, path: &HostPath) -> Option<Kind>;
    /// The path after following every symlink; `None` when it does not exist.
    fn canonical(&self, path: &HostPath) -> Option<HostPath>;
    /// The entries of a folder, in any order.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn children(&self, path: &HostPath) -> Result<Vec<(OsString, Kind)>, String>;
    /// Whether [`FsView::kind`] may see anything in a folder; `false` only where it is sure to see nothing, as in a folder
    /// of somebody else's that cannot be entered.
    fn can_enter(&self, _folder: &HostPath) -> bool {
        true
    }
}

/// A tree in memory, for tests and for plans about hosts that are not there.
#[derive(Debug, Clone, Default)]
pub struct MemoryView {
    entries: BTreeMap<HostPath, Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    Plain(Kind),
    Link(PathBuf),
}

impl MemoryView {
    /// An empty tree: a root folder and nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder and its missing parents.
    pub fn dir(&mut self, path: &str) -> &mut Self {
        self.add(path, Entry::Plain(Kind::Dir))
    }

    /// Adds a file and its missing parents.
    pub fn file(&mut self, path: &str) -> &mut Self {
        self.add(path, Entry::Plain(Kind::File))
    }

    /// Adds a socket and its missing parents.
    pub fn socket(&mut self, path: &str) -> &mut Self {
        self.add(path, Entry::Plain(Kind::Socket))
    }

    /// Adds a device and its missing parents.
    pub fn device(&mut self, path: &str) -> &mut Self {
        self.add(path, Entry::Plain(Kind::Other))
    }

    /// Adds a symbolic link and its missing parents.
    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.add(path, Entry::Link(PathBuf::from(target)))
    }

    /// Paths that are not absolute are left out.
    fn add(&mut self, path: &str, entry: Entry) -> &mut Self {
        if let Ok(path) = HostPath::new(path) {
            let mut parent = path.parent();
            while let Some(folder) = parent {
                parent = folder.parent();
                self.entries.entry(folder).or_insert(Entry::Plain(Kind::Dir));
            }
            self.entries.insert(path, entry);
        }
        self
    }

    /// Follows links, at most as many as the kernel does (path_resolution(7): 40).
    fn follow(&self, path: &HostPath, links: u32) -> Option<HostPath> {
        let mut at = HostPath::root();
        for name in path.components() {
            let next = at.join(name);
            at = match self.entries.get(&next)? {
                Entry::Plain(_) => next,
                Entry::Link(target) => {
                    let target = HostPath::new(at.as_path().join(target)).ok()?;
                    self.follow(&target, links.checked_sub(1)?)?
                }
            };
        }
        Some(at)
    }

    /// The path with every link followed but for a link in its last component.
    fn without_last(&self, path: &HostPath) -> Option<HostPath> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Some(self.follow(&parent, 40)?.join(name)),
            _ => Some(path.clone()),
        }
    }
}

impl FsView for MemoryView {
    fn kind(&self, path: &HostPath) -> Option<Kind> {
        let path = self.without_last(path)?;
        if path == HostPath::root() {
            return Some(Kind::Dir);
        }
        match self.entries.get(&path)? {
            Entry::Plain(kind) => Some(*kind),
            Entry::Link(_) => Some(Kind::Symlink),
        }
    }

    fn canonical(&self, path: &HostPath) -> Option<HostPath> {
        self.follow(path, 40)
    }

    fn children(&self, path: &HostPath) -> Result<Vec<(OsString, Kind)>, String> {
        let folder = self.canonical(path).ok_or_else(|| "No such file or directory".to_owned())?;
        if self.kind(&folder) != Some(Kind::Dir) {
            return Err("Not a directory".to_owned());
        }
        let below = self.entries.range(folder.clone()..).skip_while(|(path, _)| **path == folder);
        let within = below.take_while(|(path, _)| path.is_within(&folder));
        let direct = within.filter(|(path, _)| path.parent().as_ref() == Some(&folder));
        Ok(direct
            .filter_map(|(path, entry)| {
                let kind = match entry {
                    Entry::Plain(kind) => *kind,
                    Entry::Link(_) => Kind::Symlink,
                };
                Some((path.file_name()?, kind))
            })
            .collect())
    }
}
