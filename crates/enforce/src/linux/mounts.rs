//! Carries out the mount operations of a plan, in the mount namespace of process 1.

use super::error::Step;
use super::message::{During, Failure};
use super::ours::{Ours, Owner};
use ringfence_plan::PrepareOp;
use ringfence_plan::mounts::{MountFlags, MountOp};
use ringfence_policy::HostPath;
use ringfence_sys::file::{self, FileKind};
use ringfence_sys::mount::{self, Attributes, Reach};
use ringfence_sys::{Errno, SysError};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Held by every mount that is made here, but for device nodes.
const BASE: Attributes = Attributes::NO_SUID;

/// Carries out the operations in their order. Returns how many names to be hidden had gone since the plan was made.
pub(crate) fn carry_out(ops: &[MountOp], prepared: &[PrepareOp]) -> Result<u32, Failure> {
    let mut sources = sources(ops)?;
    let generated = Generated::make(ops)?;
    let mut ours = Ours::new(prepared);
    let mut covers = Covers::new(&generated);
    let mut file_number = 0u32;
    for (op, source) in ops.iter().zip(sources.iter_mut()) {
        match op {
            MountOp::FreezeRoot => freeze()?,
            MountOp::Tmpfs { target, mode, size, flags } => {
                tmpfs(&mut ours, target, *mode, *size, *flags)?;
                ours.add(target, Owner::Us);
            }
            MountOp::Bind { source: from, target, dir, flags, .. } => {
                let kind = if *dir { FileKind::Dir } else { FileKind::Other };
                let place = ours.place(target, kind, Step::Bind)?;
                for tree in source.drain(..) {
                    mount::attach(&tree, &place).during(Step::Bind, target.as_path())?;
                }
                let owner = ours.owner_of_source(from, *flags);
                ours.add(target, owner);
            }
            MountOp::CoverDir { target, .. } => covers.hide(target, FileKind::Dir)?,
            MountOp::CoverFile { target, .. } => covers.hide(target, FileKind::Other)?,
            MountOp::Proc { read_only, hidden } => {
                proc(read_only, hidden, &covers)?;
                ours.add_path("/proc", Owner::Host);
            }
            MountOp::Dev { nodes, shm_size } => {
                dev(nodes, source, *shm_size)?;
                ours.add_path("/dev", Owner::Us);
            }
            MountOp::MakeDir { path, mode } => {
                ours.make_dirs(path, *mode, Step::MakeDir)?;
            }
            MountOp::File { target, .. } => {
                let place = ours.place(target, FileKind::Other, Step::File)?;
                let tree = generated.file(file_number).during(Step::File, target.as_path())?;
                file_number += 1;
                mount::attach(&tree, &place).during(Step::File, target.as_path())?;
            }
            MountOp::Symlink { path, to } => {
                ours.make_symlink(path, to)?;
            }
            MountOp::Seal { target } => {
                let fd = file::open_path(target.as_path()).during(Step::Seal, target.as_path())?;
                mount::set_attributes(fd, Attributes::READ_ONLY, Reach::This).during(Step::Seal, target.as_path())?;
            }
        }
    }
    if let Some(place) = generated.attached {
        mount::detach(Path::new(place)).during(Step::Generated, place)?;
    }
    Ok(covers.vanished)
}

/// Copies of what is shown elsewhere, per operation, made before the first one, because later ones cover and freeze the
/// originals.
fn sources(ops: &[MountOp]) -> Result<Vec<Vec<OwnedFd>>, Failure> {
    ops.iter()
        .map(|op| match op {
            MountOp::Bind { source, flags, .. } => {
                Ok(vec![copy(source.as_path(), attributes(*flags) | Attributes::NO_DEV, Reach::Tree)?])
            }
            // Read-only concerns a node's own mode and times; a device is written through it all the same.
            MountOp::Dev { nodes, .. } => {
                let flags = BASE | Attributes::NO_EXEC | Attributes::READ_ONLY;
                nodes.iter().map(|node| copy(&Path::new("/dev").join(node), flags, Reach::This)).collect()
            }
            _ => Ok(Vec::new()),
        })
        .collect()
}

fn copy(path: &Path, attributes: Attributes, reach: Reach) -> Result<OwnedFd, Failure> {
    let fd = file::open_path(path).during(Step::Source, path)?;
    let tree = mount::copy_tree(&fd, reach).during(Step::Source, path)?;
    mount::set_attributes(&tree, attributes, reach).during(Step::Source, path)?;
    Ok(tree)
}

fn attributes(flags: MountFlags) -> Attributes {
    let mut out = BASE;
    if flags.read_only {
        out = out | Attributes::READ_ONLY;
    }
    if flags.no_exec {
        out = out | Attributes::NO_EXEC;
    }
    out
}

fn freeze() -> Result<(), Failure> {
    let root = mount::root().during(Step::Freeze, "/")?;
    let all = Attributes::READ_ONLY | Attributes::NO_SUID | Attributes::NO_DEV;
    mount::set_attributes(root, all, Reach::Tree).during(Step::Freeze, "/")
}

