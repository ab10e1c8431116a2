//! Hosts on which the walls cannot be built: the reason and the remedy are said, and nothing is started.

use crate::scene::{Scene, Who, everybody, is_root, skipped};

#[test]
fn user_namespaces_forbidden() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let outcome = scene.script(
            "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$RINGFENCE\" run -- sh -c \"echo ran\"'",
        );
        outcome.refused(125, &["RF0201", "user namespaces"]);
        scene.untouched();
        // Control: the same namespace without the limit.
        let control = scene.script("exec unshare -Ur sh -c 'exec \"$RINGFENCE\" run -- sh -c \"echo ran\"'");
        assert_eq!(control.stdout, "ran\n", "{control:#?}");
    }
}

#[test]
fn no_proc() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let outcome = scene.script(
            "exec unshare -Urm sh -c 'mount -t tmpfs none /proc && exec \"$RINGFENCE\" run -- sh -c \"echo ran\"'",
        );
        outcome.refused(125, &["/proc"]);
    }
}

#[test]
fn a_full_disk() {
    if !is_root() {
        return skipped("needs root to mount a small file system");
    }
    for who in [Who::Root, Who::User] {
        let scene = Scene::new(who);
        let owner = if who == Who::Root { "0" } else { "64321" };
        let home = scene.home();
        let home = home.to_str().unwrap();
        // Mounted by root; the program runs as the user of the scene.
        let mut command = std::process::Command::new("unshare");
        command.arg("-m").arg("bash").arg("-c").arg(format!(
            "mount -t tmpfs -o size=8k,uid={owner},gid={owner} none {home} && head -c 16k /dev/zero > {home}/full; cd {work}
             exec setpriv --reuid {owner} --regid {owner} --clear-groups env HOME={home} {program} run -- sh -c 'echo ran'",
            work = scene.work().display(),
            program = crate::scene::program_path().display(),
        ));
        scene.finish(command).refused(125, &["No space left", "free space"]);
    }
}

#[test]
fn a_home_that_cannot_be_written() {
    let scene = Scene::new(Who::User);
    if !is_root() {
        return skipped("needs root to give the home folder to somebody else");
    }
    std::os::unix::fs::chown(scene.home(), Some(0), Some(0)).unwrap();
    scene
        .ringfence(["run", "--", "sh", "-c", "echo ran"])
        .refused(125, &["RF0005", "Permission denied", "XDG_STATE_HOME"]);
    // The remedy that it names.
    let mut command = scene.command(crate::scene::program_path());
    let folder = scene.top.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    scene.give(&folder);
    command.args(["run", "--", "true"]).env("XDG_DATA_HOME", &folder).env("XDG_STATE_HOME", &folder);
    scene.finish(command).ok();
}
