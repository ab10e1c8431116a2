//! Runs a command with a time limit and collects what it said.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a command left behind.
#[derive(Debug, Clone, Default)]
pub struct Ran {
    /// Exit status, or 128 plus the number of the signal that ended it.
    pub status: i32,
    pub timed_out: bool,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Ran {
    pub fn ok(&self) -> bool {
        self.status == 0 && !self.timed_out
    }

    /// Status and the ends of both streams, for messages.
    pub fn show(&self) -> String {
        let end = |s: &str| {
            let from = s.char_indices().rev().nth(1199).map_or(0, |(i, _)| i);
            s[from..].trim().to_owned()
        };
        let late = if self.timed_out { ", timed out" } else { "" };
        format!(
            "status {}{late} after {:.1} s\n  stdout: {}\n  stderr: {}",
            self.status,
            self.took.as_secs_f32(),
            end(&self.out),
            end(&self.err)
        )
    }
}

pub fn status_number(s: ExitStatus) -> i32 {
    s.code().or_else(|| s.signal().map(|n| 128 + n)).unwrap_or(-1)
}

/// Waits until the child ends or the limit is over; then its process group is killed.
pub fn wait(child: &mut Child, limit: Duration) -> (i32, bool) {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(s)) => return (status_number(s), false),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                kill_group(child);
                return (child.wait().map_or(-1, status_number), true);
            }
        }
    }
}

pub fn kill_group(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), signal);
}

/// Runs to the end with nothing on standard input.
pub fn run(command: &mut Command, limit: Duration) -> Ran {
    run_with(command, limit, Input::Nothing)
}

/// What stands on standard input.
#[derive(Debug, Clone, Copy)]
pub enum Input {
    Nothing,
    Zeros(u64),
    Text(&'static str),
}

pub fn run_with(command: &mut Command, limit: Duration, input: Input) -> Ran {
    let start = Instant::now();
    let stdin = if matches!(input, Input::Nothing) { Stdio::null() } else { Stdio::piped() };
    let spawned = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = match spawned {
        Ok(c) => c,
        Err(e) => {
            return Ran {
                status: -1,
                err: format!("could not start {:?}: {e}", command.get_program()),
                ..Ran::default()
            };
        }
    };
    if let Some(mut pipe) = child.stdin.take() {
        std::thread::spawn(move || {
            let _ = match input {
                Input::Zeros(n) => std::io::copy(&mut std::io::repeat(0).take(n), &mut pipe).map(drop),
                Input::Text(t) => pipe.write_all(t.as_bytes()),
                Input::Nothing => Ok(()),
            };
        });
    }
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let (status, timed_out) = wait(&mut child, limit);
    // A survivor may hold the pipes: what it would still say is not waited for.
    let out = collect(&out);
    let err = collect(&err);
    Ran { status, timed_out, out, err, took: start.elapsed() }
}

type Drained = (std::sync::mpsc::Receiver<()>, std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

fn drain(pipe: Option<impl Read + Send + 'static>) -> Drained {
    let (done, finished) = std::sync::mpsc::channel();
    let bytes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = bytes.clone();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut part = [0_u8; 65536];
            while let Ok(n @ 1..) = pipe.read(&mut part) {
                if let Ok(mut all) = sink.lock() {
                    all.extend_from_slice(&part[..n]);
                }
            }
            let _ = done.send(());
        });
    }
    (finished, bytes)
}

fn collect((finished, bytes): &Drained) -> String {
    let _ = finished.recv_timeout(Duration::from_secs(3));
    bytes.lock().map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

/// Runs with both streams into one file, as the log of an attempt.
pub fn run_into(
    command: &mut Command,
    log: &Path,
    limit: Duration,
    kill_after: Option<Duration>,
) -> std::io::Result<Ran> {
    let start = Instant::now();
    let file = File::create(log)?;
    let mut child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0).spawn()?;
    if let Some(after) = kill_after {
        std::thread::sleep(after);
        signal(&child, rustix::process::Signal::KILL);
        std::thread::sleep(Duration::from_millis(1500));
    }
    let (status, timed_out) = wait(&mut child, limit);
    Ok(Ran { status, timed_out, took: start.elapsed(), ..Ran::default() })
}
