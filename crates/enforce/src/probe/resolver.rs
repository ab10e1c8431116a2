//! The files that decide how names are resolved, where they really are: the sandbox covers the file, not the link to it.

use ringfence_plan::facts::ResolverFiles;
use ringfence_policy::HostPath;
use std::path::Path;

pub(super) fn files(hostname: String) -> ResolverFiles {
    ResolverFiles {
        resolv_conf: real("/etc/resolv.conf"),
        hosts: real("/etc/hosts"),
        nsswitch: real("/etc/nsswitch.conf"),
        nsswitch_text: std::fs::read_to_string("/etc/nsswitch.conf").ok(),
        hostname,
    }
}

fn real(path: impl AsRef<Path>) -> Option<HostPath> {
    HostPath::new(ringfence_sys::files::real_path(path.as_ref()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_absence_is_a_fact() {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::write(base.join("stub"), "").unwrap();
        std::os::unix::fs::symlink("stub", base.join("resolv.conf")).unwrap();
        assert_eq!(real(base.join("resolv.conf")).unwrap().as_path(), base.join("stub"));
        assert_eq!(real(base.join("missing")), None);
    }
}
