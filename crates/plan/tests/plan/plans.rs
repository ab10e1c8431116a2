//! Whole plans.

use crate::world::{Stands, World, look, mount, path, rule_in, section, text, user};
use insta::assert_snapshot;
use ringfence_plan::{MountOp, PlanError, Status};
use ringfence_policy::{CopyIn, HomeMode, Layer, Origin, PathVerb};

#[test]
fn a_user_with_a_project_in_the_home_folder() {
    let mut world = World::user();
    world.view.dir("/home/u/proj/.git/hooks").file("/home/u/proj/.git/config").file("/home/u/proj/src/main.rs");
    world.view.file("/home/u/.ssh/id_ed25519").file("/home/u/.ssh/known_hosts").file("/home/u/.gitconfig");
    world.view.file("/home/u/.cargo/bin/cargo").file("/home/u/.cargo/credentials.toml").file("/home/u/.bashrc");
    world.tool("/home/u/.cargo").allow_host("api.example.com").allow_host("github.com:22");
    world.var("TMPDIR", "/tmp/of-u").var("GITHUB_TOKEN", "secret").var("http_proxy", "http://u:pw@proxy:8080");
    world.var("SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1").var("EDITOR", "vim").var("PWD", "/home/u/proj");
    let plan = world.plan();
    assert_snapshot!(text(&plan));
    assert!(!format!("{plan:?}{}", serde_json::to_string(&plan.environment).unwrap()).contains("u:pw@"));
}

#[test]
fn root_with_a_project_outside_of_any_home() {
    let mut world = World::root();
    world.view.file("/etc/shadow").dir("/home/u").file("/root/.aws/credentials").dir("/srv/jail/proc");
    world.facts.mounts.extend([
        mount("/proc", "/", "0:21", "proc"),
        mount("/srv/jail/proc", "/", "0:77", "proc"),
        mount("/sys/fs/cgroup", "/", "0:30", "cgroup2"),
    ]);
    assert_snapshot!(text(&world.plan()));
}

#[test]
fn the_home_that_is_visible() {
    let mut world = World::user();
    world.view.file("/home/u/.ssh/id_ed25519").file("/home/u/.ssh/known_hosts").file("/home/u/.aws/credentials");
    world.view.file("/home/u/.docker/key.pem").file("/home/u/notes.txt").file("/home/u/.local/share/ringfence/state/x");
    world.view.dir("/home/u/.local/share/ringfence/homes");
    world.home(HomeMode::Visible);
    assert_snapshot!(text(&world.plan()));
}

#[test]
fn the_home_that_is_empty() {
    let mut world = World::user();
    world.view.file("/home/u/.gitconfig").file("/home/u/.claude.json");
    world.home(HomeMode::Empty).say(Layer::Preset, |f| {
        f.copies.push(CopyIn { path: path("/home/u/.claude.json"), origin: user(), why: "login".to_owned() });
    });
    assert_snapshot!(text(&world.plan()));
}

#[test]
fn denials_inside_grants_and_back() {
    let mut world = World::user();
    for file in ["data/in/keep/out/x", "data/in/secret"] {
        world.view.file(&format!("/home/u/proj/{file}"));
    }
    world.rule(PathVerb::DenyRead, "/home/u/proj/data").rule(PathVerb::AllowRead, "/home/u/proj/data/in");
    world
        .rule(PathVerb::DenyRead, "/home/u/proj/data/in/secret")
        .rule(PathVerb::AllowWrite, "/home/u/proj/data/in/keep");
    world.rule(PathVerb::DenyWrite, "/home/u/proj/data/in/keep/out");
    let plan = world.plan();
    assert_snapshot!(section(&plan, "files").join("\n"));
    for (at, stands) in [
        ("/home/u/proj/x", Stands::Writable),
        ("/home/u/proj/data/x", Stands::Hidden),
        ("/home/u/proj/data/in/x", Stands::ReadOnly),
        ("/home/u/proj/data/in/secret", Stands::Hidden),
        ("/home/u/proj/data/in/keep/x", Stands::Writable),
        ("/home/u/proj/data/in/keep/out/x", Stands::ReadOnly),
    ] {
        assert_eq!(look(&plan, at), stands, "{at}");
    }
}

