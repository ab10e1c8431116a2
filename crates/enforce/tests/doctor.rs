//! The examination of this host, in a process with one thread: the test harness has more.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

use ringfence_enforce::doctor::{self, Health, Need};
use ringfence_enforce::probe::{self, Asked};
use ringfence_enforce::store::Store;
use ringfence_plan::facts::Availability;
use ringfence_policy::HostPath;
use std::ffi::OsString;

fn main() {
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let home = HostPath::new(std::fs::canonicalize(dir.path()).unwrap()).unwrap();
    let mut env: Vec<(OsString, OsString)> = vec![("HOME".into(), home.as_path().into())];
    env.push(("PATH".into(), "/usr/bin:/bin".into()));
    let workspace = home.join("ws");
    let mut probed = probe::gather(&Asked { workspace: &workspace, env: &env, program: None }).unwrap();
    let store = Store::at(&env, &home);

    let report = doctor::examine(&probed.facts, &store, None);
    for row in &report.rows {
        println!("{:16} {:?} {} {}", row.name, row.status, row.because, row.remedy.as_deref().unwrap_or_default());
        assert_eq!(row.status == Health::Ok, row.remedy.is_none(), "{}: a remedy for what does not work", row.name);
    }
    println!("can build: {}, took {:?}", report.can_build, report.took);
    let status = |name: &str| report.rows.iter().find(|r| r.name == name).map(|r| r.status);

    // Nothing that was foretold to fail works. The reverse can happen: a chroot shows only when it is tried.
    let works = |name: &str| status(name) == Some(Health::Ok);
    assert!(probed.facts.userns == Availability::Yes || !works("namespaces"), "{:?}", probed.facts.userns);
    assert!(probed.facts.proc_mount == Availability::Yes || !works("fresh /proc"), "{:?}", probed.facts.proc_mount);
    assert_eq!(probed.facts.seccomp == Availability::Yes, status("seccomp") == Some(Health::Ok));
    assert_eq!(probed.facts.landlock_abi == 0, status("landlock") == Some(Health::Missing));

    // What the examination did in its children is gone.
    assert!(std::fs::read("/etc/passwd").is_ok());
    assert!(!std::path::Path::new("/tmp/.ringfence-doctor").exists());

    // A host that foretells less is not talked over: the kernel too old, the store in a place that is none.
    probed.facts.kernel = (4, 19);
    let blocked = [(OsString::from("XDG_STATE_HOME"), OsString::from("/proc/nowhere"))];
    let worse = doctor::examine(&probed.facts, &Store::at(&blocked, &home), Some("/usr/bin/ringfence".as_ref()));
    assert!(!worse.can_build);
    let missing: Vec<&str> =
        worse.rows.iter().filter(|r| r.need == Need::Required && r.status == Health::Missing).map(|r| r.name).collect();
    assert!(missing.contains(&"kernel") && missing.contains(&"own files"), "{missing:?}");
    assert!(worse.apparmor_profile.is_none());
    assert!(doctor::apparmor_profile("/usr/bin/ringfence".as_ref()).contains("userns,"));
    println!("test doctor ... ok");
}
