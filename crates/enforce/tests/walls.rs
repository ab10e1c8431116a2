//! What holds in a running sandbox, each with a control that shows that the attempt works without the wall.
//!
//! This program is its own test runner: every case runs a sandbox in a child of one thread, which is this program again
//! with the word `--box`. As root every case runs twice, as root and as an ordinary user.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is all test code, and its own test runner"
)]

#[path = "support/hand.rs"]
mod hand;
#[path = "support/terminal.rs"]
mod terminal;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

/// An ordinary user that nothing else on the machine uses; needs no entry in the password database.
const ORDINARY: u32 = 54_321;

/// Where and as whom a case runs.
pub(crate) struct World {
    dir: tempfile::TempDir,
    program: PathBuf,
    user: Option<u32>,
}

impl World {
    fn new(user: Option<u32>) -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("rf-walls").tempdir_in("/var/tmp")?;
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let program = dir.path().join("box");
        std::fs::copy(std::env::current_exe()?, &program)?;
        std::fs::create_dir(dir.path().join("work"))?;
        std::fs::create_dir(dir.path().join("outside"))?;
        for folder in ["work", "outside"] {
            std::os::unix::fs::chown(dir.path().join(folder), user, user)?;
        }
        Ok(Self { dir, program, user })
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// A command behind the walls; `words` are for the hand-made plan.
    pub(crate) fn inside(&self, words: &[&str], program: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.arg("--box").arg(self.work()).args(words).arg("--").args(program);
        command
    }

    /// The same without walls.
    fn free(&self, program: &[&str]) -> Command {
        let (name, args) = program.split_first().expect("a program");
        let mut command = self.command(Path::new(name));
        command.args(args);
        command
    }

    fn shell(&self, script: &str) -> Said {
        said(self.inside(&[], &["sh", "-c", script]))
    }

    fn shell_with(&self, words: &[&str], script: &str) -> Said {
        said(self.inside(words, &["sh", "-c", script]))
    }

    fn free_shell(&self, script: &str) -> Said {
        said(self.free(&["sh", "-c", script]))
    }
}

/// What a command said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn said(mut command: Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("started");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    Said { code: status.code().or(status.signal().map(|s| 1000 + s)), out: text(stdout), err: text(stderr) }
}

fn fed(mut command: Command, input: impl Into<Stdio>) -> Command {
    command.stdin(input);
    command
}

fn exit_statuses_are_the_command_s_own(w: &World) {
    for script in ["exit 0", "exit 7", "exit 255"] {
        assert_eq!(w.shell(script).code, w.free_shell(script).code);
    }
    assert_eq!(w.shell("kill -TERM $$").code, Some(143));
    assert_eq!(w.shell("kill -KILL $$").code, Some(137));
    let missing = said(w.inside(&[], &["no-such-program"]));
    assert_eq!(missing.code, Some(127), "{missing:?}");
    assert!(missing.err.contains("not found"), "{missing:?}");
    let denied = said(w.inside(&[], &["/etc/passwd"]));
    assert_eq!(denied.code, Some(126), "{denied:?}");
    let interpreter = w.work().join("script");
    std::fs::write(&interpreter, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&interpreter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let bad = said(w.inside(&[], &["./script"]));
    assert_eq!(bad.code, Some(126), "{bad:?}");
    std::fs::write(&interpreter, "exit 9\n").unwrap();
    assert_eq!(said(w.inside(&[], &["./script", "x"])).code, Some(9), "a file without a first line is for the shell");
}

fn nothing_of_the_launcher_is_inherited_but_three_descriptors(w: &World) {
    let secret = w.dir.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let open = format!("exec 7<{} 8<{}; exec \"$@\"", w.dir.path().display(), secret.display());
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let list = "ls /proc/self/fd | tr '\\n' ' '; cat <&8; ls /proc/self/fd/7/";
    let mut free = w.free(&["bash", "-c", &open, "x", "sh", "-c", list]);
    assert!(String::from_utf8_lossy(&free.output().unwrap().stdout).contains("secret"), "control");
    let work = w.work();
    let program = w.program.to_str().unwrap().to_owned();
    let mut boxed =
        w.free(&["bash", "-c", &open, "x", &program, "--box", work.to_str().unwrap(), "--", "sh", "-c", list]);
    let out = boxed.output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.starts_with("0 1 2 3 "), "{out}");
    assert!(!out.contains("secret") && !out.contains("work"), "{out}");
}

