//! What the kernel and its settings permit.

use super::mountinfo::Mount;
use ringfence_plan::facts::Availability;
use ringfence_policy::HostPath;
use ringfence_sys::host::{NamespaceCalls, SeccompAction, seccomp_action};
use std::path::Path;

/// Major and minor number of a release such as `6.8.0-45-generic`; `(0, 0)` when it has none.
pub(super) fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn read_text(path: &str) -> Option<String> {
    String::from_utf8(ringfence_sys::files::read_generated(path).ok()?).ok()
}

/// Settings that decide over user namespaces. `None`: this kernel has no such setting, or it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sysctls {
    /// `user.max_user_namespaces` (namespaces(7)).
    pub max_user_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone`, a patch of Debian and others.
    pub unprivileged_userns_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, Ubuntu 23.10 and later.
    pub apparmor_restrict_unprivileged_userns: Option<u64>,
}

impl Sysctls {
    /// Reads them.
    pub fn read() -> Self {
        let read = |path: &str| read_text(path)?.trim().parse().ok();
        Self {
            max_user_namespaces: read("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: read("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restrict_unprivileged_userns: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

/// The AppArmor profile of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppArmor {
    /// AppArmor is not there.
    Absent,
    /// No profile.
    Unconfined,
    /// This profile, which decides by itself whether user namespaces are allowed.
    Profile(String),
}

impl AppArmor {
    /// Reads it. The old place, `attr/current`, belongs to whichever security module is first, so it is not asked.
    pub fn read() -> Self {
        match read_text("/proc/self/attr/apparmor/current") {
            None => Self::Absent,
            Some(text) if text.trim() == "unconfined" => Self::Unconfined,
            Some(text) => Self::Profile(text.trim().to_owned()),
        }
    }
}

/// Everything that is looked at to foretell whether a user namespace can be made.
#[derive(Debug)]
pub(super) struct UsernsClues<'a> {
    pub(super) uid: u32,
    pub(super) sysctls: &'a Sysctls,
    pub(super) apparmor: &'a AppArmor,
    pub(super) calls: NamespaceCalls,
    pub(super) mounts: &'a [Mount],
}

/// Whether a user namespace with full capabilities inside can be made, without making one.
pub(super) fn userns(clues: &UsernsClues<'_>) -> Availability {
    let no = |why: &str, remedy: &str| Availability::No { why: why.to_owned(), remedy: remedy.to_owned() };
    if !clues.calls.unshare || !clues.calls.clone3 {
        return no(
            "this container's system call filter refuses to make namespaces",
            "start the container with --security-opt seccomp=unconfined, or with a profile that allows clone3, unshare and mount",
        );
    }
    match clues.sysctls.max_user_namespaces {
        Some(0) => return no("user.max_user_namespaces = 0", "sudo sysctl -w user.max_user_namespaces=15000"),
        None if clues.mounts.iter().any(|m| m.fs_type == "proc") => {
            return no("this kernel has no user namespaces (CONFIG_USER_NS)", "boot a kernel with CONFIG_USER_NS=y");
        }
        _ => {}
    }
    // Id maps are written through /proc.
    let proc = clues.mounts.iter().rfind(|m| m.point.as_path() == Path::new("/proc"));
    if proc.is_some_and(|m| m.read_only) {
        return no(
            "/proc is read-only, so the id maps of a user namespace cannot be written",
            "mount -o remount,rw /proc",
        );
    }
    // user_namespaces(7): EPERM in a chroot. One that is no mount point is seen here; another only by the try.
    if !clues.mounts.iter().any(|m| m.point == HostPath::root()) {
        return no(
            "this process runs in a chroot, where the kernel makes no user namespace",
            "make the root folder a mount: mount --bind DIR DIR before chroot DIR",
        );
    }
    if clues.uid == 0 {
        return Availability::Yes;
    }
    if clues.sysctls.unprivileged_userns_clone == Some(0) {
        return no("kernel.unprivileged_userns_clone = 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1");
    }
    // With the restriction an unconfined process does get a namespace, but one without capabilities, so that the first
    // mount in it fails. A process that a profile with `userns,` confines is free of it.
    if clues.sysctls.apparmor_restrict_unprivileged_userns == Some(1) && *clues.apparmor == AppArmor::Unconfined {
        return no(
            "kernel.apparmor_restrict_unprivileged_userns = 1 (Ubuntu 24.04 and later)",
            "install the AppArmor profile that `ringfence doctor` prints, or: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    Availability::Yes
}

/// Whether a fresh `/proc` can be mounted in a new user namespace. The kernel demands that an existing one is fully
/// visible there (`mount_too_revealing()`): no mount may lie over a part of it, but for the empty folders that it keeps
/// for that purpose, and it may not be read-only.
pub(super) fn proc_mount(mounts: &[Mount]) -> Availability {
    let Ok(proc_root) = HostPath::new("/proc") else { return Availability::Yes };
    let procs: Vec<&Mount> = mounts.iter().filter(|m| m.fs_type == "proc" && m.root == HostPath::root()).collect();
    if procs.is_empty() {
        return Availability::No {
            why: "/proc is not mounted".to_owned(),
            remedy: "mount -t proc proc /proc".to_owned(),
        };
    }
    let fully_visible = |at: &Mount| {
        !at.read_only
            && !mounts.iter().any(|m| {
                m.point.is_within(&at.point)
                    && m.point != at.point
                    && !["sys/fs/binfmt_misc", "fs/nfsd"]
                        .iter()
                        .any(|empty| m.point.as_path() == at.point.as_path().join(empty))
            })
    };
    if procs.iter().any(|m| fully_visible(m)) {
        return Availability::Yes;
    }
    let covered = mounts.iter().find(|m| m.point.is_within(&proc_root) && m.point != proc_root);
    Availability::No {
        why: match covered {
            Some(mount) => format!("`{}` is mounted over a part of /proc, as container engines do", mount.point),
            None => "/proc is mounted read-only".to_owned(),
        },
        remedy: "start the container with --security-opt systempaths=unconfined (podman: unmask=ALL)".to_owned(),
    }
}

/// Whether filters can be installed, kill, refuse, and notify.
pub(super) fn seccomp() -> Availability {
    let all = [SeccompAction::Errno, SeccompAction::KillProcess, SeccompAction::UserNotification];
    if all.into_iter().all(seccomp_action) {
        return Availability::Yes;
    }
    let (why, remedy) = if seccomp_action(SeccompAction::Errno) {
        ("this kernel's seccomp filters cannot notify (Linux 5.0)", "boot a newer kernel")
    } else {
        (
            "seccomp filters are not available",
            "boot a kernel with CONFIG_SECCOMP_FILTER=y; in gVisor and old containers there is none",
        )
    };
    Availability::No { why: why.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::mountinfo::parse;
    use super::*;

    const PLAIN: &[u8] = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:4 / /proc rw - proc proc rw\n\
        3 2 0:5 / /proc/sys/fs/binfmt_misc rw - binfmt_misc b rw\n";
    const DOCKER: &[u8] = b"1 0 0:9 / / rw - overlay o rw\n2 1 0:4 / /proc rw - proc proc rw\n\
        3 2 0:4 /sys /proc/sys ro - proc proc rw\n4 2 0:8 / /proc/kcore rw - tmpfs t rw\n";

    fn clues<'a>(uid: u32, sysctls: &'a Sysctls, apparmor: &'a AppArmor, mounts: &'a [Mount]) -> UsernsClues<'a> {
        UsernsClues { uid, sysctls, apparmor, calls: NamespaceCalls { unshare: true, clone3: true }, mounts }
    }

    fn why(a: &Availability) -> &str {
        match a {
            Availability::Yes => "yes",
            Availability::No { why, .. } => why,
        }
    }

    #[test]
    fn versions() {
        assert_eq!(version("6.18.44-fc-v595"), (6, 18));
        assert_eq!(version("5.15.0-1-amd64"), (5, 15));
        assert_eq!(version("7"), (7, 0));
        assert_eq!(version(""), (0, 0));
    }

    #[test]
    fn each_obstacle_to_a_user_namespace_is_recognised() {
        let mounts = parse(PLAIN);
        let good = Sysctls { max_user_namespaces: Some(100), ..Sysctls::default() };
        let none = AppArmor::Absent;
        assert_eq!(userns(&clues(1000, &good, &none, &mounts)), Availability::Yes);

        let zero = Sysctls { max_user_namespaces: Some(0), ..good };
        assert!(why(&userns(&clues(0, &zero, &none, &mounts))).contains("max_user_namespaces"));

        let debian = Sysctls { unprivileged_userns_clone: Some(0), ..good };
        assert!(why(&userns(&clues(1000, &debian, &none, &mounts))).contains("userns_clone"));
        assert_eq!(userns(&clues(0, &debian, &none, &mounts)), Availability::Yes);

        let ubuntu = Sysctls { apparmor_restrict_unprivileged_userns: Some(1), ..good };
        let unconfined = AppArmor::Unconfined;
        assert!(why(&userns(&clues(1000, &ubuntu, &unconfined, &mounts))).contains("apparmor"));
        assert_eq!(userns(&clues(0, &ubuntu, &unconfined, &mounts)), Availability::Yes);
        let profile = AppArmor::Profile("ringfence (unconfined)".to_owned());
        assert_eq!(userns(&clues(1000, &ubuntu, &profile, &mounts)), Availability::Yes);

        let mut filtered = clues(0, &good, &none, &mounts);
        filtered.calls.clone3 = false;
        assert!(why(&userns(&filtered)).contains("filter"));

        let chroot = parse(b"2 1 0:4 / /proc rw - proc proc rw\n");
        assert!(why(&userns(&clues(0, &good, &none, &chroot))).contains("chroot"));

        let read_only = parse(b"1 0 8:1 / / rw - ext4 d rw\n2 1 0:4 / /proc ro - proc proc rw\n");
        assert!(why(&userns(&clues(0, &good, &none, &read_only))).contains("id maps"));

        let old = Sysctls::default();
        assert!(why(&userns(&clues(0, &old, &none, &mounts))).contains("CONFIG_USER_NS"));
    }

    #[test]
    fn a_covered_proc_is_recognised() {
        assert_eq!(proc_mount(&parse(PLAIN)), Availability::Yes);
        assert!(why(&proc_mount(&parse(DOCKER))).contains("/proc/sys"));
        assert!(why(&proc_mount(&parse(b"1 0 8:1 / / rw - ext4 d rw\n"))).contains("not mounted"));
        assert!(
            why(&proc_mount(&parse(b"1 0 8:1 / / rw - ext4 d rw\n2 1 0:4 / /proc ro - proc p rw\n")))
                .contains("read-only")
        );
    }
}
