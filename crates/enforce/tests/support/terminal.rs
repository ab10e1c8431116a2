//! The terminal: each case holds the other end of a terminal in which a shell or the sandbox runs.

use super::World;
use ringfence_sys::event::{Interest, wait};
use ringfence_sys::pty::{self, Pty, Winsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A terminal, and who runs in it.
struct Screen {
    master: File,
    child: Child,
    seen: String,
}

impl Screen {
    /// Runs a command as the leader of a session of its own, with this terminal in control.
    fn run(command: &Command) -> Self {
        let Pty { master, slave } = pty::open(Path::new("/dev/ptmx")).expect("a terminal");
        pty::set_size(&master, Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let end = || Stdio::from(slave.try_clone().expect("a copy"));
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        if let Some(dir) = command.get_current_dir() {
            session.current_dir(dir);
        }
        let child = session.stdin(end()).stdout(end()).stderr(end()).env("PS1", "$ ").spawn().expect("started");
        Self { master: File::from(master), child, seen: String::new() }
    }

    fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("typed");
    }

    fn read_some(&mut self, limit: Duration) -> bool {
        let ready = wait(&[(self.master.as_fd(), Interest::Read)], Some(limit)).expect("waited");
        if ready.first() != Some(&true) {
            return false;
        }
        let mut buffer = [0; 65536];
        let Ok(n) = self.master.read(&mut buffer) else { return false };
        self.seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
        n > 0
    }

    /// Reads until this text was shown; what was shown up to it is forgotten.
    fn expect(&mut self, text: &str) -> String {
        let begin = Instant::now();
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "waited for {text:?} in {:?}", self.seen);
            self.read_some(Duration::from_millis(200));
        }
    }

    fn end(mut self) -> (Option<i32>, String) {
        let begin = Instant::now();
        loop {
            self.read_some(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("waited") {
                while self.read_some(Duration::from_millis(50)) {}
                return (status.code(), std::mem::take(&mut self.seen));
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "waited for the end: {:?}", self.seen);
        }
    }
}

/// The session runs as whoever the test runs as: a terminal belongs to its opener.
fn inside(w: &World, program: &[&str]) -> Command {
    w.inside(&[], program)
}

fn is_other_user(w: &World) -> bool {
    w.user.is_some()
}

pub(crate) fn it_is_a_terminal_of_its_own(w: &World) {
    if is_other_user(w) {
        return super::skip("a terminal belongs to its opener");
    }
    let free = Screen::run(Command::new("sh").args(["-c", "tty"])).end().1;
    let script = "test -t 0 && test -t 1 && test -t 2 && tty && echo hello > /dev/tty && ps -o tpgid= -p $$";
    let (code, out) = Screen::run(&inside(w, &["sh", "-c", script])).end();
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("/dev/pts/0\r\nhello"), "{out}");
    assert!(free.contains("/dev/pts/"), "control");
    let piped = inside(w, &["sh", "-c", "test -t 1 || echo none"]).output().expect("ran");
    assert_eq!(piped.stdout, b"none\n");
    let (_, mixed) = Screen::run(Command::new("sh").args([
        "-c",
        &format!(
            "echo from-pipe | {} --box {} -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; cat'",
            w.program.display(),
            w.work().display()
        ),
    ]))
    .end();
    assert!(mixed.contains("1\r\n0\r\nfrom-pipe"), "{mixed:?}");
}

pub(crate) fn it_has_the_size_and_follows_it(w: &World) {
    if is_other_user(w) {
        return super::skip("a terminal belongs to its opener");
    }
    let script = "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done";
    let mut screen = Screen::run(&inside(w, &["sh", "-c", script]));
    screen.expect("33 99");
    screen.expect("ready");
    pty::set_size(&screen.master, Winsize { ws_row: 12, ws_col: 34, ws_xpixel: 0, ws_ypixel: 0 }).expect("resized");
    screen.expect("12 34");
    assert_eq!(screen.end().0, Some(0));
}

pub(crate) fn keys_make_signals(w: &World) {
    if is_other_user(w) {
        return super::skip("a terminal belongs to its opener");
    }
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let mut screen = Screen::run(&inside(w, &["sh", "-c", script]));
    screen.expect("ready");
    screen.type_keys("\x03");
    screen.expect("caught");
    assert_eq!(screen.end().0, Some(5));
    let mut screen = Screen::run(&inside(w, &["sh", "-c", "echo ready; cat"]));
    screen.expect("ready");
    screen.type_keys("line\n\x04");
    let (code, out) = screen.end();
    assert_eq!(code, Some(0));
    assert_eq!(out.matches("line").count(), 2, "{out}");
}

pub(crate) fn job_control_works_inside_and_outside(w: &World) {
    if is_other_user(w) {
        return super::skip("a terminal belongs to its opener");
    }
    // Inside: an interactive shell stops and continues a job of its own.
    let mut screen = Screen::run(&inside(w, &["bash", "--norc", "--noprofile", "-i"]));
    screen.expect("$ ");
    screen.type_keys("sleep 100\n");
    screen.expect("sleep 100");
    std::thread::sleep(Duration::from_millis(200));
    screen.type_keys("\x1a");
    screen.expect("Stopped");
    screen.type_keys("jobs; kill %1; fg; echo over-$((40+2))\n");
    let shown = screen.expect("over-42");
    assert!(!shown.contains("no job control"), "{shown}");
    screen.type_keys("exit 6\n");
    assert_eq!(screen.end().0, Some(6));

    // Outside: the sandbox itself is the job that an interactive shell stops and continues.
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    let mut screen = Screen::run(&shell);
    screen.expect("$ ");
    let line =
        format!("{} --box {} -- sh -c 'echo up; read x; echo got-$x'\n", w.program.display(), w.work().display());
    screen.type_keys(&line);
    screen.expect("\rup");
    std::thread::sleep(Duration::from_millis(200));
    screen.type_keys("\x1a");
    screen.expect("Stopped");
    screen.type_keys("stty -a | grep -o -- '-*icanon'; echo shell-$((40+2))\n");
    let shown = screen.expect("shell-42");
    assert!(shown.contains("\ricanon"), "the shell has its terminal back: {shown:?}");
    screen.type_keys("fg\n");
    std::thread::sleep(Duration::from_millis(300));
    screen.type_keys("typed\n");
    screen.expect("got-typed");
    screen.expect("$ ");
    screen.type_keys("exit 0\n");
    assert_eq!(screen.end().0, Some(0));
}

pub(crate) fn output_is_whole_and_the_settings_are_put_back(w: &World) {
    if is_other_user(w) {
        return super::skip("a terminal belongs to its opener");
    }
    let boxed = format!("{} --box {} --", w.program.display(), w.work().display());
    let ends = ["seq 1 20; stty raw -echo; echo last", "stty raw; kill -9 $$"];
    for end in ends {
        let script = format!("{boxed} sh -c '{end}'; echo status $?; stty -a | tr ' ' '\\n' | grep -x -- '-*icanon'");
        let (_, out) = Screen::run(Command::new("sh").args(["-c", &script])).end();
        assert!(out.contains("\nicanon"), "{out:?}");
        assert!(out.contains("status 0") || out.contains("status 137"), "{out:?}");
    }
    let (_, out) = Screen::run(&inside(w, &["seq", "1", "20000"])).end();
    let lines: Vec<&str> = out.split("\r\n").filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 20_000);
    assert_eq!(lines.last(), Some(&"20000"));
}
