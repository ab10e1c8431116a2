//! Which places are ours to make names in.
//!
//! Mounts need something to stand on. Such names are made only in file systems of ours, so that nothing is left on the
//! host; and a private home persists, so what an earlier command left at such a name is moved aside when it is of the wrong
//! kind: a link there would lead to wherever that command liked.

use super::error::Step;
use super::message::{During, Failure, NOT_OURS};
use ringfence_plan::PrepareOp;
use ringfence_plan::mounts::MountFlags;
use ringfence_policy::HostPath;
use ringfence_sys::file::{self, FileKind};
use ringfence_sys::{Errno, SysError};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Whose file system a path lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Made by us, or a folder of ours on the host: names may be made in it.
    Us,
    /// The host's.
    Host,
}

/// The mounts so far, and whose they are.
pub(crate) struct Ours<'a> {
    prepared: &'a [PrepareOp],
    mounts: Vec<(HostPath, Owner)>,
}

impl<'a> Ours<'a> {
    pub(crate) fn new(prepared: &'a [PrepareOp]) -> Self {
        Self { prepared, mounts: Vec::new() }
    }

    pub(crate) fn add(&mut self, target: &HostPath, owner: Owner) {
        self.mounts.push((target.clone(), owner));
    }

    pub(crate) fn add_path(&mut self, target: &str, owner: Owner) {
        if let Ok(target) = HostPath::new(target) {
            self.mounts.push((target, owner));
        }
    }

    /// A writable window on a folder that was prepared is ours; every other one is the user's.
    pub(crate) fn owner_of_source(&self, source: &HostPath, flags: MountFlags) -> Owner {
        let made = |op: &PrepareOp| match op {
            PrepareOp::MakeDir { path, .. } => source.is_within(path),
            PrepareOp::CopyOnce { .. } => false,
        };
        if !flags.read_only && self.prepared.iter().any(made) { Owner::Us } else { Owner::Host }
    }

    /// The mount that holds a path, if it is ours. Of several at the same place the last one is on top.
    fn holder(&self, path: &HostPath) -> Option<&HostPath> {
        let holder = self.mounts.iter().filter(|(at, _)| path.is_within(at)).max_by_key(|(at, _)| at.depth());
        holder.and_then(|(at, owner)| (*owner == Owner::Us).then_some(at))
    }

    /// Opens a target; makes it when it is missing and lies in a file system of ours.
    pub(crate) fn place(&self, target: &HostPath, kind: FileKind, step: Step) -> Result<OwnedFd, Failure> {
        if let Some(fd) = self.standing(target, kind, step)? {
            return Ok(fd);
        }
        match kind {
            FileKind::Dir => self.make_dirs(target, 0o755, step)?,
            FileKind::Other | FileKind::Symlink => {
                let (dir, name) = self.parent(target, step)?;
                drop(file::make_file_at(dir, Path::new(&name), 0o600).during(step, target.as_path())?);
            }
        }
        file::open_path(target.as_path()).during(step, target.as_path())
    }

    /// Makes a folder and its missing parents.
    pub(crate) fn make_dirs(&self, path: &HostPath, mode: u32, step: Step) -> Result<(), Failure> {
        if self.standing(path, FileKind::Dir, step)?.is_some() {
            return Ok(());
        }
        let (dir, name) = self.parent(path, step)?;
        match file::make_dir_at(&dir, Path::new(&name), mode) {
            // Another run that shares the home made it in the meantime.
            Err(error) if error.errno == Errno::EXIST => Ok(()),
            done => done.during(step, path.as_path()),
        }
    }

    /// Makes a symbolic link, unless this very link is there.
    pub(crate) fn make_symlink(&self, path: &HostPath, to: &str) -> Result<(), Failure> {
        let step = Step::Symlink;
        if self.holder(path).is_none() {
            return Err(not_ours(path, step));
        }
        let (dir, name) = self.parent(path, step)?;
        for _ in 0..2 {
            match file::make_symlink_at(to, &dir, Path::new(&name)) {
                Err(error) if error.errno == Errno::EXIST => {}
                done => return done.during(step, path.as_path()),
            }
            let there = file::open_path_at_link(&dir, &name).during(step, path.as_path())?;
            if file::kind(&there).during(step, path.as_path())? == FileKind::Symlink
                && file::link_target(&there).during(step, path.as_path())? == *to
            {
                return Ok(());
            }
            move_aside(&dir, &name).during(step, path.as_path())?;
        }
        Err(Failure::new(step, path.as_path(), SysError::new("symlinkat", "", Errno::EXIST)))
    }

    /// What stands at a path, if it is of the right kind; in a file system of ours anything else is moved aside.
    fn standing(&self, path: &HostPath, kind: FileKind, step: Step) -> Result<Option<OwnedFd>, Failure> {
        let ours = self.holder(path);
        match file::open_path(path.as_path()) {
            Ok(fd) => {
                let Some(holder) = ours else { return Ok(Some(fd)) };
                let found = file::kind(&fd).during(step, path.as_path())?;
                if found == kind || path == holder {
                    return Ok(Some(fd));
                }
            }
            Err(error) => match (error.errno, ours) {
                (Errno::NOENT, Some(_)) => return Ok(None),
                (Errno::NOENT, None) => return Err(not_ours(path, step)),
                (Errno::LOOP | Errno::NOTDIR, Some(_)) => {}
                _ => return Err(Failure::new(step, path.as_path(), error)),
            },
        }
        self.clear_way(path, step)?;
        Ok(None)
    }

