//! Arguments, programs, policies and workspaces that cannot be used: each has its diagnostic, and nothing is started.

use crate::scene::{Scene, Who, everybody, is_root};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;

/// A command that leaves a trace when it was run after all.
const TRACE: [&str; 4] = ["--", "sh", "-c", "echo ran > trace"];

fn refused(scene: &Scene, flags: &[&str], status: i32, parts: &[&str]) {
    let outcome = scene.ringfence([&["run"], flags, &TRACE].concat());
    outcome.refused(status, parts);
    assert!(!scene.work().join("trace").exists(), "the command ran");
    scene.untouched();
}

#[test]
fn the_trace_is_left_when_nothing_is_wrong() {
    for who in everybody() {
        let scene = Scene::new(*who);
        scene.ringfence([&["run"], &TRACE[..]].concat()).ok();
        assert!(scene.work().join("trace").exists());
    }
}

#[test]
fn a_program_that_is_not_there_is_127() {
    for who in everybody() {
        let scene = Scene::new(*who);
        for program in ["no-such-program", "./no-such-program", "/no/such/program"] {
            scene.ringfence(["run", "--", program]).refused(127, &["RF0003", program]);
        }
        scene.ringfence(["run", "--", ""]).refused(127, &["RF0003"]);
    }
}

#[test]
fn a_program_that_cannot_be_executed_is_126() {
    for who in everybody() {
        let scene = Scene::new(*who);
        scene.file(&scene.work().join("text"), "no program");
        std::fs::create_dir(scene.work().join("folder")).unwrap();
        for program in ["./text", "./folder"] {
            scene.ringfence(["run", "--", program]).refused(126, &["RF0004", program]);
        }
    }
}

#[test]
fn arguments_that_are_wrong_are_125() {
    let scene = Scene::new(everybody()[0]);
    for args in [
        &["run"][..],
        &["run", "--no-such-flag", "--", "true"],
        &["run", "--publish", "0", "--", "true"],
        &["run", "--publish", "65536", "--", "true"],
        &["run", "--allow-wide-workspace", "--", "true"],
        &["exec"],
        &["no-such-verb"],
        &[],
    ] {
        let outcome = scene.ringfence(args);
        assert_eq!(outcome.status, 125, "{args:?}: {outcome:#?}");
        assert_eq!(outcome.stdout, "", "{args:?}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
    }
    scene.untouched();
}

#[test]
fn flags_whose_values_are_wrong_are_told_all_at_once() {
    let scene = Scene::new(everybody()[0]);
    refused(
        &scene,
        &["--allow-host", "https://a.test/", "--allow-host", "*", "--memory", "lots", "--wall", "5"],
        125,
        &["RF0108", "RF0109", "RF0116", "RF0117", "--allow-host"],
    );
}

#[test]
fn a_policy_that_cannot_be_read_stops_the_run() {
    for who in everybody() {
        let scene = Scene::new(*who);
        refused(&scene, &["--policy", "missing.toml"], 125, &["RF0001", "missing.toml", "No such file"]);
        refused(&scene, &["--policy", "."], 125, &["RF0001", "not a regular file"]);
        std::fs::write(scene.work().join("latin1.toml"), b"# caf\xe9\nversion = 1\n").unwrap();
        refused(&scene, &["--policy", "latin1.toml"], 125, &["RF0129"]);
        std::fs::write(scene.work().join("large.toml"), vec![b'#'; 2 << 20]).unwrap();
        refused(&scene, &["--policy", "large.toml"], 125, &["RF0128"]);
        if *who == Who::User {
            let secret = scene.work().join("secret.toml");
            scene.file(&secret, "version = 1\n");
            std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o0)).unwrap();
            refused(&scene, &["--policy", "secret.toml"], 125, &["RF0001", "secret.toml", "Permission denied"]);
        }
    }
}

#[test]
fn a_policy_of_the_user_or_the_project_that_cannot_be_read_stops_the_run_as_well() {
    let scene = Scene::new(everybody()[0]);
    std::os::unix::fs::symlink("nowhere", scene.work().join("ringfence.toml")).unwrap();
    refused(&scene, &[], 125, &["RF0001", "ringfence.toml"]);
    std::fs::remove_file(scene.work().join("ringfence.toml")).unwrap();
    scene.file(&scene.home().join(".config/ringfence/policy.toml"), "version = 2\n");
    let outcome = scene.ringfence(["run", "--", "true"]);
    outcome.refused(125, &["RF0102", "policy.toml"]);
    // The file named by a flag stands alone, so the broken one is not even read.
    scene.file(&scene.work().join("alone.toml"), "version = 1\n");
    scene.ringfence(["run", "--policy", "alone.toml", "--", "true"]).ok();
}

#[test]
fn an_unknown_preset_names_the_nearest() {
    let scene = Scene::new(everybody()[0]);
    refused(&scene, &["--preset", "pyton"], 125, &["RF0121", "pyton", "python"]);
}