/// A descriptor that is open already asks no wall: what leads further than to its own other end is not passed on.
fn a_standard_descriptor_leads_to_its_other_end_only(w: &World) {
    let key = w.outside().join("key");
    std::fs::write(&key, "hush").unwrap();
    let read = ["sh", "-c", "cat /proc/self/fd/0/key"];
    let folder = || std::fs::File::open(w.outside()).unwrap();
    assert_eq!(said(fed(w.free(&read), folder())).out, "hush", "control");
    let refused = said(fed(w.inside(&[], &read), folder()));
    assert_eq!((refused.code, refused.out.as_str()), (Some(125), ""), "{refused:?}");

    let host = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let port = host.local_addr().unwrap().port();
    let script = format!("import socket; socket.socket(fileno=0).sendto(b'x', ('127.0.0.1', {port}))");
    let datagrams = || OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    assert_eq!(said(fed(w.free(&["python3", "-c", &script]), datagrams())).code, Some(0), "control");
    assert!(host.recv(&mut [0; 8]).is_ok(), "control");
    assert_eq!(said(fed(w.inside(&[], &["python3", "-c", &script]), datagrams())).code, Some(125));
    assert!(host.recv(&mut [0; 8]).is_err(), "it arrived");
}

/// `AF_UNSPEC` dissolves a connection (connect(2)), and the socket is still one of the host's network.
fn a_connection_of_the_host_stays_what_it_is(w: &World) {
    let (peer, other) =
        (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    other.set_nonblocking(true).unwrap();
    let script = format!(
        "import ctypes, os, struct\nlibc = ctypes.CDLL(None)\nos.write(0, b'hello')\n\
         libc.connect(0, bytes(16), 16)\n\
         libc.connect(0, struct.pack('=H', 2) + struct.pack('!H', {}) + bytes([127, 0, 0, 1]) + bytes(8), 16)",
        other.local_addr().unwrap().port()
    );
    for (command, reaches) in
        [(w.free(&["python3", "-c", &script]), true), (w.inside(&[], &["python3", "-c", &script]), false)]
    {
        let stream = std::net::TcpStream::connect(peer.local_addr().unwrap()).unwrap();
        let ended = said(fed(command, OwnedFd::from(stream)));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let mut heard = [0; 5];
        peer.accept().unwrap().0.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
        assert_eq!(other.accept().is_ok(), reaches, "{ended:?}");
    }
}

/// Equal user numbers suffice for prlimit(2), and a limit on its processor time ends a process.
fn limits_of_process_1_cannot_be_set(w: &World) {
    let script =
        "import os, resource; resource.prlimit(int(os.environ.get('VICTIM', '1')), resource.RLIMIT_CORE, (0, 0))";
    let mut victim = w.free(&["sleep", "60"]).spawn().unwrap();
    let mut control = w.free(&["python3", "-c", script]);
    control.env("VICTIM", victim.id().to_string());
    let control = said(control);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(control.code, Some(0), "control: {control:?}");
    let inside = said(w.inside(&[], &["python3", "-c", script]));
    assert_eq!(inside.code, Some(1), "{inside:?}");
    assert!(inside.err.contains("PermissionError"), "{inside:?}");
    assert_eq!(w.shell("ulimit -n 64 && ulimit -n").out, "64", "its own");
}

fn no_privilege_is_left(w: &World) {
    let out = w.shell("cat /proc/self/status").out;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(out.contains(&format!("{set}:\t0000000000000000")), "{set}: {out}");
    }
    assert!(out.contains("NoNewPrivs:\t1") && out.contains("Seccomp:\t2"), "{out}");
    let free = w.free_shell("cat /proc/self/status").out;
    assert!(!free.contains("CapBnd:\t0000000000000000"), "control");
    assert!(!free.contains("Seccomp:\t2"), "control");
}

fn nested_namespaces_and_mounts_fail(w: &World) {
    assert_eq!(w.free_shell("unshare -Ur true").code, Some(0), "control");
    assert_ne!(w.shell("unshare -Ur true").code, Some(0));
    assert_ne!(w.shell("unshare -m true").code, Some(0));
    assert_eq!(w.shell("cat /proc/sys/user/max_user_namespaces").out, "0");
    assert_ne!(w.shell("mount -t tmpfs none /tmp").code, Some(0));
    assert_ne!(w.shell("mount -o remount,rw,bind /usr").code, Some(0));
    assert_ne!(w.shell("umount /tmp").code, Some(0));
}

