//! Gathers [`HostFacts`]: what this host can do and where the user's things are.
//!
//! Runs on every launch, so it starts no process, follows no network, and reads a handful of small files (about a quarter
//! of a millisecond in all). What only a real try can tell is left to the executor, whose error is the final word, and to
//! [`crate::doctor`], which tries in children.

mod cgroup;
mod git;
mod home_config;
mod kernel;
mod mountinfo;
mod resolver;
mod secrets;
mod sockets;
mod toolchains;
mod user;
mod view;

pub use cgroup::own_group;
pub use kernel::{AppArmor, Sysctls};
pub use mountinfo::{Mount, parse as parse_mountinfo};
pub use user::Account;
pub use view::RealView;

use ringfence_plan::HostFacts;
use ringfence_policy::HostPath;
use std::ffi::{OsStr, OsString};
use std::io;

/// What the probe needs to know of the run.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The workspace, after following symlinks.
    pub workspace: &'a HostPath,
    /// The launcher's environment.
    pub env: &'a [(OsString, OsString)],
    /// The program, where it was named by a path rather than looked up in `PATH`.
    pub program: Option<&'a HostPath>,
}

/// The facts, and what else was learnt on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// The facts that the plan is made from.
    pub facts: HostFacts,
    /// Things that were found and not used, for `--verbose` and `explain`.
    pub notes: Vec<Note>,
    /// Home folders of other accounts of people, and the account's own where `HOME` names another: their credential
    /// stores deserve the same rules.
    pub other_homes: Vec<HostPath>,
}

/// Something that was found and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What, and what became of it.
    pub text: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Why the host cannot be described. Nothing has been done when it is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// `/proc` is not mounted.
    #[error("/proc is not mounted")]
    NoProc,
    /// A file of `/proc` cannot be read.
    #[error("cannot read `{file}`")]
    Proc {
        /// Which.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No home folder is known.
    #[error("no home folder: HOME is not set and the password database has none for user {uid}")]
    NoHome {
        /// The user's number.
        uid: u32,
    },
    /// `HOME` is not an absolute path.
    #[error("HOME is `{}`, which is not an absolute path", .value.display())]
    HomeNotAbsolute {
        /// Its value.
        value: OsString,
    },
    /// The home folder is not there or is no folder.
    #[error("the home folder `{home}` cannot be used")]
    HomeUnusable {
        /// The folder.
        home: HostPath,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ProbeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProc | Self::Proc { .. } => "mount it: mount -t proc proc /proc",
            Self::NoHome { .. } | Self::HomeNotAbsolute { .. } | Self::HomeUnusable { .. } => {
                "set HOME to a folder that exists and is yours"
            }
        }
    }
}

/// A view of environment variables. The last of several with one name wins, as in a shell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Env<'a>(pub(crate) &'a [(OsString, OsString)]);

impl<'a> Env<'a> {
    /// The value, unless it is unset or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&'a OsStr> {
        let found = self.0.iter().rev().find(|(n, _)| n == name)?;
        (!found.1.is_empty()).then_some(found.1.as_os_str())
    }

    /// The value as an absolute path.
    pub(crate) fn path(&self, name: &str) -> Option<HostPath> {
        HostPath::new(self.get(name)?).ok()
    }

    /// The value as text, where it is UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.to_str()
    }
}

/// Gathers everything.
///
/// # Errors
/// Only what no run can do without: `/proc` and a home folder. Everything else is a fact, also when it is missing.
pub fn gather(asked: &Asked<'_>) -> Result<Probed, ProbeError> {
    let env = Env(asked.env);
    let uname = ringfence_sys::host::uname();
    let (uid, gid) = ringfence_sys::host::effective_ids();
    let mounts = mountinfo::read()?;
    let accounts = user::accounts();
    let home = user::home(env, &accounts, uid)?;
    let mut notes = Vec::new();

    let sysctls = Sysctls::read();
    let apparmor = AppArmor::read();
    let calls = ringfence_sys::host::namespace_calls();
    let mut shown = toolchains::find(asked, env, &home);
    home_config::find(env, &home, asked.workspace, &mut shown, &mut notes);

    let facts = HostFacts {
        kernel: kernel::version(&uname.release),
        landlock_abi: ringfence_sys::host::landlock_abi(),
        userns: kernel::userns(&kernel::UsernsClues {
            uid,
            sysctls: &sysctls,
            apparmor: &apparmor,
            calls,
            mounts: &mounts,
        }),
        proc_mount: kernel::proc_mount(&mounts),
        seccomp: kernel::seccomp(),
        cgroup: cgroup::facts(&mounts),
        uid,
        gid,
        user_name: accounts.iter().find(|a| a.uid == uid).map(|a| a.name.clone()),
        toolchains: shown,
        git_dirs: git::git_dirs(asked.workspace, &home, uid, &mut notes),
        resolver: resolver::files(uname.nodename),
        unix_sockets: sockets::bound(),
        mounts: mounts.into_iter().map(mountinfo::Mount::into_fact).collect(),
        home,
    };
    let other_homes = user::other_homes(&accounts, &facts.home, uid);
    Ok(Probed { facts, notes, other_homes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_variable_of_a_name_wins_and_empty_is_unset() {
        let vars =
            [("A", "1"), ("A", "2"), ("B", ""), ("C", "rel")].map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let env = Env(&vars);
        assert_eq!(env.text("A"), Some("2"));
        assert_eq!(env.get("B"), None);
        assert_eq!(env.path("C"), None);
    }

    #[test]
    fn this_host_is_described_without_a_process() {
        let env: Vec<_> = std::env::vars_os().collect();
        let workspace = HostPath::new(std::env::current_dir().unwrap()).unwrap();
        let asked = Asked { workspace: &workspace, env: &env, program: None };
        let probed = gather(&asked).unwrap();
        assert!(probed.facts.kernel >= (4, 0));
        assert!(probed.facts.mounts.iter().any(|mount| mount.point == HostPath::root() && mount.device.contains(':')));
        assert!(probed.facts.home.as_path().is_dir());
        let again = gather(&asked).unwrap();
        assert_eq!(again.facts.toolchains, probed.facts.toolchains);
        assert!(probed.facts.toolchains.iter().all(|t| t.path.is_within(&probed.facts.home)));
        assert!(probed.facts.toolchains.iter().all(|t| t.path != probed.facts.home));
    }

    #[test]
    fn the_launch_path_stays_cheap() {
        let env: Vec<_> = std::env::vars_os().collect();
        let workspace = HostPath::new("/usr").unwrap();
        let asked = Asked { workspace: &workspace, env: &env, program: None };
        let times = (0..50).map(|_| {
            let start = std::time::Instant::now();
            gather(&asked).unwrap();
            start.elapsed()
        });
        let best = times.min().unwrap();
        println!("gather: {best:?}");
        // A process or a question to the network would cost more, also in a build without optimisation.
        assert!(best < std::time::Duration::from_millis(5), "{best:?}");
    }
}
