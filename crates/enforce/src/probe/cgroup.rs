//! Control groups, version 2 only: a version 1 hierarchy cannot be delegated to an ordinary user (cgroups(7)).

use super::mountinfo::Mount;
use ringfence_plan::facts::CgroupFacts;
use ringfence_policy::HostPath;
use ringfence_sys::files::may_write;

/// The controllers that our limits need; one of them is enough.
const WANTED: [&str; 2] = ["memory", "pids"];

/// This process's own group in the version 2 hierarchy, as a path below its mount point; from `/proc/self/cgroup`.
pub fn own_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Where a child group can be made whose limits work.
pub(super) fn facts(mounts: &[Mount]) -> CgroupFacts {
    let text = ringfence_sys::files::read_generated("/proc/self/cgroup").unwrap_or_default();
    find(mounts, &String::from_utf8_lossy(&text))
}

fn find(mounts: &[Mount], own: &str) -> CgroupFacts {
    let none = |why: &str| CgroupFacts::None { why: why.to_owned() };
    let Some(mount) = mounts.iter().find(|m| m.fs_type == "cgroup2") else {
        return none("no cgroup v2 file system is mounted");
    };
    let Some(group) = own_group(own) else {
        return none("this process is in no cgroup v2 group");
    };
    // A mount of a part of the hierarchy shows only what lies below its root.
    let Ok(group) = HostPath::new(group) else { return none("this process's group has no path here") };
    let Ok(below) = group.as_path().strip_prefix(mount.root.as_path()) else {
        return none("this process's group lies outside of the mounted part of the hierarchy");
    };
    let Ok(own) = HostPath::new(mount.point.as_path().join(below)) else {
        return none("this process's group has no path here");
    };
    // A group with processes cannot give controllers to its children ("no internal processes"), so the own group serves
    // only where it gives some already; else its parent, next to the own group.
    let parent = own.parent().filter(|p| p.is_within(&mount.point));
    let mut seen_controllers = false;
    for folder in [Some(own), parent].into_iter().flatten() {
        let given = std::fs::read_to_string(folder.as_path().join("cgroup.subtree_control")).unwrap_or_default();
        let controllers: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        if !controllers.iter().any(|c| WANTED.contains(&c.as_str())) {
            continue;
        }
        seen_controllers = true;
        // clone3(2) with CLONE_INTO_CGROUP: write access to the common ancestor's cgroup.procs is demanded, too.
        if may_write(folder.as_path()) && may_write(&folder.as_path().join("cgroup.procs")) {
            return CgroupFacts::Delegated { path: folder, controllers };
        }
    }
    if seen_controllers {
        none("the group is not delegated to this user (systemd-run --user --scope -p Delegate=yes delegates one)")
    } else {
        none("the cgroup v2 hierarchy gives neither memory nor pids here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn mount_at(dir: &std::path::Path, root: &str) -> Vec<Mount> {
        vec![Mount {
            root: HostPath::new(root).unwrap(),
            point: HostPath::new(dir).unwrap(),
            read_only: false,
            device: "0:30".to_owned(),
            fs_type: "cgroup2".to_owned(),
        }]
    }

    #[test]
    fn the_parent_of_the_own_group_serves_when_it_gives_controllers() {
        let dir = tempfile::tempdir().unwrap();
        let slice = dir.path().join("user/app.slice");
        fs::create_dir_all(slice.join("shell.scope")).unwrap();
        fs::write(slice.join("shell.scope/cgroup.subtree_control"), "").unwrap();
        fs::write(slice.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        fs::write(slice.join("cgroup.procs"), "").unwrap();
        let found = find(&mount_at(dir.path(), "/"), "1:name=x:/y\n0::/user/app.slice/shell.scope\n");
        let CgroupFacts::Delegated { path, controllers } = found else { panic!("{found:?}") };
        assert_eq!(path.as_path(), slice);
        assert_eq!(controllers, ["memory", "pids"]);
    }

    #[test]
    fn hybrid_hierarchies_and_foreign_groups_are_no_delegation() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), "hugetlb\n").unwrap();
        assert!(matches!(find(&mount_at(dir.path(), "/"), "0::/a\n"), CgroupFacts::None { .. }));
        assert!(matches!(find(&mount_at(dir.path(), "/part"), "0::/a\n"), CgroupFacts::None { .. }));
        assert!(matches!(find(&[], "0::/a\n"), CgroupFacts::None { .. }));
        assert!(matches!(find(&mount_at(dir.path(), "/"), ""), CgroupFacts::None { .. }));
    }
}