fn tmpfs(ours: &mut Ours, target: &HostPath, mode: u32, size: u64, flags: MountFlags) -> Result<(), Failure> {
    let place = ours.place(target, FileKind::Dir, Step::Tmpfs)?;
    let tree = new_tmpfs(mode, size, attributes(flags) | Attributes::NO_DEV).during(Step::Tmpfs, target.as_path())?;
    mount::attach(&tree, &place).during(Step::Tmpfs, target.as_path())
}

fn new_tmpfs(mode: u32, size: u64, attributes: Attributes) -> Result<OwnedFd, SysError> {
    let (mode, size) = (format!("{mode:o}"), size.to_string());
    mount::new_filesystem("tmpfs", &[("mode", &mode), ("size", &size)], attributes)
}

/// One temporary file system with all generated files, an empty folder and an empty file of mode 0: the covers.
struct Generated {
    root: OwnedFd,
    dir: OwnedFd,
    file: OwnedFd,
    /// Where it had to be attached, for kernels that copy nothing that is attached nowhere (before Linux 6.15).
    attached: Option<&'static str>,
}

impl Generated {
    fn make(ops: &[MountOp]) -> Result<Self, Failure> {
        let fail = |error| Failure::new(Step::Generated, "", error);
        let base = BASE | Attributes::NO_DEV | Attributes::NO_EXEC;
        let content = |op: &MountOp| if let MountOp::File { content, .. } = op { content.len() } else { 0 };
        // Whole pages per file, and some for folders; a size of 0 would mean no limit (tmpfs(5)).
        let pages = ops.iter().map(|op| content(op).div_ceil(4096) + 1).sum::<usize>();
        let size = u64::try_from(pages.saturating_mul(4096)).unwrap_or(u64::MAX).max(1 << 20);
        let root = new_tmpfs(0o755, size, base).map_err(fail)?;
        let files = ops.iter().filter_map(|op| match op {
            MountOp::File { target, content, .. } => Some((target, content)),
            _ => None,
        });
        for (n, (target, content)) in files.enumerate() {
            let fd = file::make_file_at(&root, format!("f{n}"), 0o444).during(Step::File, target.as_path())?;
            file::write_all(&fd, content.as_bytes()).during(Step::File, target.as_path())?;
        }
        file::make_dir_at(&root, "dir", 0).map_err(fail)?;
        drop(file::make_file_at(&root, "file", 0).map_err(fail)?);
        mount::set_attributes(&root, base | Attributes::READ_ONLY, Reach::This).map_err(fail)?;
        let mut out = Self::open(root).map_err(fail)?;
        if let Err(error) = mount::copy_tree(&out.dir, Reach::This) {
            if error.errno != Errno::INVAL {
                return Err(fail(error));
            }
            out.attach().map_err(fail)?;
        }
        Ok(out)
    }

    fn open(root: OwnedFd) -> Result<Self, SysError> {
        let dir = file::open_path_at(&root, "dir")?;
        let file = file::open_path_at(&root, "file")?;
        Ok(Self { root, dir, file, attached: None })
    }

    /// Puts it on top of the root for as long as copies are made: path lookups start below it, so nothing is hidden.
    fn attach(&mut self) -> Result<(), SysError> {
        mount::attach(&self.root, mount::root()?)?;
        self.attached = Some("/");
        Ok(())
    }

    fn file(&self, number: u32) -> Result<OwnedFd, SysError> {
        mount::copy_tree(file::open_path_at(&self.root, format!("f{number}"))?, Reach::This)
    }

    fn cover(&self, kind: FileKind) -> Result<OwnedFd, SysError> {
        let from = match kind {
            FileKind::Dir => &self.dir,
            FileKind::Other | FileKind::Symlink => &self.file,
        };
        mount::copy_tree(from, Reach::This)
    }
}

/// Hides names. The folder of the last one stays open, because names to be hidden come in crowds.
struct Covers<'a> {
    generated: &'a Generated,
    last: Option<(HostPath, OwnedFd)>,
    vanished: u32,
}

impl<'a> Covers<'a> {
    fn new(generated: &'a Generated) -> Self {
        Self { generated, last: None, vanished: 0 }
    }

    fn hide(&mut self, target: &HostPath, kind: FileKind) -> Result<(), Failure> {
        let during = |error| Failure::new(Step::Cover, target.as_path(), error);
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(during(SysError::new("move_mount", "/", Errno::INVAL)));
        };
        match self.attach_below(&parent, &name, kind) {
            // It was removed on the host after the plan was made, so there is nothing to hide.
            Err(error) if matches!(error.errno, Errno::NOENT) => {
                self.vanished += 1;
                Ok(())
            }
            done => done.map_err(during),
        }
    }

    fn attach_below(&mut self, parent: &HostPath, name: &OsStr, kind: FileKind) -> Result<(), SysError> {
        if self.last.as_ref().is_none_or(|(path, _)| path != parent) {
            self.last = Some((parent.clone(), file::open_path(parent.as_path())?));
        }
        let Some((_, dir)) = &self.last else { return Ok(()) };
        let cover = self.generated.cover(kind)?;
        match mount::attach_at(&cover, dir, name) {
            // What was a file when the plan was made is a folder now, or the other way round.
            Err(error) if error.errno == Errno::NOTDIR || error.errno == Errno::INVAL => {
                let other = match kind {
                    FileKind::Dir => FileKind::Other,
                    FileKind::Other | FileKind::Symlink => FileKind::Dir,
                };
                mount::attach_at(self.generated.cover(other)?, dir, name)
            }
            done => done,
        }
    }
}