#[test]
fn an_unknown_key_is_shown_in_its_file() {
    let scene = Scene::new(everybody()[0]);
    scene.file(&scene.work().join("p.toml"), "version = 1\n\n[network]\nallow_hosts = [\"api.example.com\"]\n");
    let outcome = scene.ringfence(["run", "--policy", "p.toml", "--", "true"]);
    outcome.refused(125, &[]);
    insta::assert_snapshot!(outcome.stderr);
    scene.untouched();
}

#[test]
fn all_problems_of_a_policy_are_told_at_once_also_as_json() {
    let scene = Scene::new(everybody()[0]);
    scene.file(
        &scene.work().join("p.toml"),
        "version = 1\nwhat = 1\n[files]\nhome = \"privat\"\n[limits]\nmemory = \"lots\"\n",
    );
    refused(&scene, &["--policy", "p.toml"], 125, &["RF0103", "RF0106", "RF0116"]);
    let outcome = scene.ringfence(["run", "--json", "--policy", "p.toml", "--", "true"]);
    outcome.refused(125, &[]);
    let codes: Vec<String> = outcome
        .stderr
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["code"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(codes, ["RF0103", "RF0106", "RF0116"]);
}

#[test]
fn a_workspace_that_is_too_wide_is_refused() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let home = scene.home();
        let above = scene.top.path();
        for wide in [OsStr::new("/"), home.as_os_str(), above.as_os_str()] {
            let named =
                scene.ringfence([OsStr::new("run"), "--workspace".as_ref(), wide, "--".as_ref(), "true".as_ref()]);
            named.refused(125, &["RF0002", "--allow-wide-workspace"]);
            let mut standing = scene.command(crate::scene::program_path());
            standing.args(["run", "--", "true"]).current_dir(wide);
            scene.finish(standing).refused(125, &["RF0002", "--workspace"]);
        }
        scene.untouched();
        // A link to the home folder is the home folder.
        std::os::unix::fs::symlink(&home, scene.work().join("link")).unwrap();
        refused(&scene, &["--workspace", "link"], 125, &["RF0002"]);
        // Twice said is meant.
        let home = home.to_str().unwrap();
        scene.ringfence(["run", "--workspace", home, "--allow-wide-workspace", "--", "touch", "made"]).ok();
        assert!(scene.home().join("made").exists());
    }
}

#[test]
fn a_workspace_that_is_no_folder_is_refused() {
    let scene = Scene::new(everybody()[0]);
    scene.file(&scene.work().join("file"), "");
    refused(&scene, &["--workspace", "missing"], 125, &["RF0002", "missing", "No such file"]);
    refused(&scene, &["--workspace", "file"], 125, &["RF0002", "not a folder"]);
    refused(&scene, &["--workspace", ""], 125, &[]);
}

#[test]
fn a_writable_root_that_is_a_link_out_of_its_folder_is_refused() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let outside = scene.top.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        scene.give(&outside);
        std::os::unix::fs::symlink("../outside", scene.work().join("out")).unwrap();
        refused(&scene, &["--write", "out"], 125, &["RF0202", "outside", "--write"]);
        // Control: the target by its own name.
        scene.ringfence(["run", "--write", "../outside", "--", "touch", "../outside/made"]).ok();
        assert!(outside.join("made").exists());
    }
}

#[test]
fn a_path_that_must_exist_is_asked_for() {
    let scene = Scene::new(everybody()[0]);
    refused(&scene, &["--write", "no/such/folder"], 125, &["RF0203", "no/such/folder", "--write"]);
}

#[test]
fn a_deleted_working_directory_is_refused() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let outcome =
            scene.script("mkdir gone && cd gone && rmdir ../gone && exec \"$RINGFENCE\" run -- sh -c 'echo ran'");
        outcome.refused(125, &["RF0002", "deleted"]);
        scene.untouched();
    }
}

#[test]
fn a_path_of_4096_bytes_is_refused_and_one_byte_less_is_not_our_concern() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let long = format!("/{}", "d/".repeat(2047));
        let longer = format!("{long}d");
        assert_eq!((long.len(), longer.len()), (4095, 4096));
        for flag in ["--workspace", "--write", "--read", "--deny-read", "--policy"] {
            let outcome = scene.ringfence(["run", flag, &longer, "--", "sh", "-c", "echo ran"]);
            outcome.refused(125, &["RF0"]);
            assert!(outcome.stderr.len() < 2000, "the path is not shown whole: {flag}: {}", outcome.stderr.len());
        }
        scene.ringfence(["run", "--deny-read", &long, "--", "true"]).ok();
        let program = scene.ringfence(["run", "--", &longer]);
        assert!(matches!(program.status, 126 | 127), "{program:#?}");
    }
}

#[test]
fn a_working_directory_deeper_than_any_path_is_refused() {
    let scene = Scene::new(everybody()[0]);
    let outcome = scene.script(
        "d=$(printf 'x%.0s' $(seq 200)); for i in $(seq 25); do mkdir $d && cd $d || exit 1; done 2>/dev/null
         exec \"$RINGFENCE\" run -- sh -c 'echo ran'",
    );
    outcome.refused(125, &["RF0"]);
    scene.script("rm -rf x*").ok();
}

