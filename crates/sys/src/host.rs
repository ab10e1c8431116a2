//! Questions to the kernel that change nothing and start no process.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Release and node name of uname(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uname {
    /// Such as `6.18.44-generic`.
    pub release: String,
    /// The host's name in this UTS namespace.
    pub nodename: String,
}

/// Asks uname(2).
pub fn uname() -> Uname {
    let name = rustix::system::uname();
    Uname {
        release: name.release().to_string_lossy().into_owned(),
        nodename: name.nodename().to_string_lossy().into_owned(),
    }
}

/// Effective user and group number.
pub fn effective_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The newest Landlock ABI of this kernel; 0 where Landlock is not built in, is disabled at boot, or is filtered.
pub fn landlock_abi() -> u32 {
    // landlock_create_ruleset(2): with no attribute, size 0 and this flag the call returns the version.
    const VERSION: libc::c_uint = 1;
    // SAFETY: a null attribute with size 0 is the documented form of the version query; nothing is written.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    u32::try_from(answer).unwrap_or(0)
}

/// A return action of a seccomp filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeccompAction {
    /// `SECCOMP_RET_ERRNO`.
    Errno,
    /// `SECCOMP_RET_KILL_PROCESS`.
    KillProcess,
    /// `SECCOMP_RET_USER_NOTIF`.
    UserNotification,
}

/// Whether filters may return this action (`SECCOMP_GET_ACTION_AVAIL`, Linux 4.14).
pub fn seccomp_action(action: SeccompAction) -> bool {
    let value: u32 = match action {
        SeccompAction::Errno => libc::SECCOMP_RET_ERRNO,
        SeccompAction::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
        SeccompAction::UserNotification => libc::SECCOMP_RET_USER_NOTIF,
    };
    // SAFETY: the kernel reads one u32 through the pointer, which outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const value) };
    answer == 0
}

/// What a container's own filter forbids, found with calls that do nothing where they are permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceCalls {
    /// unshare(2) with no flag is a no-op; the usual container filters refuse the call whatever its flags are.
    pub unshare: bool,
    /// clone3(2) with a structure of size 0 is `EINVAL`; those filters answer `ENOSYS` (or `EPERM`) for the call itself.
    pub clone3: bool,
}

/// Tries both calls without effect.
pub fn namespace_calls() -> NamespaceCalls {
    // SAFETY: no flag is set, so nothing is unshared.
    let unshare = unsafe { libc::unshare(0) } == 0;
    // SAFETY: size 0 is below the first version of the structure, so the kernel refuses before it reads the pointer.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0_usize) };
    let clone3 = answer == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    NamespaceCalls { unshare, clone3 }
}

/// Kills a process group whose leader this process started and has not waited for yet, so its number cannot have been
/// given to another.
///
/// # Errors
/// As kill(2).
pub fn kill_group(leader: u32) -> std::io::Result<()> {
    let pid = i32::try_from(leader).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    rustix::process::kill_process_group(pid, Signal::KILL)?;
    Ok(())
}

/// Waits until a descriptor can be read or its other end is closed. `false`: the time passed.
///
/// # Errors
/// As poll(2).
pub fn wait_readable(fd: BorrowedFd<'_>, at_most: Duration) -> std::io::Result<bool> {
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)];
    let time = rustix::event::Timespec::try_from(at_most).map_err(|_| Errno::INVAL)?;
    match rustix::event::poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        let name = uname();
        let on_disk = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(name.release, on_disk.trim());
        assert!(seccomp_action(SeccompAction::Errno));
    }

    #[test]
    fn groups_are_killed_whole() {
        use std::os::unix::process::CommandExt;
        let mut child =
            std::process::Command::new("/bin/sh").args(["-c", "sleep 60 & sleep 60"]).process_group(0).spawn().unwrap();
        kill_group(child.id()).unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success());
    }
}
