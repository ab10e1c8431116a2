//! New processes: `clone3(2)` with namespaces, plain forks, and the id maps of a user namespace.

use crate::{Context, Errno, SysError, failed};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::process::Pid;

/// A namespace to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// Users and groups.
    User,
    /// Mounts.
    Mount,
    /// Processes.
    Pid,
    /// Network.
    Net,
    /// System V and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// Control groups.
    Cgroup,
}

impl Namespace {
    fn flag(self) -> u64 {
        let flag = match self {
            Self::User => libc::CLONE_NEWUSER,
            Self::Mount => libc::CLONE_NEWNS,
            Self::Pid => libc::CLONE_NEWPID,
            Self::Net => libc::CLONE_NEWNET,
            Self::Ipc => libc::CLONE_NEWIPC,
            Self::Uts => libc::CLONE_NEWUTS,
            Self::Cgroup => libc::CLONE_NEWCGROUP,
        };
        u64::from(flag.cast_unsigned())
    }
}

/// A process that was made, as its parent sees it.
#[derive(Debug)]
pub struct Child {
    /// Its number in the parent's process namespace.
    pub pid: Pid,
    /// Its descriptor.
    pub pidfd: OwnedFd,
}

/// `struct clone_args` of clone3(2), version 2 (Linux 5.7).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Ends the process when a panic unwinds out of a child's body: the frames above belong to the parent.
struct NeverUnwind;

impl Drop for NeverUnwind {
    fn drop(&mut self) {
        crate::process::exit_now(125);
    }
}

/// Makes a process in new namespaces that runs `body` and ends with the status that it returns. It is a copy of this one (no shared memory), so
/// `body` may allocate: this function refuses to run in a process with more than one thread, where a lock of the
/// allocator could be held by a thread that the copy does not have.
///
/// # Errors
/// More than one thread (`EBUSY`), or clone3(2) failed.
pub fn spawn(
    namespaces: &[Namespace],
    cgroup: Option<BorrowedFd<'_>>,
    body: impl FnOnce() -> i32,
) -> Result<Child, SysError> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut flags = namespaces.iter().fold(0, |all, ns| all | ns.flag());
    let mut args = CloneArgs::default();
    if let Some(group) = cgroup {
        flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::try_from(group.as_raw_fd()).unwrap_or(0);
    }
    args.flags = flags;
    clone3(args, body)
}

/// Makes a copy of this process that runs `body` and ends with the status that it returns. The rule of [`spawn`] about threads holds.
///
/// # Errors
/// More than one thread (`EBUSY`), or clone3(2) failed.
pub fn fork(body: impl FnOnce() -> i32) -> Result<Child, SysError> {
    clone3(CloneArgs::default(), body)
}

fn clone3(mut args: CloneArgs, body: impl FnOnce() -> i32) -> Result<Child, SysError> {
    if !single_threaded()? {
        return Err(SysError::new("clone3", "from a process with several threads", Errno::BUSY));
    }
    let mut pidfd: i32 = -1;
    args.flags |= u64::from(libc::CLONE_PIDFD.cast_unsigned());
    args.pidfd = std::ptr::from_mut(&mut pidfd).expose_provenance() as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: clone3(2) with a null stack and without CLONE_VM copies the address space like fork(2); both pointers are
    // valid for the call. The process has one thread (checked above), so no lock is held by a thread that the copy
    // lacks. The child never returns from this function.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) };
    match pid {
        0 => {
            let _guard = NeverUnwind;
            crate::process::exit_now(body())
        }
        pid if pid > 0 => {
            // SAFETY: CLONE_PIDFD makes the kernel store a new descriptor of ours there (clone3(2)).
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.map(|pid| Child { pid, pidfd }).ok_or_else(|| SysError::new("clone3", "", Errno::RANGE))
        }
        _ => Err(failed("clone3", format!("flags {:#x}", args.flags))),
    }
}

/// Whether this process has one thread: `/proc/self/task` has one entry, so its link count is 3 (proc_pid_task(5)).
///
/// # Errors
/// There is no `/proc`.
pub fn single_threaded() -> Result<bool, SysError> {
    let stat = rustix::fs::stat("/proc/self/task").at("stat", || "\"/proc/self/task\"".to_owned())?;
    Ok(stat.st_nlink <= 3)
}

/// One line of an id map (user_namespaces(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// First number inside.
    pub inside: u32,
    /// First number in the parent namespace.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// An id map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdMap {
    /// `uid_map`.
    Users,
    /// `gid_map`.
    Groups,
}

impl IdMap {
    fn file(self) -> &'static str {
        match self {
            Self::Users => "uid_map",
            Self::Groups => "gid_map",
        }
    }
}

/// The numbers that exist in this process's own user namespace.
///
/// # Errors
/// The map cannot be read.
pub fn own_ids(map: IdMap) -> Result<Vec<IdRange>, SysError> {
    let path = format!("/proc/self/{}", map.file());
    let text = crate::file::read_text(&path)?;
    let line = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (Some(Ok(inside)), Some(Ok(outside)), Some(Ok(count))) = (numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        Some(IdRange { inside, outside, count })
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Whose map is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapOf {
    /// This process's own.
    Own,
    /// A child's.
    Child(Pid),
}

impl std::fmt::Display for MapOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own => f.write_str("self"),
            Self::Child(pid) => write!(f, "{}", pid.as_raw_nonzero()),
        }
    }
}

/// Writes an id map; it takes one write(2) and can be done once.
///
/// # Errors
/// The kernel refuses the map.
pub fn write_ids(of: MapOf, map: IdMap, ranges: &[IdRange]) -> Result<(), SysError> {
    let mut text = String::new();
    for range in ranges {
        text.push_str(&format!("{} {} {}\n", range.inside, range.outside, range.count));
    }
    crate::file::write_existing(format!("/proc/{of}/{}", map.file()), text.as_bytes())
}

/// Gives up setgroups(2) for the namespace, which the kernel demands before an unprivileged process may write a group map.
///
/// # Errors
/// The kernel refuses.
pub fn deny_setgroups(of: MapOf) -> Result<(), SysError> {
    crate::file::write_existing(format!("/proc/{of}/setgroups"), b"deny")
}

/// Drops all supplementary groups.
///
/// # Errors
/// No `CAP_SETGID`, or setgroups(2) was given up.
pub fn drop_groups() -> Result<(), SysError> {
    rustix::thread::set_thread_groups(&[]).at("setgroups", || "0".to_owned())
}