#[test]
fn patterns() {
    let mut world = World::user();
    for file in [".env", "a/b/.env", "a/key.pem", "node_modules/x/.env/inner", "a/readme", ".git/objects/ab/.env"] {
        world.view.file(&format!("/home/u/proj/{file}"));
    }
    world.view.link("/home/u/proj/c/.env", "../shared.env").file("/home/u/proj/shared.env");
    // Elsewhere in the home: not seen, so not searched.
    world.view.file("/home/u/other/.env");
    world.rule(PathVerb::DenyRead, "/home/u/**/.env").rule(PathVerb::DenyWrite, "/home/u/proj/**/*.{pem,key}");
    let plan = world.plan();
    assert_snapshot!(section(&plan, "files").join("\n"));
}

/// `mv ~/.local x` would carry the covers away and leave the name free for a trust list of the command's making.
#[test]
fn the_way_to_our_own_folders_keeps_its_name() {
    let mut world = World::user();
    world.view.dir("/home/u/.local/share/ringfence/homes").dir("/home/u/.local/state/ringfence").dir("/home/u/cfg/rf");
    world.home(HomeMode::Visible).rule(PathVerb::AllowWrite, "/home/u");
    world.request.private_home = path("/home/u/.local/share/ringfence/homes/proj/home");
    world.request.state_dir = path("/home/u/.local/state/ringfence");
    world.rule_of(Layer::Builtin, PathVerb::DenyWrite, "/home/u/cfg/rf");
    let plan = world.plan();
    let is_mount =
        |at: &str| plan.mounts.iter().any(|op| matches!(op, MountOp::Bind { target, .. } if *target == path(at)));
    for folder in ["/home/u/.local", "/home/u/.local/share", "/home/u/.local/state", "/home/u/cfg"] {
        assert!(is_mount(folder), "{folder} could be renamed");
        assert_eq!(look(&plan, folder), Stands::Writable, "{folder}");
    }
    assert_eq!(look(&plan, "/home/u/.local/state/ringfence/trust.json"), Stands::Hidden);
    assert_eq!(look(&plan, "/home/u/cfg/rf"), Stands::ReadOnly);
}

/// Containers mount `/etc/hosts` from a folder of the same file system, which may be one that is hidden.
#[test]
fn a_file_of_ours_stands_where_the_same_file_is_mounted_from_something_hidden() {
    let mut world = World::user();
    world.view.file("/tmp/of-container/hosts").file("/etc/hosts");
    world.facts.mounts.push(mount("/etc/hosts", "/tmp/of-container/hosts", "254:0", "ext4"));
    let plan = world.plan();
    let covered = |op: &MountOp| matches!(op, MountOp::CoverFile { target, .. } if *target == path("/etc/hosts"));
    assert!(!plan.mounts.iter().any(covered), "{:#?}", plan.mounts);
    assert!(plan.mounts.iter().any(|op| matches!(op, MountOp::File { target, .. } if *target == path("/etc/hosts"))));
}

/// Found by the comparison in `meaning`.
#[test]
fn a_denying_pattern_counts_in_a_window_that_is_reached_over_a_private_folder() {
    let mut world = World::user();
    world.view.dir("/home/u/proj/a/b");
    world.rule(PathVerb::AllowRead, "/home/u/proj/*").rule(PathVerb::DenyRead, "/home/u/proj/a/*");
    assert_eq!(look(&world.plan(), "/home/u/proj/a/b"), Stands::Hidden);
}