fn the_host_s_settings_cannot_be_written(w: &World) {
    let write = "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern";
    if w.user.is_none() && rootly() {
        assert_eq!(w.free_shell(write).code, Some(0), "control");
    }
    assert_ne!(w.shell(write).code, Some(0));
    let inside = w.shell(
        "for f in /proc/sysrq-trigger /sys/kernel/uevent_helper /proc/sys/vm/drop_caches; do \
        (: > $f) 2>/dev/null && echo $f; done; cat /proc/kcore 2>&1 | head -c 1",
    );
    assert!(!inside.out.contains('/') || inside.out.contains("denied"), "{inside:?}");
}

fn files_outside_cannot_be_changed(w: &World) {
    let outside = w.outside();
    let target = outside.display();
    assert_eq!(w.free_shell(&format!("echo x > {target}/control")).code, Some(0), "control");
    assert_ne!(w.shell(&format!("echo x > {target}/new")).code, Some(0));
    assert_ne!(w.shell(&format!("echo y > {target}/control")).code, Some(0));
    assert_ne!(w.shell(&format!("rm {target}/control")).code, Some(0));
    assert_ne!(w.shell(&format!("ln {target}/control hard && echo z > hard")).code, Some(0));
    assert_eq!(std::fs::read_to_string(outside.join("control")).unwrap(), "x\n");
    assert_eq!(w.shell("echo x > in && cat in").out, "x");
    assert!(w.work().join("in").exists());
}

fn what_is_covered_cannot_be_read(w: &World) {
    let secret = w.outside().join("secret");
    let store = w.outside().join("store");
    std::fs::write(&secret, "hush").unwrap();
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("key"), "hush").unwrap();
    for path in [&secret, &store] {
        std::os::unix::fs::chown(path, w.user, w.user).unwrap();
    }
    let script = format!("cat {} {}/key; ls -la {}", secret.display(), store.display(), store.display());
    assert!(w.free_shell(&script).out.contains("hush"), "control");
    let words = ["--cover", secret.to_str().unwrap(), "--cover", store.to_str().unwrap()];
    let inside = w.shell_with(&words, &script);
    assert!(!inside.out.contains("hush") && !inside.out.contains("key"), "{inside:?}");
    let undo = format!("chmod 777 {0} {1}; cat {0}; mv {0} {1}/..; rm -f {0}", secret.display(), store.display());
    assert!(!w.shell_with(&words, &undo).out.contains("hush"));
    assert!(secret.exists() && store.join("key").exists());
    let gone = w.outside().join("gone");
    let words = ["--cover", gone.to_str().unwrap()];
    assert_eq!(w.shell_with(&words, "true").code, Some(0), "what is not there any more needs no cover");
}

