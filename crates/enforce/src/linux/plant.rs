//! What the launcher plants outside for the proof, and whether anything arrived there.

use super::error::EnforceError;
use super::message::Plants;
use super::prove;
use ringfence_plan::proof::{Attempt, DECOY, ProofPlan};
use ringfence_policy::HostPath;
use ringfence_sys::attempt::{self, UnixPlace};
use ringfence_sys::{Errno, SysError, file, netns, process};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Sockets on the host that nothing inside may reach; closed and removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// With the number of the row that it belongs to.
    sockets: Vec<(usize, OwnedFd)>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Where they are.
    pub(crate) places: Plants,
}

impl Planted {
    /// Plants what the rows need, on ports that mean nothing inside.
    pub(crate) fn for_rows(plan: &ProofPlan, taken: &[u16]) -> Result<Self, EnforceError> {
        let mut out = Self::default();
        out.places.launcher = process::own_pid().as_raw_nonzero().get();
        for (number, row) in plan.rows.iter().enumerate() {
            let fd = match &row.attempt {
                Attempt::HostTcp => out.tcp(taken),
                Attempt::HostUdp => out.udp(taken),
                Attempt::HostAbstract => out.abstract_socket(),
                Attempt::HostUnix(path) => out.unix(path),
                Attempt::Read(path) if path.file_name().is_some_and(|name| name == DECOY) => {
                    plant_decoy(path)?;
                    continue;
                }
                _ => continue,
            };
            let fd = fd.map_err(|source| EnforceError::Launch { what: "listen outside for the proof", source })?;
            out.sockets.push((number, fd));
        }
        debug_assert_eq!(out.places.unix.len(), plan.rows.iter().filter(|r| prove::needs_unix_plant(r)).count());
        Ok(out)
    }

    fn tcp(&mut self, taken: &[u16]) -> Result<OwnedFd, SysError> {
        let mut fd = netns::listen(netns::loopback_v4(0))?;
        while taken.contains(&netns::local_address(&fd)?.port()) {
            fd = netns::listen(netns::loopback_v4(0))?;
        }
        self.places.tcp = netns::local_address(&fd)?.port();
        Ok(fd)
    }

    fn udp(&mut self, taken: &[u16]) -> Result<OwnedFd, SysError> {
        let mut fd = netns::bind_udp(netns::loopback_v4(0))?;
        while taken.contains(&netns::local_address(&fd)?.port()) {
            fd = netns::bind_udp(netns::loopback_v4(0))?;
        }
        self.places.udp = netns::local_address(&fd)?.port();
        Ok(fd)
    }

    fn abstract_socket(&mut self) -> Result<OwnedFd, SysError> {
        let name = format!("ringfence-proof-{}", self.places.launcher).into_bytes();
        let fd = attempt::listen_unix(UnixPlace::Abstract(&name))
            .map_err(|errno| SysError::new("bind", "abstract socket", errno))?;
        self.places.abstract_name = name;
        Ok(fd)
    }

    /// Several launchers share the folder, so the name carries the process number; one that is left over from a launcher
    /// that was killed is replaced.
    fn unix(&mut self, path: &HostPath) -> Result<OwnedFd, SysError> {
        let mut name = path.file_name().unwrap_or_default();
        name.push(format!(".{}", self.places.launcher));
        let parent = path.parent().unwrap_or_else(HostPath::root);
        self.make_dirs(parent.as_path())?;
        let place = parent.join(&name).as_path().to_owned();
        let fd = match bind_at(&place) {
            Err(Errno::ADDRINUSE) => {
                file::remove(&place)?;
                bind_at(&place)
            }
            done => done,
        }
        .map_err(|errno| SysError::new("bind", format!("{place:?}"), errno))?;
        self.files.push(place.clone());
        self.places.unix.push(place);
        Ok(fd)
    }

    fn make_dirs(&mut self, path: &Path) -> Result<(), SysError> {
        if file::exists(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make_dirs(parent)?;
        }
        if file::make_dir(path, 0o700)? {
            self.folders.push(path.to_owned());
        }
        Ok(())
    }

    /// The first row of which something arrived.
    pub(crate) fn reached(&self) -> Option<usize> {
        self.sockets.iter().find(|(_, fd)| attempt::is_readable(fd)).map(|(row, _)| *row)
    }
}

fn bind_at(path: &Path) -> Result<OwnedFd, Errno> {
    at_unix_path(path, |place| attempt::listen_unix(UnixPlace::Path(place)))
}

/// A file that must not be read inside. It stays for the next run, in a folder of ours, because several launchers share it.
fn plant_decoy(path: &HostPath) -> Result<(), EnforceError> {
    if file::exists(path.as_path()) {
        return Ok(());
    }
    let made = path.parent().zip(path.file_name()).map(|(parent, name)| {
        let dir = file::open_path(parent.as_path())?;
        match file::make_file_at(dir, Path::new(&name), 0o600) {
            Err(error) if error.errno != Errno::EXIST => Err(error),
            _ => Ok(()),
        }
    });
    made.unwrap_or(Ok(())).map_err(|source| EnforceError::Prepare { path: path.as_path().to_owned(), source })
}

/// Goes through the folder's descriptor when the path is longer than the 107 bytes that an address holds (unix(7)).
pub(crate) fn at_unix_path<T>(path: &Path, call: impl Fn(&Path) -> Result<T, Errno>) -> Result<T, Errno> {
    match call(path) {
        Err(Errno::NAMETOOLONG) => {}
        done => return done,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let dir = file::open_path(parent).map_err(|e| e.errno)?;
    call(&PathBuf::from(format!("/proc/self/fd/{}", attempt::number(&dir))).join(name))
}

impl Drop for Planted {
    fn drop(&mut self) {
        for path in &self.files {
            let _ = file::remove(path);
        }
        for path in self.folders.iter().rev() {
            let _ = file::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_plan::proof::Row;

    #[test]
    fn what_arrives_is_seen_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let long = "d".repeat(100);
        let socket = HostPath::new(dir.path().join(&long).join("proof")).unwrap();
        let row = |attempt| Row { name: "r".to_owned(), attempt, must_work: false };
        let rows = vec![row(Attempt::HostTcp), row(Attempt::HostUdp), row(Attempt::HostUnix(socket))];
        let planted = Planted::for_rows(&ProofPlan { enabled: true, rows }, &[]).unwrap();
        assert_eq!(planted.reached(), None);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", ("127.0.0.1", planted.places.udp)).unwrap();
        assert_eq!(planted.reached(), Some(1));
        assert!(planted.places.unix[0].exists());
        drop(planted);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
