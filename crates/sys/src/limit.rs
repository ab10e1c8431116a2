//! Limits: resources of a process, and control groups.

use crate::{Context, SysError};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
pub use rustix::process::Resource;
use std::path::{Path, PathBuf};

/// Sets the soft and the hard limit of a resource, never above the hard limit that is there.
///
/// # Errors
/// setrlimit(2) fails.
pub fn set(resource: Resource, value: u64) -> Result<(), SysError> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let value = hard.map_or(value, |hard| hard.min(value));
    let limit = rustix::process::Rlimit { current: Some(value), maximum: Some(value) };
    rustix::process::setrlimit(resource, limit).at("setrlimit", || format!("{resource:?}, {value}"))
}

/// A control group of ours (cgroups(7), version 2). Removed when dropped, if nothing is in it any more.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    fd: OwnedFd,
}

impl Group {
    /// Makes a group below a folder that is delegated to us, and sets its files.
    ///
    /// # Errors
    /// It cannot be made, or a setting is refused; nothing is left behind.
    pub fn create(parent: &Path, name: &str, settings: &[(String, String)]) -> Result<Self, SysError> {
        let path = parent.join(name);
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).at("mkdir", || format!("{path:?}"))?;
        match Self::fill(&path, settings) {
            Ok(fd) => Ok(Self { path, fd }),
            Err(error) => {
                let _ = rustix::fs::rmdir(&path);
                Err(error)
            }
        }
    }

    fn fill(path: &Path, settings: &[(String, String)]) -> Result<OwnedFd, SysError> {
        for (file, value) in settings {
            crate::file::write_existing(path.join(file), value.as_bytes())?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).at("open", || format!("{path:?}"))
    }

    /// For `CLONE_INTO_CGROUP`.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = rustix::fs::rmdir(&self.path);
    }
}
