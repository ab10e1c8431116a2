//! What a run looks like from inside: privileges, devices, what is private, what the environment says, which ports and
//! side doors there are.

use crate::fresh::{Env, Fresh};
use crate::lifecycle::{bare, ground, guarded, launch, shell, until, want, words};
use crate::run;
use crate::runner::{Cost, Trial};
use crate::stage::{Stage, Who};
use crate::wall::{Spec, Wall};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

type Check = fn(&Stage, &Fresh) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("privileges", privileges),
    ("devices-and-kernel-files", devices),
    ("private-temporary-folder", private_tmp),
    ("private-home-persists", private_home),
    ("visible-home", visible_home),
    ("secrets-in-the-environment", secrets),
    ("host-port", host_port),
    ("publish", publish),
    ("T37-proxy-of-the-launcher", launcher_proxy),
    ("T38-side-doors", side_doors),
];

pub fn collect(trials: &mut Vec<Trial>) {
    for who in [Who::User, Who::Root] {
        for (name, check) in CHECKS {
            let title = format!("inside::{}::{name}", who.name());
            trials.push(Trial::new(title, Cost::Quick, move |stage| guarded(stage, who, name, *check)));
        }
    }
}

// --- privileges ---------------------------------------------------------------------------------------------------------

fn privileges(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let r = shell(
        stage,
        fresh,
        &["--quiet"],
        "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status",
    );
    let fields: BTreeMap<&str, &str> = r.out.lines().filter_map(|l| l.split_once(":\t")).collect();
    for (name, value) in &fields {
        let good = if name.starts_with("Cap") {
            value.bytes().all(|b| b == b'0')
        } else if *name == "Seccomp" {
            *value == "2"
        } else {
            *value == "1"
        };
        want(good, &format!("{name} is {value}"), &r)?;
    }
    want(fields.len() == 7, "fields of /proc/self/status", &r)
}

fn devices(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    // What a control may try on the machine itself, and what only a sandbox may be asked to.
    let harmless = "for f in /dev/mem /dev/kmsg /dev/port /dev/vda /dev/sda /dev/kvm /dev/loop-control /dev/fuse /dev/net/tun; do (exec 3<$f) 2>/dev/null && echo \"read $f\"; done; \
         for f in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /sys/kernel/uevent_helper /proc/sysrq-trigger /sys/power/state; do (exec 3>>$f) 2>/dev/null && echo \"write $f\"; done; \
         unshare -m true 2>/dev/null && echo unshare-m; unshare -U true 2>/dev/null && echo unshare-U; ";
    let harmful = "mount -t tmpfs none \"$WS\" 2>/dev/null && echo mounted; chroot / true 2>/dev/null && echo chroot; mknod \"$WS/n\" b 254 0 2>/dev/null && echo mknod; hostname x 2>/dev/null && echo hostname; \
         for f in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug /proc/kmsg; do timeout 2 head -c 16 $f 2>/dev/null | grep -q . && echo leaks $f; done; ls -A /sys/firmware 2>/dev/null; true";
    let free = bare(stage, fresh, harmless);
    want(free.out.contains("unshare-U"), "control: without a sandbox some of it must work", &free)?;
    let r = shell(stage, fresh, &["--quiet"], &format!("{harmless}{harmful}"));
    want(r.ok() && r.out.is_empty(), "devices, kernel files or mounts are in reach", &r)
}

// --- what is private ----------------------------------------------------------------------------------------------------

fn private_tmp(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let name = format!("/tmp/host-{}", fresh.mark);
    fs::write(&name, "x").map_err(|e| e.to_string())?;
    let text = format!(
        "[ -e {name} ] && echo sees-host; for d in /tmp /var/tmp /dev/shm; do echo $MARK > $d/in-$MARK || echo no-$d; [ -e $d/old-$MARK ] && echo shared; touch $d/old-$MARK; done; true"
    );
    let first = shell(stage, fresh, &["--quiet"], &text);
    let second = shell(stage, fresh, &["--quiet"], &text);
    let left: Vec<_> = ["/tmp", "/var/tmp", "/dev/shm"]
        .iter()
        .filter(|d| Path::new(d).join(format!("in-{}", fresh.mark)).exists())
        .collect();
    let _ = fs::remove_file(&name);
    want(first.ok() && first.out.is_empty(), "the first run", &first)?;
    want(second.ok() && second.out.is_empty(), "the second run", &second)?;
    if left.is_empty() { Ok(()) } else { Err(format!("left in {left:?}")) }
}