fn processes_outside_are_out_of_reach(w: &World) {
    let mut sleeper = w.free(&["sleep", "60"]).spawn().unwrap();
    let pid = sleeper.id();
    assert_eq!(w.free_shell(&format!("kill -0 {pid}")).code, Some(0), "control");
    let inside = w
        .shell(&format!("kill -9 {pid}; kill -9 1; ls -d /proc/[0-9]* | wc -l; cat /proc/1/environ; cat /proc/1/comm"));
    assert!(sleeper.try_wait().unwrap().is_none(), "{inside:?}");
    let mut lines = inside.out.lines();
    assert!(lines.next().unwrap().parse::<u32>().unwrap() < 8, "{inside:?}");
    assert_eq!(lines.next(), Some("ringfence"), "{inside:?}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

fn temporary_folders_are_private(w: &World) {
    let name = format!("/tmp/rf-private-{}", std::process::id());
    assert_eq!(w.shell(&format!("echo x > {name} && cat {name}")).out, "x");
    assert!(!Path::new(&name).exists());
    assert_eq!(w.shell("ls -A /run /dev/shm | tr -d '\\n'").out, "/dev/shm:/run:");
    assert_eq!(w.shell("stat -c %a /tmp").out, "1777");
    assert_eq!(w.shell("echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && : > /dev/full").code, Some(0));
}

fn the_network_has_no_way_out_but_the_doors(w: &World) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    assert_eq!(said(w.free(&["bash", "-c", &connect])).code, Some(0), "control");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
    assert_ne!(said(w.inside(&[], &["bash", "-c", &connect])).code, Some(0));
    assert!(listener.accept().is_err(), "nothing arrived");
    let v4 = said(w.inside(&["--serve"], &["bash", "-c", "exec 3<>/dev/tcp/93.184.216.34/443; cat <&3"]));
    assert_eq!(v4.out, "93.184.216.34:443 from 10.255.0.2", "{v4:?}");
    let v6 = said(w.inside(&["--serve"], &["bash", "-c", "exec 3<>/dev/tcp/2606:2800:220:1::1/443; cat <&3"]));
    if Path::new("/proc/sys/net/ipv6").exists() {
        assert_eq!(v6.out, "[2606:2800:220:1::1]:443 from fd00:65:ffff::2", "{v6:?}");
    }
    assert_ne!(said(w.inside(&[], &["bash", "-c", "exec 3<>/dev/tcp/93.184.216.34/25"])).code, Some(0));
    assert_ne!(said(w.inside(&["--no-doors"], &["bash", "-c", "exec 3<>/dev/tcp/93.184.216.34/443"])).code, Some(0));
}

fn a_server_inside_can_be_dialled(w: &World) {
    let server = "import socket\ns = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
        s.bind(('127.0.0.1', 3000))\ns.listen()\nc, _ = s.accept()\nc.send(b'hello')\nc.close()\n";
    let out = said(w.inside(&["--dial", "3000"], &["python3", "-c", server]));
    if out.code == Some(127) {
        return skip("python3 is not installed");
    }
    assert!(out.err.contains("dialled: hello"), "{out:?}");
}

fn abstract_sockets_of_the_host_are_out_of_reach(w: &World) {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("rf-walls-{}-{:?}", std::process::id(), w.user);
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let script = format!("import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0{name}')\n");
    let free = said(w.free(&["python3", "-c", &script]));
    assert_eq!(free.code, Some(0), "control: {free:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
    assert_ne!(said(w.inside(&[], &["python3", "-c", &script])).code, Some(0));
    assert!(listener.accept().is_err());
}

fn a_wall_that_does_not_hold_stops_the_run(w: &World) {
    let out = w.shell_with(&["--bad-row"], "echo started");
    assert_eq!(out.code, Some(125), "{out:?}");
    assert!(out.err.contains("a wall that is not there") && !out.out.contains("started"), "{out:?}");
    assert_eq!(w.shell_with(&["--bad-row", "--no-proof"], "echo started").out, "started", "control");
}

fn a_step_that_cannot_be_done_is_said_and_nothing_runs(w: &World) {
    let gone = said(w.inside(&["--cwd", "/no/such/folder"], &["true"]));
    assert_eq!(gone.code, Some(125));
    assert!(gone.err.contains("working directory `/no/such/folder`"), "{gone:?}");
    let outside = w.outside().join("made");
    let out = w.shell_with(&["--make", outside.to_str().unwrap()], "true");
    assert_eq!(out.code, Some(125));
    assert!(out.err.contains("would change the host"), "{out:?}");
    assert!(!outside.exists());
}

fn big_pipes_pass_untouched(w: &World) {
    let mut child = w.inside(&[], &["cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes: Vec<u8> = (0..8_000_000u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&copy));
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(out == bytes);
}

fn signals_reach_the_command(w: &World) {
    for (signal, number) in [("TERM", 1), ("INT", 2), ("HUP", 3), ("USR1", 4), ("QUIT", 5)] {
        let script = format!("trap 'exit {number}' {signal}; echo ready; while :; do sleep 0.05; done");
        let mut child = w.inside(&[], &["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(number), "{signal}");
    }
}

fn a_stop_stops_the_launcher_and_goes_on_with_it(w: &World) {
    let script = "echo ready; kill -STOP $$; echo again";
    // A group of its own below this process is one that somebody could continue, whatever this process was started by; the
    // kernel stops no orphaned group (setpgid(2)).
    let mut command = w.inside(&[], &["sh", "-c", script]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().unwrap_or_default().chars().next()
    };
    wait_until("stopped", || state(child.id()) == Some('T'));
    assert!(Command::new("kill").args(["-s", "CONT", &child.id().to_string()]).status().unwrap().success());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "ready\nagain\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn the_death_of_the_launcher_leaves_nothing(w: &World) {
    for victim in ["launcher", "process 1"] {
        let mark = format!("7{}{}", std::process::id(), w.user.unwrap_or(0) % 10 + u32::from(victim == "launcher"));
        let script = format!("setsid sleep {mark} & sleep {mark} & echo ready; wait");
        let mut child = w.inside(&[], &["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        wait_until("both sleep", || count_processes(&mark) >= 2);
        let pid = match victim {
            "launcher" => child.id(),
            _ => {
                let children = format!("/proc/{0}/task/{0}/children", child.id());
                std::fs::read_to_string(children).unwrap().trim().parse().unwrap()
            }
        };
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        if victim != "launcher" {
            assert_eq!(status.code(), Some(125));
        }
        wait_until("all are gone", || count_processes(&mark) == 0);
    }
}

fn leftovers_end_with_the_command(w: &World) {
    let mark = format!("8{}{}", std::process::id(), w.user.unwrap_or(0) % 10);
    assert_eq!(w.shell(&format!("setsid sleep {mark} >/dev/null 2>&1 & exit 3")).code, Some(3));
    assert_eq!(count_processes(&mark), 0);
}

fn the_wall_time_ends_the_run(w: &World) {
    let begin = Instant::now();
    let out = w.shell_with(&["--wall", "300"], "sleep 30");
    assert_eq!(out.code, Some(124), "{out:?}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(w.shell_with(&["--wall", "20000"], "true").code, Some(0), "control");
}

fn ten_thousand_covers_are_quick(w: &World) {
    let folder = w.outside().join("many");
    std::fs::create_dir(&folder).unwrap();
    let names: Vec<String> = (0..10_000).map(|n| folder.join(format!("{n}.env")).display().to_string()).collect();
    for name in &names {
        std::fs::write(name, "s").unwrap();
    }
    let list = w.dir.path().join("list");
    std::fs::write(&list, names.join("\n")).unwrap();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let begin = Instant::now();
        let out = w.shell_with(&["--covers", list.to_str().unwrap()], &format!("cat {}", names[9_999]));
        best = best.min(begin.elapsed());
        assert_ne!(out.code, Some(0), "{out:?}");
        assert!(out.err.contains("Permission denied"), "{out:?}");
    }
    note(&format!("10,000 covers: {} ms from start to end", best.as_millis()));
    assert!(best < Duration::from_secs(3));
}

fn many_at_once_all_start(w: &World) {
    let mut children: Vec<_> = (0..40).map(|_| w.inside(&[], &["true"]).spawn().unwrap()).collect();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(10), "waited for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes of `sleep` with this argument.
fn count_processes(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    let matches = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        (line == format!("sleep\0{mark}\0").into_bytes()).then_some(())
    };
    entries.filter_map(matches).count()
}

fn rootly() -> bool {
    ringfence_sys::host::effective_ids().0 == 0
}

fn skip(why: &str) {
    note(&format!("skipped: {why}"));
}

fn note(text: &str) {
    println!("    {text}");
}

type Case = (&'static str, fn(&World));

macro_rules! cases {
    ($($name:path),* $(,)?) => { &[$((stringify!($name), $name)),*] };
}

const CASES: &[Case] = cases![
    exit_statuses_are_the_command_s_own,
    nothing_of_the_launcher_is_inherited_but_three_descriptors,
    a_standard_descriptor_leads_to_its_other_end_only,
    a_connection_of_the_host_stays_what_it_is,
    limits_of_process_1_cannot_be_set,
    no_privilege_is_left,
    nested_namespaces_and_mounts_fail,
    the_host_s_settings_cannot_be_written,
    files_outside_cannot_be_changed,
    what_is_covered_cannot_be_read,
    processes_outside_are_out_of_reach,
    temporary_folders_are_private,
    the_network_has_no_way_out_but_the_doors,
    a_server_inside_can_be_dialled,
    abstract_sockets_of_the_host_are_out_of_reach,
    a_wall_that_does_not_hold_stops_the_run,
    a_step_that_cannot_be_done_is_said_and_nothing_runs,
    big_pipes_pass_untouched,
    signals_reach_the_command,
    a_stop_stops_the_launcher_and_goes_on_with_it,
    the_death_of_the_launcher_leaves_nothing,
    leftovers_end_with_the_command,
    the_wall_time_ends_the_run,
    ten_thousand_covers_are_quick,
    many_at_once_all_start,
    terminal::it_is_a_terminal_of_its_own,
    terminal::it_has_the_size_and_follows_it,
    terminal::keys_make_signals,
    terminal::job_control_works_inside_and_outside,
    terminal::output_is_whole_and_the_settings_are_put_back,
];

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next() == Some(OsString::from("--box")) {
        return hand::main(words);
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let users: &[Option<u32>] = if rootly() { &[None, Some(ORDINARY)] } else { &[None] };
    let mut failed = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| wanted(name)) {
        for user in users {
            let who = user.map_or("", |_| " (as an ordinary user)");
            let world = World::new(*user).expect("a folder for the test");
            let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&world))).is_ok();
            println!("test {name}{who} ... {}", if ok { "ok" } else { "FAILED" });
            failed += u8::from(!ok);
        }
    }
    println!("\n{failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