/// A fresh `/proc`, with what concerns the whole machine read-only or hidden.
fn proc(read_only: &[String], hidden: &[String], covers: &Covers<'_>) -> Result<(), Failure> {
    let during = |name: &str| Path::new("/proc").join(name);
    let flags = Attributes::NO_SUID | Attributes::NO_DEV | Attributes::NO_EXEC;
    let root = mount::new_filesystem("proc", &[], flags).during(Step::Proc, "/proc")?;
    let place = file::open_path(Path::new("/proc")).during(Step::Proc, "/proc")?;
    mount::attach(&root, place).during(Step::Proc, "/proc")?;
    // Nobody inside this user namespace may make another one: the limit is per namespace, and only process 1 keeps the
    // capability to raise it (namespaces(7)). Before `sys` becomes read-only.
    file::write_existing_at(&root, "sys/user/max_user_namespaces", b"0")
        .during(Step::UserNamespaceLock, "/proc/sys/user/max_user_namespaces")?;
    for name in read_only {
        let Some(fd) = entry(&root, name)? else { continue };
        let tree = mount::copy_tree(&fd, Reach::Tree).during(Step::Proc, during(name))?;
        mount::set_attributes(&tree, flags | Attributes::READ_ONLY, Reach::Tree).during(Step::Proc, during(name))?;
        mount::attach(&tree, &fd).during(Step::Proc, during(name))?;
    }
    for name in hidden {
        let Some(fd) = entry(&root, name)? else { continue };
        let kind = file::kind(&fd).during(Step::Proc, during(name))?;
        let cover = covers.generated.cover(kind).during(Step::Proc, during(name))?;
        mount::attach(&cover, &fd).during(Step::Proc, during(name))?;
    }
    Ok(())
}

/// An entry of `/proc`; which ones there are depends on how the kernel was built.
fn entry(root: &OwnedFd, name: &str) -> Result<Option<OwnedFd>, Failure> {
    match file::open_path_at(root, name) {
        Ok(fd) => Ok(Some(fd)),
        Err(error) if error.errno == Errno::NOENT => Ok(None),
        Err(error) => Err(Failure::new(Step::Proc, Path::new("/proc").join(name), error)),
    }
}

/// A minimal `/dev`. A node cannot be made in a user namespace (mknod(2)), so the host's are shown one by one.
fn dev(nodes: &[String], trees: &[OwnedFd], shm_size: u64) -> Result<(), Failure> {
    let during = |name: &str| Path::new("/dev").join(name);
    let flags = Attributes::NO_SUID | Attributes::NO_DEV;
    let root = new_tmpfs(0o755, 1 << 20, flags | Attributes::NO_EXEC).during(Step::Dev, "/dev")?;
    let place = file::open_path(Path::new("/dev")).during(Step::Dev, "/dev")?;
    mount::attach(&root, place).during(Step::Dev, "/dev")?;
    for (node, tree) in nodes.iter().zip(trees) {
        drop(file::make_file_at(&root, node, 0).during(Step::Dev, during(node))?);
        mount::attach_at(tree, &root, OsStr::new(node)).during(Step::Dev, during(node))?;
    }
    let links = [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    for (name, to) in links {
        file::make_symlink_at(to, &root, name).during(Step::Dev, during(name))?;
    }
    for name in ["pts", "shm", "mqueue"] {
        file::make_dir_at(&root, name, 0o755).during(Step::Dev, during(name))?;
    }
    let no_exec = Attributes::NO_SUID | Attributes::NO_EXEC;
    let pts = mount::new_filesystem("devpts", &[("ptmxmode", "666"), ("mode", "620")], no_exec)
        .during(Step::Dev, "/dev/pts")?;
    mount::attach_at(&pts, &root, OsStr::new("pts")).during(Step::Dev, "/dev/pts")?;
    let shm = new_tmpfs(0o1777, shm_size, flags).during(Step::Dev, "/dev/shm")?;
    mount::attach_at(&shm, &root, OsStr::new("shm")).during(Step::Dev, "/dev/shm")?;
    let queue = mount::new_filesystem("mqueue", &[], flags | Attributes::NO_EXEC);
    match queue {
        Ok(queue) => mount::attach_at(&queue, &root, OsStr::new("mqueue")).during(Step::Dev, "/dev/mqueue")?,
        // A kernel without POSIX message queues.
        Err(error) if error.errno == Errno::NODEV => {}
        Err(error) => return Err(Failure::new(Step::Dev, "/dev/mqueue", error)),
    }
    mount::set_attributes(&root, flags | Attributes::NO_EXEC | Attributes::READ_ONLY, Reach::This)
        .during(Step::Dev, "/dev")
}