fn private_home(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.put(stage, &fresh.home.join("secret.txt"), "TOP");
    let r = shell(
        stage,
        fresh,
        &["--quiet"],
        "cat ~/secret.txt 2>/dev/null; mkdir -p ~/.cache/x && echo kept > ~/.cache/x/f && echo rc >> ~/.bashrc && echo wrote",
    );
    want(r.out == "wrote\n", "the home is writable and not the user's", &r)?;
    if fresh.home.join(".cache/x").exists() || fresh.home.join(".bashrc").exists() {
        return Err("the user's own home was written".into());
    }
    let r = shell(stage, fresh, &["--quiet"], "cat ~/.cache/x/f");
    want(r.out == "kept\n", "what was written is there in the next run", &r)?;
    let other = fresh.folder(stage, &fresh.home.join("other-project"));
    let argv = Wall::Ringfence.argv(
        stage,
        fresh,
        &Spec::default(),
        &words(&["bash", "-c", "cat ~/.cache/x/f 2>/dev/null && echo shared; ls ~/project 2>/dev/null; true"]),
    );
    let r = run::run(
        &mut stage.command(fresh.who, ground(stage), &other, &fresh.launcher_env(stage), &argv),
        Duration::from_secs(30),
    );
    want(r.ok() && r.out.is_empty(), "another workspace has a home of its own", &r)
}

fn visible_home(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    fresh.put(stage, &fresh.home.join("notes.txt"), "NOTES\n");
    fresh.folder(stage, &fresh.home.join(".aws"));
    fresh.put(stage, &fresh.home.join(".aws/credentials"), "KEY\n");
    fresh.put(stage, &fresh.home.join(".netrc"), "KEY\n");
    let r = shell(
        stage,
        fresh,
        &["--quiet", "--home", "visible"],
        "cat ~/notes.txt; cat ~/.aws/credentials ~/.netrc 2>/dev/null; echo x 2>/dev/null > ~/notes.txt && echo wrote; touch ~/new 2>/dev/null && echo made; true",
    );
    want(r.ok() && r.out == "NOTES\n", "a visible home is read-only and has no stores", &r)
}

fn secrets(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let names = [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "NPM_TOKEN",
        "MY_PASSWORD",
        "OPENAI_API_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
    ];
    let env: Env = names
        .iter()
        .map(|n| ((*n).to_owned(), "TOKEN-x".to_owned()))
        .chain([("EDITOR".to_owned(), "vim".to_owned())])
        .collect();
    let r = run::run(
        &mut launch(
            stage,
            fresh,
            &["--quiet"],
            "env | grep TOKEN-; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep TOKEN-; echo $EDITOR",
            &env,
        ),
        Duration::from_secs(30),
    );
    want(r.out == "vim\n", "variables that hold credentials are withheld", &r)?;
    let r = run::run(
        &mut launch(
            stage,
            fresh,
            &["--quiet", "--env", "OPENAI_API_KEY", "--env", "ADDED=here"],
            "echo $OPENAI_API_KEY $ADDED",
            &env,
        ),
        Duration::from_secs(30),
    );
    want(r.out == "TOKEN-x here\n", "--env passes one on", &r)
}

// --- ports and proxies --------------------------------------------------------------------------------------------------

fn host_port(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "curl -s -m 5 --noproxy '*' http://127.0.0.1:8099/$MARK";
    let r = shell(stage, fresh, &["--quiet"], text);
    want(!r.out.contains("CANARY"), "without the flag the host's port must be closed", &r)?;
    let r = shell(stage, fresh, &["--quiet", "--host-port", "8099"], text);
    want(r.out.contains("CANARY"), "--host-port opens it", &r)?;
    let r = shell(
        stage,
        fresh,
        &["--quiet", "--host-port", "8099"],
        "curl -s -m 5 --noproxy '*' http://127.0.0.1:80/$MARK",
    );
    want(!r.out.contains("CANARY"), "--host-port opens that port alone", &r)
}