/// Found by the comparison in `meaning`.
#[test]
fn a_path_that_is_denied_in_what_a_pattern_shows() {
    let mut world = World::user();
    world.view.dir("/home/u/other/a/b");
    world.rule(PathVerb::AllowRead, "/home/u/other/*").rule(PathVerb::DenyRead, "/home/u/other/a/b");
    let plan = world.plan();
    assert_eq!(look(&plan, "/home/u/other/a"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/home/u/other/a/b"), Stands::Hidden);
}

#[test]
fn what_is_hidden_has_no_other_name() {
    let mut world = World::user();
    for dir in ["/sysroot/home/u/.ssh", "/home/u/.ssh", "/keys", "/copy/u", "/elsewhere", "/srv/own", "/home/u/x"] {
        world.view.dir(dir);
    }
    world.view.file("/sysroot/tmp/x").dir("/sysroot/home/u/proj");
    world.facts.mounts.extend([
        // The whole file system a second time, a part of what is hidden, and folders around it.
        mount("/sysroot", "/", "254:0", "ext4"),
        mount("/keys", "/home/u/.ssh", "254:0", "ext4"),
        mount("/copy", "/home", "254:0", "ext4"),
        // Not what it seems: another file system lies over it.
        mount("/srv/own", "/home/u/x", "254:0", "ext4"),
        mount("/srv/own", "/", "8:1", "ext4"),
        // The home's own place, and a folder of it that is granted by its other name.
        mount("/elsewhere", "/home/u/w", "254:0", "ext4"),
    ]);
    world.rule(PathVerb::AllowWrite, "/elsewhere");
    let hidden: Vec<_> = world.mounts().into_iter().filter(|line| line.contains("the same as")).collect();
    assert_eq!(
        hidden,
        [
            "hidden    /keys: the same as /home/u",
            "hidden    /copy/u: the same as /home/u",
            "hidden    /sysroot/tmp: the same as /tmp",
            "hidden    /sysroot/home/u: the same as /home/u",
        ]
    );
    assert_eq!(look(&world.plan(), "/elsewhere/x"), Stands::Writable);
    // Nothing of it where every file system is there once.
    world.facts.mounts.truncate(1);
    assert!(!world.mounts().iter().any(|line| line.contains("the same as")));
}

#[test]
fn sockets() {
    let mut world = World::user();
    world.listening("/home/u/proj/dev.sock").listening("/run/user/1000/podman/podman.sock");
    world.listening("/var/lib/db/db.sock").listening("/opt/agent/ok.sock").listening("/run/other.sock");
    world.listening("/home/u/.other/agent.sock");
    world.allow_unix("/var/run/user/1000/podman/podman.sock").allow_unix("/opt/agent/ok.sock").allow_unix("/run/gone");
    world.var("DOCKER_HOST", "unix:///run/user/1000/podman/podman.sock").var("XDG_RUNTIME_DIR", "/run/user/1000");
    world.var("CONTAINER_HOST", "unix:///run/other.sock").var("WAYLAND_DISPLAY", "wayland-0");
    let plan = world.plan();
    let mut shown = section(&plan, "files");
    shown.extend(plan.environment.iter().map(|v| format!("{} {:?} {}", v.name, v.fate, v.why)));
    shown.extend(section(&plan, "status").into_iter().filter(|line| line.contains("sockets")));
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_workspace_in_a_folder_that_is_private() {
    let mut world = World::new("/tmp/home/u", "/tmp/home/u/ws", 1000);
    world.view.file("/tmp/home/u/ws/.mcp.json").file("/tmp/bin/tool").file("/tmp/else");
    world.request.env = vec![("PATH".into(), "/tmp/bin:/usr/bin".into())];
    let plan = world.plan();
    assert_snapshot!(section(&plan, "files").join("\n"));
    assert_eq!(look(&plan, "/tmp/home/u/ws/x"), Stands::Writable);
    assert_eq!(look(&plan, "/tmp/home/u/ws/.mcp.json"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/tmp/bin/tool"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/tmp/else"), Stands::Ours);
}

#[test]
fn links_in_the_home_lead_where_they_lead_outside() {
    let mut world = World::user();
    world.view.file("/home/u/dotfiles/gitconfig").link("/home/u/.gitconfig", "dotfiles/gitconfig");
    world.view.dir("/home/u/dotfiles/claude").link("/home/u/.claude", "dotfiles/claude");
    world.view.file("/data/keys/id").link("/home/u/.ssh", "/data/keys").file("/data/keys/known_hosts");
    world.rule_of(Layer::Preset, PathVerb::AllowWrite, "/home/u/.claude");
    let plan = world.plan();
    assert_snapshot!(section(&plan, "files").join("\n"));
    assert_eq!(look(&plan, "/data/keys/id"), Stands::Hidden);
    assert_eq!(look(&plan, "/data/keys/known_hosts"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/home/u/dotfiles/claude/x"), Stands::Writable);
    assert_eq!(look(&plan, "/home/u/dotfiles/else"), Stands::Ours);
}

#[test]
fn what_a_preset_shares() {
    let mut world = World::user();
    world.view.file("/home/u/.claude/settings.json").file("/home/u/.claude/history.jsonl").file("/home/u/.claude.json");
    for shared in ["/home/u/.claude", "/home/u/.cache/claude"] {
        world.rule_of(Layer::Preset, PathVerb::AllowWrite, shared);
    }
    world.say(Layer::Preset, |f| {
        for copied in ["/home/u/.claude.json", "/home/u/.not-there.json"] {
            f.copies.push(CopyIn { path: path(copied), origin: user(), why: "login".to_owned() });
        }
    });
    let plan = world.plan();
    let mut shown = section(&plan, "before the start");
    shown.extend(section(&plan, "files"));
    shown.extend(section(&plan, "status"));
    assert_snapshot!(shown.join("\n"));
    assert_eq!(look(&plan, "/home/u/.claude/settings.json"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/home/u/.claude/x"), Stands::Writable);
}

#[test]
fn a_copy_that_is_denied_is_not_made() {
    let mut world = World::user();
    world.view.file("/home/u/.claude.json");
    world.say(Layer::Preset, |f| {
        f.copies.push(CopyIn { path: path("/home/u/.claude.json"), origin: user(), why: "login".to_owned() });
    });
    let copies =
        |world: &World| section(&world.plan(), "before the start").iter().filter(|l| l.contains("copy")).count();
    assert_eq!(copies(&world), 1);
    world.rule(PathVerb::DenyRead, "/home/u/.claude.json");
    assert_eq!(copies(&world), 0);
}

#[test]
fn reading_only_what_is_listed() {
    let mut world = World::user();
    world.view.file("/opt/tool/bin").file("/srv/data");
    for dir in ["/usr", "/etc", "/sys"] {
        world.rule(PathVerb::AllowRead, dir);
    }
    world.rule(PathVerb::DenyRead, "/");
    let plan = world.plan();
    assert_snapshot!(section(&plan, "files").join("\n"));
    assert_eq!(look(&plan, "/opt/tool/bin"), Stands::Hidden);
    assert_eq!(look(&plan, "/usr/bin/x"), Stands::ReadOnly);
    assert_eq!(look(&plan, "/home/u/proj/x"), Stands::Writable);
}

#[test]
fn proc_and_devices_follow_rules() {
    let mut world = World::user();
    world.view.device("/dev/kvm").device("/dev/null").file("/proc/kallsyms").file("/proc/cmdline").dir("/dev/dri");
    world.rule(PathVerb::AllowWrite, "/dev/kvm").rule(PathVerb::DenyRead, "/dev/random");
    world.rule(PathVerb::AllowRead, "/proc/kallsyms").rule(PathVerb::DenyRead, "/proc/cmdline");
    let mounts = world.mounts();
    assert_snapshot!(mounts.iter().filter(|l| l.starts_with("own")).cloned().collect::<Vec<_>>().join("\n"));
    world.rule(PathVerb::AllowWrite, "/proc/sys").rule(PathVerb::AllowWrite, "/dev/dri");
    world.view.dir("/proc/sys");
    assert_eq!(world.errors().len(), 2);
}

#[test]
fn the_first_operation_freezes_and_seals_come_last() {
    let mut world = World::user();
    world.view.file("/home/u/proj/data/in/x");
    world.rule(PathVerb::DenyRead, "/home/u/proj/data").rule(PathVerb::AllowRead, "/home/u/proj/data/in");
    let ops = world.plan().mounts;
    assert_eq!(ops.first(), Some(&MountOp::FreezeRoot));
    assert_eq!(ops.iter().filter(|op| matches!(op, MountOp::FreezeRoot)).count(), 1);
    assert_eq!(ops.last(), Some(&MountOp::Seal { target: path("/home/u/proj/data") }));
}

#[test]
fn no_network_at_all() {
    let plan = World::user().plan();
    assert!(!plan.doors.enabled && plan.doors.transparent.is_empty());
    assert!(!plan.env.iter().any(|(name, _)| name.to_string_lossy().to_lowercase().contains("proxy")));
    assert!(!plan.proof.rows.iter().any(|row| row.name.contains("door")));
}

#[test]
fn a_working_directory_that_is_not_there_inside() {
    let mut world = World::user();
    world.view.dir("/home/u/elsewhere");
    for (asked, got) in [("/home/u/elsewhere", "/home/u/proj"), ("/home/u", "/home/u"), ("/opt", "/opt")] {
        world.request.cwd = path(asked);
        assert_eq!(world.plan().cwd, path(got));
    }
}

#[test]
fn the_same_words_in_any_order_are_the_same_plan() {
    let mut world = World::user();
    for file in ["a/.env", "b/.env", ".git/config", "sub/.git/config", "data/in/x"] {
        world.view.file(&format!("/home/u/proj/{file}"));
    }
    world.rule(PathVerb::DenyRead, "/home/u/proj/**/.env").rule(PathVerb::DenyRead, "/home/u/proj/data");
    world.rule(PathVerb::AllowRead, "/home/u/proj/data/in").rule(PathVerb::DenyWrite, "/home/u/proj/a");
    let policy = world.policy();
    let plan = |policy: &ringfence_policy::Policy| {
        ringfence_plan::plan(policy, &world.facts, &world.request, &world.view).unwrap()
    };
    let first = plan(&policy);
    for turn in 1..policy.files.rules.len() {
        let mut turned = policy.clone();
        let mut rules = turned.files.rules.to_vec();
        rules.rotate_left(turn);
        turned.files.rules = rules.into();
        turned.files.protected = turned.files.protected.iter().rev().cloned().collect();
        turned.files.private.reverse();
        assert_eq!(plan(&turned), first);
    }
}

#[test]
fn what_this_version_cannot_do_is_refused() {
    let mut world = World::user();
    world.say(Layer::User, |f| {
        f.requests.push(ringfence_policy::request_rule::RequestRule {
            host: crate::world::host("api.example.com").host,
            methods: vec!["GET".to_owned()],
            paths: Vec::new(),
            origin: user(),
        });
    });
    assert!(matches!(&world.errors()[..], [PlanError::Unenforceable { origin, .. }] if origin.contains("here.toml:7")));
}

#[test]
fn weaker_hosts_are_refused_or_said_to_be_weaker() {
    use ringfence_plan::facts::Availability;
    let no = || Availability::No { why: "forbidden here".to_owned(), remedy: "do this".to_owned() };
    type Change = fn(&mut ringfence_plan::HostFacts, Availability);
    let rows: [(&str, Change); 4] = [
        ("landlock", |facts, _| facts.landlock_abi = 0),
        ("landlock", |facts, _| facts.landlock_abi = 5),
        ("seccomp", |facts, no| facts.seccomp = no),
        ("processes", |facts, no| facts.proc_mount = no),
    ];
    for (layer, change) in rows {
        let mut world = World::user();
        world.view.file("/proc/kcore");
        change(&mut world.facts, no());
        assert!(matches!(&world.errors()[..], [PlanError::Weaker { layer: l, .. }] if l == layer), "{layer}");
        world.allow_weaker();
        let plan = world.plan();
        let row = plan.status.iter().find(|row| row.layer == layer).unwrap();
        assert!(matches!(row.status, Status::Weaker(_) | Status::Missing(_)), "{row:?}");
        let proc = plan.mounts.iter().any(|op| matches!(op, MountOp::Proc { .. }));
        assert_eq!(proc, layer != "processes");
        if !proc {
            assert_eq!(look(&plan, "/proc/kcore"), Stands::Hidden);
        }
    }
    let mut world = World::user();
    world.facts.userns = no();
    world.allow_weaker();
    assert_eq!(world.errors().len(), 1);
}

#[test]
fn a_limit_that_nothing_holds_stops_root_and_not_a_user() {
    use ringfence_policy::limits::Limit;
    let limited = |mut world: World| {
        world.say(Layer::User, |f| f.limits.pids = Some(Limit { value: 64, origin: user() }));
        world.say(Layer::User, |f| f.limits.memory = Some(Limit { value: 1 << 28, origin: user() }));
        world
    };
    let user = limited(World::user()).plan();
    assert_snapshot!(section(&user, "limits").join("\n"));
    assert!(user.mounts.iter().all(|op| !matches!(op, MountOp::Tmpfs { size, .. } if *size > 1 << 28)));
    let mut root = limited(World::root());
    assert!(matches!(&root.errors()[..], [PlanError::Weaker { layer, .. }] if layer.contains("pids")));
    // A preset's wish does not stop the run; that it is not held is said.
    let mut wish = World::root();
    let origin = Origin { layer: Layer::Preset, ..Origin::builtin("ci") };
    wish.say(Layer::Preset, |f| f.limits.pids = Some(Limit { value: 64, origin }));
    let plan = wish.plan();
    assert!(plan.limits.rlimits.is_empty());
    assert!(plan.status.iter().any(|row| row.layer == "limits" && matches!(row.status, Status::Missing(_))));
    root.facts.cgroup = ringfence_plan::facts::CgroupFacts::Delegated {
        path: path("/sys/fs/cgroup/mine"),
        controllers: vec!["memory".to_owned(), "pids".to_owned()],
    };
    assert_snapshot!(section(&root.plan(), "limits").join("\n"));
}

#[test]
fn doors_keep_out_of_the_way_of_servers() {
    let mut world = World::user();
    world.allow_host("a.example.com").allow_host("b.example.com:8080").allow_host("c.example.com:*");
    world.publish(8080).publish(3128).host_port(5432).host_port(1080);
    let plan = world.plan();
    assert_eq!(plan.doors.transparent, [22, 80, 443, 853, 5228, 8443, 9418]);
    assert_eq!((plan.doors.http, plan.doors.socks), (3129, 1081));
    assert_eq!((&plan.doors.publish[..], &plan.doors.host_ports[..]), (&[3128, 8080][..], &[1080, 5432][..]));
    let hint = plan.status.iter().find(|row| row.layer == "network").unwrap().hint.clone().unwrap();
    assert!(hint.contains("8080") && hint.contains("every port"), "{hint}");
    // A port of the host is a way out by itself.
    let mut world = World::user();
    world.host_port(5432);
    assert!(world.plan().doors.enabled);
}

#[test]
fn variables() {
    let mut world = World::user();
    world.env_deny("MY_*").env_pass("MY_OWN").env_deny("EDITOR").allow_host("a.example.com");
    for (name, value) in [
        ("MY_THING", "1"),
        ("MY_OWN", "1"),
        ("EDITOR", "vi"),
        ("HTTPS_PROXY", "http://p"),
        ("no_proxy", "x"),
        ("npm_config_proxy", "http://p"),
        ("TMPDIR", "/var/nowhere"),
        ("TEMP", "/home/u/proj/tmp"),
        ("RINGFENCE", "0"),
        ("TERM", "second of its name"),
    ] {
        world.var(name, value);
    }
    world.say(Layer::User, |f| {
        f.env_set.push(ringfence_policy::env_rule::EnvSet {
            name: "CI".to_owned(),
            value: "true".to_owned(),
            origin: Origin::flag("--env"),
        });
    });
    let plan = world.plan();
    let shown: Vec<String> = plan.environment.iter().map(|v| format!("{} {:?}: {}", v.name, v.fate, v.why)).collect();
    assert_snapshot!(shown.join("\n"));
    let value = |name: &str| plan.env.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
    assert_eq!(value("HTTPS_PROXY"), ["http://127.0.0.1:3128"]);
    assert_eq!(value("RINGFENCE"), ["1"]);
    assert_eq!(value("TERM"), ["xterm"]);
    assert_eq!(value("CI"), ["true"]);
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains("HTTPS_PROXY") && !json.contains("xterm"));
}

#[test]
fn a_rule_made_by_another_layer_is_still_a_rule() {
    // The helper for rules must make what the parser makes.
    let rule = rule_in(Layer::User, PathVerb::DenyRead, "/a/**/b");
    assert_eq!(rule.pattern.to_string(), "/a/**/b");
}
