//! A layout as operations.

use super::{MountFlags, MountOp};
use crate::fs_view::Kind;
use crate::layout::{Layout, Node, Place, Want, bytes, split};
use ringfence_policy::{HomeMode, HostPath};
use std::collections::{BTreeSet, HashMap};

/// What is given besides the layout.
pub(crate) struct Given<'a> {
    /// The folder that stands in the place of the home folder.
    pub(crate) private_home: &'a HostPath,
    /// Which home.
    pub(crate) home: HomeMode,
    /// The `/proc`; `None`: the host's own stays, frozen.
    pub(crate) proc: Option<MountOp>,
    /// The `/dev`.
    pub(crate) dev: MountOp,
    /// Generated files.
    pub(crate) files: Vec<MountOp>,
    /// Folders that variables name, with their modes.
    pub(crate) folders: Vec<(HostPath, u32)>,
    /// The most that a temporary file system may hold, in bytes.
    pub(crate) temporary_size: u64,
}

/// The operations, and what they make writable.
pub(crate) struct Mounts {
    pub(crate) ops: Vec<MountOp>,
    /// Folders and files that can be written to, whole: windows and file systems of ours.
    pub(crate) writable: Vec<HostPath>,
}

/// A cover holds nothing but mount points.
const COVER_SIZE: u64 = 1 << 20;
/// `/run` holds sockets and process numbers.
const RUN_SIZE: u64 = 64 << 20;
/// Readable and searchable by all, writable by nobody.
const COVER_MODE: u32 = 0o555;

/// What stands at a path after the operations so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// The host's.
    Host { writable: bool },
    /// A file system of ours.
    Ours,
    /// A file system of ours that holds nothing but mount points and is sealed in the end.
    Cover,
    /// An empty cover.
    Closed,
}

