//! The steps on the host, all in folders of ours. What lies in a private home was written by programs inside, so no
//! component of a path in it may be a symlink.

use super::error::EnforceError;
use ringfence_plan::PrepareOp;
use ringfence_policy::HostPath;
use ringfence_sys::{Errno, SysError, file};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Carries them out in their order.
pub(crate) fn carry_out(ops: &[PrepareOp]) -> Result<(), EnforceError> {
    for op in ops {
        let (path, done) = match op {
            PrepareOp::MakeDir { path, mode } => (path, make_own_dir(path, *mode)),
            PrepareOp::CopyOnce { from, to } => (to, copy_once(from.as_path(), to)),
        };
        done.map_err(|source| match source.errno {
            Errno::NOSPC | Errno::DQUOT => {
                EnforceError::Full { step: super::error::Step::MakeDir, path: path.as_path().to_owned(), source }
            }
            _ => EnforceError::Prepare { path: path.as_path().to_owned(), source },
        })?;
    }
    Ok(())
}

/// A folder that belongs to us; its missing parents are as private as it is.
fn make_own_dir(path: &HostPath, mode: u32) -> Result<(), SysError> {
    match file::open_path(path.as_path()) {
        Ok(fd) => {
            if file::owner(&fd)? != ringfence_sys::host::effective_ids().0 {
                return Err(SysError::new("fstat", format!("{path}: belongs to somebody else"), Errno::PERM));
            }
            return Ok(());
        }
        Err(error) if error.errno == Errno::NOENT => {}
        Err(error) => return Err(error),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    make_parents(&parent)?;
    let dir = file::open_path(parent.as_path())?;
    match file::make_dir_at(&dir, Path::new(&name), mode) {
        // Another launcher made it in the meantime.
        Err(error) if error.errno == Errno::EXIST => Ok(()),
        done => done,
    }
}

fn make_parents(path: &HostPath) -> Result<(), SysError> {
    match file::open_path(path.as_path()) {
        Err(error) if error.errno == Errno::NOENT => {}
        done => return done.map(drop),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    make_parents(&parent)?;
    let dir = file::open_path(parent.as_path())?;
    match file::make_dir_at(&dir, Path::new(&name), 0o700) {
        Err(error) if error.errno == Errno::EXIST => Ok(()),
        done => done,
    }
}

/// A copy of a file, unless something has its name already or there is nothing to copy.
fn copy_once(from: &Path, to: &HostPath) -> Result<(), SysError> {
    let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else { return Ok(()) };
    let errno = |error: &std::io::Error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let mut source = match ringfence_sys::files::open_read(from) {
        Ok(source) => source,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SysError::new("open", format!("{from:?}"), errno(&error))),
    };
    make_parents(&parent)?;
    let dir = file::open_path(parent.as_path())?;
    let target = match file::make_file_at(&dir, Path::new(&name), 0o600) {
        Ok(target) => target,
        Err(error) if error.errno == Errno::EXIST => return Ok(()),
        Err(error) => return Err(error),
    };
    let copied = copy(&mut source, &target, from);
    if copied.is_err() {
        // Half a file would be taken for the whole the next time.
        let _ = file::remove(to.as_path());
    }
    copied
}

fn copy(source: &mut File, target: &std::os::fd::OwnedFd, from: &Path) -> Result<(), SysError> {
    let mut buffer = vec![0u8; 1 << 16];
    loop {
        let n = source.read(&mut buffer).map_err(|error| {
            SysError::new("read", format!("{from:?}"), error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))
        })?;
        if n == 0 {
            return Ok(());
        }
        file::write_all(target, buffer.get(..n).unwrap_or_default())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(base: &Path, rest: &str) -> HostPath {
        HostPath::new(base.join(rest)).unwrap()
    }

    #[test]
    fn folders_are_private_and_copies_are_made_once() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::write(base.join("from"), "one").unwrap();
        let ops = [
            PrepareOp::MakeDir { path: path(&base, "data/homes/x"), mode: 0o700 },
            PrepareOp::CopyOnce { from: path(&base, "from"), to: path(&base, "data/homes/x/.config/to") },
            PrepareOp::CopyOnce { from: path(&base, "absent"), to: path(&base, "data/homes/x/absent") },
        ];
        carry_out(&ops).unwrap();
        assert_eq!(std::fs::metadata(base.join("data/homes/x")).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(base.join("from"), "two").unwrap();
        carry_out(&ops).unwrap();
        assert_eq!(std::fs::read_to_string(base.join("data/homes/x/.config/to")).unwrap(), "one");
        assert!(!base.join("data/homes/x/absent").exists());
    }

    #[test]
    fn a_link_that_a_program_inside_left_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("home")).unwrap();
        std::fs::create_dir_all(base.join("victim")).unwrap();
        std::fs::write(base.join("from"), "x").unwrap();
        std::os::unix::fs::symlink(base.join("victim"), base.join("home/.config")).unwrap();
        let op = PrepareOp::CopyOnce { from: path(&base, "from"), to: path(&base, "home/.config/to") };
        let error = carry_out(std::slice::from_ref(&op)).unwrap_err();
        assert!(matches!(&error, EnforceError::Prepare { source, .. } if source.errno == Errno::LOOP), "{error:?}");
        assert!(!base.join("victim/to").exists());
        std::fs::remove_file(base.join("home/.config")).unwrap();
        carry_out(&[op]).unwrap();
        assert!(base.join("home/.config/to").exists());
    }
}