fn publish(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let port = 20000 + std::process::id() % 20000 + if fresh.who == Who::Root { 1 } else { 0 };
    let text = format!("cd $WS && echo served > page && exec python3 -m http.server {port} --bind 127.0.0.1");
    for (flags, open) in [(vec![], false), (vec!["--publish".to_owned(), port.to_string()], true)] {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut child = launch(stage, fresh, &flags, &text, &Env::new())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let reached = until(Duration::from_secs(if open { 10 } else { 3 }), || {
            bare(stage, fresh, &format!("curl -s -m 2 --noproxy '*' http://127.0.0.1:{port}/page"))
                .out
                .contains("served")
        });
        run::signal(&child, Signal::KILL);
        let _ = child.wait();
        if reached != open {
            return Err(format!("flags {flags:?}: reached from the host: {reached}"));
        }
    }
    Ok(())
}

fn launcher_proxy(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    // Nothing listens on port 9: a supervisor that used the launcher's own proxy variables would reach nothing.
    let env: Env = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]
        .iter()
        .map(|n| ((*n).to_owned(), "http://127.0.0.1:9".to_owned()))
        .collect();
    let flags = ["--quiet", "--allow-host", "api.good.test", "--allow-host", "10.9.9.9"];
    let text = "curl -s -m 8 http://api.good.test/door-$MARK; curl -s -m 8 --noproxy '*' http://api.good.test/direct-$MARK; env | grep -i proxy | grep -c ':9$'; NO_PROXY='*' no_proxy='*' curl -s -m 5 http://evil.test/evil-$MARK; true";
    let r = run::run(&mut launch(stage, fresh, &flags, text, &env), Duration::from_secs(60));
    want(
        r.out.contains("CANARY-door") && r.out.contains("CANARY-direct"),
        "the launcher's proxy variables are not used",
        &r,
    )?;
    want(stage.seen_outside(&format!("evil-{}", fresh.mark)).is_empty(), "NO_PROXY inside opens nothing", &r)?;
    want(!r.out.contains("CANARY-evil"), "NO_PROXY inside opens nothing", &r)
}

fn side_doors(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = r#"python3 - <<'E'
import os,socket
for p in ("/run/docker.sock","/var/run/docker.sock","/run/nscd/socket","/run/dbus/system_bus_socket","/run/systemd/resolve/io.systemd.Resolve","\0canary-abs"):
    try:
        s=socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(p); s.sendall(b"x"); s.recv(10); print("unix",p.strip("\0"))
    except OSError: pass
for name,args in (("alg",(38,5,0)),("vsock",(40,1,0)),("packet",(17,3,0)),("raw",(2,3,1)),("netlink-diag",(16,3,4)),("tipc",(30,1,0)),("unix-datagram",(1,2,0))):
    try: socket.socket(*args).close(); print("socket",name)
    except OSError: pass
try: os.close(__import__("ctypes").CDLL(None).syscall(425,4,__import__("ctypes").create_string_buffer(120))); print("io_uring")
except (OSError,OverflowError): pass
E
getent hosts api.good.test | cut -d' ' -f1"#;
    let free = bare(stage, fresh, text);
    want(
        free.out.contains("unix /run/docker.sock") && free.out.contains("socket unix-datagram"),
        "control: without a sandbox the side doors are open",
        &free,
    )?;
    let r = shell(stage, fresh, &["--quiet", "--allow-host", "api.good.test", "--allow-host", "10.9.9.9"], text);
    let bad: Vec<&str> = r
        .out
        .lines()
        .filter(|l| l.starts_with("unix") || l.starts_with("socket") || l.starts_with("io_uring"))
        .filter(|l| *l != "socket netlink-diag")
        .collect();
    want(bad.is_empty(), &format!("open side doors: {bad:?}"), &r)?;
    want(
        r.out.lines().any(|l| l.starts_with("198.1") || l.starts_with("fd00:65:fa4e:")),
        "names are resolved by ringfence's resolver",
        &r,
    )
}