/// One step of the way from the root downwards.
enum Step<'a> {
    Node(&'a Node),
    Link(&'a HostPath),
    Folder(u32),
}

/// Makes the operations.
pub(crate) fn emit(layout: &Layout, given: Given<'_>) -> Mounts {
    let Given { private_home, home, proc, dev, files, folders, temporary_size } = given;
    let mut emitter = Emitter {
        layout,
        private_home,
        home,
        temporary_size,
        ops: vec![MountOp::FreezeRoot],
        writable: Vec::new(),
        stands: HashMap::new(),
        made: BTreeSet::new(),
        linked: BTreeSet::new(),
        seals: Vec::new(),
    };
    emitter.stand(&HostPath::root().join("dev"), Stands::Ours);
    emitter.ops.push(dev);
    if let Some(proc) = proc {
        emitter.ops.push(proc);
    }
    let nodes = layout.nodes().map(|(path, node)| (path, Step::Node(node)));
    let links = layout.links().map(|(path, target)| (path, Step::Link(target)));
    let folders = folders.iter().map(|(path, mode)| (path, Step::Folder(*mode)));
    let mut steps: Vec<(&HostPath, Step<'_>)> = nodes.chain(links).chain(folders).collect();
    // Paths of one depth do not lie in each other.
    steps.sort_by_cached_key(|(path, _)| path.depth());
    for (path, step) in steps {
        match step {
            Step::Node(node) => emitter.node(path, node),
            Step::Link(target) => emitter.link(path, target),
            Step::Folder(mode) => emitter.folder(path, mode),
        }
    }
    for file in files {
        if let MountOp::File { target, .. } = &file {
            emitter.parents(target);
        }
        emitter.ops.push(file);
    }
    let Emitter { mut ops, writable, seals, .. } = emitter;
    ops.extend(seals.into_iter().map(|target| MountOp::Seal { target }));
    Mounts { ops, writable }
}

struct Emitter<'a> {
    layout: &'a Layout,
    private_home: &'a HostPath,
    home: HomeMode,
    temporary_size: u64,
    ops: Vec<MountOp>,
    writable: Vec<HostPath>,
    stands: HashMap<Vec<u8>, Stands>,
    made: BTreeSet<HostPath>,
    linked: BTreeSet<HostPath>,
    seals: Vec<HostPath>,
}

impl Emitter<'_> {
    fn node(&mut self, path: &HostPath, node: &Node) {
        let (_, here) = self.around(path);
        match (node.want, here) {
            (Want::Hidden, Stands::Host { .. }) => self.hide(path, node),
            (Want::Private(Place::Home), _) => self.home(path),
            (Want::Private(Place::Temporary), Stands::Host { .. } | Stands::Cover | Stands::Closed) => {
                self.temporary(path);
            }
            (Want::ReadOnly, Stands::Host { writable: true } | Stands::Ours | Stands::Cover) => {
                self.bind(path.clone(), path, node, true);
            }
            (Want::Writable, Stands::Host { writable: false } | Stands::Ours | Stands::Cover) => {
                self.bind(path.clone(), path, node, false);
                self.writable.push(path.clone());
            }
            (Want::Writable, Stands::Host { writable: true }) if node.pinned => {
                self.bind(path.clone(), path, node, false);
            }
            // What is not seen needs no cover; what stands there as wanted needs nothing. Nothing is shown below an empty
            // cover: a cover with something below it is `Stands::Cover`.
            (Want::Hidden | Want::Private(_) | Want::ReadOnly | Want::Writable, _) => {}
        }
    }

    fn hide(&mut self, path: &HostPath, node: &Node) {
        let (target, why) = (path.clone(), node.why.clone());
        let shows_more = self.layout.below(path).any(|(_, below)| below.want != Want::Hidden);
        let shows_more = shows_more || self.layout.links().any(|(link, _)| link.is_within(path));
        let stands = if node.kind != Kind::Dir {
            self.ops.push(MountOp::CoverFile { target, why });
            Stands::Closed
        } else if shows_more {
            let flags = MountFlags { read_only: false, no_exec: true };
            self.ops.push(MountOp::Tmpfs { target: target.clone(), mode: COVER_MODE, size: COVER_SIZE, flags });
            self.seals.push(target);
            Stands::Cover
        } else {
            self.ops.push(MountOp::CoverDir { target, why });
            Stands::Closed
        };
        self.stand(path, stands);
    }

    fn home(&mut self, path: &HostPath) {
        self.parents(path);
        match self.home {
            HomeMode::Private => self.ops.push(MountOp::Bind {
                source: self.private_home.clone(),
                target: path.clone(),
                dir: true,
                flags: MountFlags::default(),
                why: "private home".to_owned(),
            }),
            HomeMode::Empty | HomeMode::Visible => self.tmpfs(path, 0o700, self.temporary_size),
        }
        self.stand(path, Stands::Ours);
        self.writable.push(path.clone());
    }

    fn temporary(&mut self, path: &HostPath) {
        self.parents(path);
        let run = path.as_path().ends_with("run");
        if run {
            self.tmpfs(path, 0o755, RUN_SIZE.min(self.temporary_size));
        } else {
            self.tmpfs(path, 0o1777, self.temporary_size);
        }
        self.stand(path, Stands::Ours);
        self.writable.push(path.clone());
    }

    fn tmpfs(&mut self, path: &HostPath, mode: u32, size: u64) {
        self.ops.push(MountOp::Tmpfs { target: path.clone(), mode, size, flags: MountFlags::default() });
    }

    fn bind(&mut self, source: HostPath, target: &HostPath, node: &Node, read_only: bool) {
        self.parents(target);
        self.ops.push(MountOp::Bind {
            source,
            target: target.clone(),
            dir: node.kind == Kind::Dir,
            flags: MountFlags { read_only, no_exec: false },
            why: node.why.clone(),
        });
        self.stand(target, Stands::Host { writable: !read_only });
    }

    /// A link in a file system of ours, unless the way to it leads over another one already.
    fn link(&mut self, path: &HostPath, target: &HostPath) {
        let (_, here) = self.around(path);
        let mut above = path.parent();
        while let Some(folder) = above {
            if self.linked.contains(&folder) {
                return;
            }
            above = folder.parent();
        }
        // A link to a name that is not UTF-8 is left out; the real path is there all the same.
        if matches!(here, Stands::Ours | Stands::Cover)
            && let Some(to) = target.as_path().to_str()
        {
            self.parents(path);
            self.ops.push(MountOp::Symlink { path: path.clone(), to: to.to_owned() });
            self.linked.insert(path.clone());
        }
    }

    /// A folder that a variable names, where it can be made.
    fn folder(&mut self, path: &HostPath, mode: u32) {
        if self.around(path).1 == Stands::Ours
            && !self.stands.contains_key(bytes(path))
            && self.made.insert(path.clone())
        {
            self.ops.push(MountOp::MakeDir { path: path.clone(), mode });
        }
    }

    /// Makes the folders above a target, where they lie in a file system of ours and are not there by themselves.
    fn parents(&mut self, target: &HostPath) {
        let (root, stands) = self.around(target);
        if !matches!(stands, Stands::Ours | Stands::Cover) {
            return;
        }
        if let Some(parent) = target.parent()
            && bytes(&parent).len() > root
            && self.made.insert(parent.clone())
        {
            self.ops.push(MountOp::MakeDir { path: parent, mode: 0o755 });
        }
    }

    fn stand(&mut self, path: &HostPath, stands: Stands) {
        self.stands.insert(bytes(path).to_vec(), stands);
    }

    /// The mount in which a path lies: the length of its root's path, and what it is.
    fn around(&self, path: &HostPath) -> (usize, Stands) {
        let mut at = bytes(path);
        while let Some((folder, _)) = split(at) {
            if let Some(stands) = self.stands.get(folder) {
                return (folder.len(), *stands);
            }
            at = folder;
        }
        (1, Stands::Host { writable: false })
    }
}