/// A name with a byte that no UTF-8 text holds.
fn odd(prefix: &str) -> OsString {
    let mut bytes = prefix.as_bytes().to_vec();
    bytes.push(0xff);
    OsString::from_vec(bytes)
}

#[test]
fn names_that_are_not_utf8_work_as_paths() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let work = scene.top.path().join(odd("work"));
        let other = scene.top.path().join(odd("other"));
        let secret = work.join(odd("secret"));
        for dir in [&work, &other] {
            std::fs::create_dir(dir).unwrap();
            scene.give(dir);
        }
        scene.file(&secret, "key");
        let mut command = scene.command(crate::scene::program_path());
        command
            .current_dir(&work)
            .arg("run")
            .arg("--write")
            .arg(&other)
            .arg("--deny-read")
            .arg(&secret)
            .args(["--", "sh", "-c", "echo made > made && echo made > \"$1/made\" && ! cat \"$2\"", "sh"])
            .arg(&other)
            .arg(&secret);
        scene.finish(command).ok();
        assert!(work.join("made").exists());
        assert!(other.join("made").exists());
    }
}

#[test]
fn flags_that_are_text_refuse_other_bytes() {
    let scene = Scene::new(everybody()[0]);
    for flag in ["--allow-host", "--preset", "--memory", "--env-deny"] {
        let mut command = scene.command(crate::scene::program_path());
        command.arg("run").arg(flag).arg(odd("a")).args(["--", "true"]);
        scene.finish(command).refused(125, &[flag]);
    }
    scene.untouched();
}

#[test]
fn programs_and_arguments_that_are_not_utf8_arrive_as_they_are() {
    let scene = Scene::new(everybody()[0]);
    let mut command = scene.command(crate::scene::program_path());
    command.args(["run", "--", "printf", "%s"]).arg(odd("a"));
    let output = command.output().unwrap();
    assert_eq!(OsStr::from_bytes(&output.stdout), odd("a"));
}

#[test]
fn a_policy_inside_a_writable_folder_is_said_and_cannot_be_changed() {
    for who in everybody() {
        let scene = Scene::new(*who);
        scene.file(&scene.work().join("own.toml"), "version = 1\n");
        let outcome =
            scene.ringfence(["run", "--policy", "own.toml", "--", "sh", "-c", "echo '# x' >> own.toml; echo y > made"]);
        assert!(outcome.stderr.contains("own.toml"), "{outcome:#?}");
        assert_eq!(std::fs::read_to_string(scene.work().join("own.toml")).unwrap(), "version = 1\n");
        assert!(scene.work().join("made").exists(), "the folder around it stays writable: {outcome:#?}");
    }
}

#[test]
fn an_audit_file_that_cannot_be_written_stops_the_run() {
    let scene = Scene::new(everybody()[0]);
    refused(&scene, &["--audit", "no/such/folder/audit.jsonl"], 125, &["audit.jsonl"]);
    refused(&scene, &["--audit", "."], 125, &["audit"]);
}

#[test]
fn an_audit_file_in_the_workspace_is_out_of_the_commands_reach() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let script =
            "cat audit.jsonl; echo forged >> audit.jsonl; mv audit.jsonl other; rm -f audit.jsonl; echo y > made";
        let outcome = scene.ringfence(["run", "--audit", "audit.jsonl", "--", "sh", "-c", script]);
        assert_eq!(outcome.stdout, "", "{outcome:#?}");
        assert!(scene.work().join("made").exists());
        let log = std::fs::read_to_string(scene.work().join("audit.jsonl")).unwrap();
        assert!(log.contains("\"exited\"") && !log.contains("forged"), "{log}");
        // A run that cannot begin takes its new file back.
        scene.ringfence(["run", "--audit", "new.jsonl", "--write", "missing", "--", "true"]).refused(125, &["RF0203"]);
        assert!(!scene.work().join("new.jsonl").exists());
    }
}

#[test]
fn a_managed_policy_that_others_could_have_written_stops_the_run() {
    if !is_root() {
        return crate::scene::skipped("needs root to put a folder in the place of /etc");
    }
    let scene = Scene::new(Who::Root);
    let script = |mode: &str| {
        format!(
            "set -e; cp -a /etc ../etc-{mode}; mkdir -p ../etc-{mode}/ringfence
             printf 'version = 1\\n[ceiling]\\nhome = \"empty\"\\n' > ../etc-{mode}/ringfence/policy.toml
             chmod 755 ../etc-{mode}/ringfence; chmod {mode} ../etc-{mode}/ringfence/policy.toml
             exec unshare -m sh -c 'mount --bind ../etc-{mode} /etc; exec \"$RINGFENCE\" run --home visible -- sh -c \"echo ran; ls -A ~\"'"
        )
    };
    scene.file(&scene.home().join("document"), "");
    scene.script(&script("666")).refused(125, &["RF0001", "/etc/ringfence/policy.toml", "root"]);
    // Control: with the right mode it is read, and its ceiling holds against the flag.
    let outcome = scene.script(&script("644"));
    assert!(outcome.stdout.starts_with("ran"), "{outcome:#?}");
    assert!(!outcome.stdout.contains("document"), "{outcome:#?}");
}