    /// Moves the first thing on the way to a path aside that is no folder, or the last one, whatever it is.
    fn clear_way(&self, path: &HostPath, step: Step) -> Result<(), Failure> {
        let (Some(holder), Some(parent), Some(name)) = (self.holder(path), path.parent(), path.file_name()) else {
            return Err(not_ours(path, step));
        };
        match file::open_path(parent.as_path()) {
            Ok(dir) if file::kind(&dir).during(step, path.as_path())? == FileKind::Dir => {
                move_aside(&dir, &name).during(step, path.as_path())
            }
            _ if parent.is_within(holder) && parent != *holder => self.clear_way(&parent, step),
            _ => Err(not_ours(path, step)),
        }
    }

    /// The folder that holds a name, made when it is missing.
    fn parent(&self, path: &HostPath, step: Step) -> Result<(OwnedFd, OsString), Failure> {
        let (Some(_), Some(parent), Some(name)) = (self.holder(path), path.parent(), path.file_name()) else {
            return Err(not_ours(path, step));
        };
        self.make_dirs(&parent, 0o755, step)?;
        let dir = file::open_path(parent.as_path()).during(step, path.as_path())?;
        Ok((dir, name))
    }
}

fn not_ours(path: &HostPath, step: Step) -> Failure {
    Failure::new(step, path.as_path(), SysError::new(NOT_OURS, "", Errno::ROFS))
}

/// Gives an entry a name that tells what happened. Gone already is as good.
fn move_aside(dir: &OwnedFd, name: &OsString) -> Result<(), SysError> {
    for number in 0..1000 {
        let mut other = name.clone();
        other.push(format!(".moved-aside-{number}"));
        match file::rename_at(dir, name, &other) {
            Err(error) if error.errno == Errno::EXIST => {}
            Err(error) if error.errno == Errno::NOENT => return Ok(()),
            done => return done,
        }
    }
    Err(SysError::new("renameat2", format!("{name:?}"), Errno::EXIST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(p: impl AsRef<Path>) -> HostPath {
        HostPath::new(p).unwrap()
    }

    #[test]
    fn names_are_made_only_in_file_systems_of_ours() {
        let prepared = [PrepareOp::MakeDir { path: path("/data/home"), mode: 0o700 }];
        let mut ours = Ours::new(&prepared);
        assert_eq!(ours.holder(&path("/srv/x")), None);
        ours.add(&path("/tmp"), Owner::Us);
        assert!(ours.holder(&path("/tmp/a/b")).is_some());
        assert_eq!(ours.holder(&path("/tmpx/a")), None);
        let work = ours.owner_of_source(&path("/srv/work"), MountFlags::default());
        ours.add(&path("/tmp/work"), work);
        assert_eq!(ours.holder(&path("/tmp/work/new")), None, "the workspace is the user's");
        let home = ours.owner_of_source(&path("/data/home"), MountFlags::default());
        ours.add(&path("/home/u"), home);
        assert!(ours.holder(&path("/home/u/.config")).is_some());
        ours.add(&path("/home/u"), Owner::Host);
        assert_eq!(ours.holder(&path("/home/u/.config")), None, "the last mount at a place counts");
    }

    #[test]
    fn what_stands_in_the_way_is_moved_aside_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let mut ours = Ours::new(&[]);
        ours.add(&path(base.join("home")), Owner::Us);
        std::fs::create_dir_all(base.join("home")).unwrap();
        std::fs::create_dir_all(base.join("victim")).unwrap();
        std::os::unix::fs::symlink(base.join("victim"), base.join("home/.config")).unwrap();
        ours.make_dirs(&path(base.join("home/.config/tool")), 0o700, Step::MakeDir).unwrap();
        assert!(!base.join("victim/tool").exists(), "a planted link is not followed");
        assert!(base.join("home/.config/tool").is_dir());
        assert!(base.join("home/.config.moved-aside-0").is_symlink());

        std::fs::write(base.join("home/folder"), "kept").unwrap();
        let fd = ours.place(&path(base.join("home/folder")), FileKind::Dir, Step::Bind).unwrap();
        assert_eq!(file::kind(fd).unwrap(), FileKind::Dir);
        assert_eq!(std::fs::read_to_string(base.join("home/folder.moved-aside-0")).unwrap(), "kept");

        let outside = ours.place(&path(base.join("elsewhere")), FileKind::Dir, Step::Bind).unwrap_err();
        assert_eq!(outside.error.call, NOT_OURS);
        assert!(!base.join("elsewhere").exists());
    }

    #[test]
    fn a_link_is_made_again_when_it_leads_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let mut ours = Ours::new(&[]);
        ours.add(&path(&base), Owner::Us);
        let link = path(base.join("l"));
        for to in ["a", "a", "b"] {
            ours.make_symlink(&link, to).unwrap();
            assert_eq!(std::fs::read_link(link.as_path()).unwrap(), Path::new(to));
        }
        assert_eq!(std::fs::read_dir(&base).unwrap().count(), 2);
    }
}
