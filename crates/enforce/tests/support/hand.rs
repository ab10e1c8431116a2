//! A sandbox from a plan that is made by hand, for the tests of this crate and for trying it without a policy.

use ringfence_enforce::{Command, Happened, IoSetup, Listens, Running, spawn};
use ringfence_plan::landlock::AccessSet;
use ringfence_plan::mounts::{MountFlags, MountOp};
use ringfence_plan::proof::{Attempt, Row};
use ringfence_plan::seccomp::Arch;
use ringfence_plan::{DoorsPlan, GuardPlan, Identity, LandlockPlan, LimitsPlan, Plan, ProofPlan, SeccompPlan};
use ringfence_policy::HostPath;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// What the words before `--` ask for.
#[derive(Default)]
struct Asked {
    work: String,
    cover: Vec<String>,
    bad_row: bool,
    no_proof: bool,
    no_doors: bool,
    wall: Option<Duration>,
    cwd: Option<String>,
    serve: bool,
    dial: Option<u16>,
    make: Option<String>,
    verbose: bool,
}

fn parse(words: &mut impl Iterator<Item = OsString>) -> Option<Asked> {
    let mut asked = Asked { work: words.next()?.into_string().ok()?, ..Asked::default() };
    loop {
        let word = words.next()?.into_string().ok()?;
        let mut value = || words.next().and_then(|w| w.into_string().ok());
        match word.as_str() {
            "--" => return Some(asked),
            "--cover" => asked.cover.push(value()?),
            "--covers" => asked.cover.extend(std::fs::read_to_string(value()?).ok()?.lines().map(str::to_owned)),
            "--bad-row" => asked.bad_row = true,
            "--no-proof" => asked.no_proof = true,
            "--no-doors" => asked.no_doors = true,
            "--wall" => asked.wall = Some(Duration::from_millis(value()?.parse().ok()?)),
            "--cwd" => asked.cwd = value(),
            "--serve" => asked.serve = true,
            "--dial" => asked.dial = Some(value()?.parse().ok()?),
            "--make" => asked.make = value(),
            "--verbose" => asked.verbose = true,
            _ => return None,
        }
    }
}

fn path(p: &str) -> HostPath {
    HostPath::new(p).unwrap_or_else(|_| HostPath::root())
}

/// The filter of this machine, with the guard over connect(2).
fn seccomp() -> SeccompPlan {
    let built = Arch::native().map(|arch| ringfence_plan::seccomp::build(arch, &["connect"]));
    built.and_then(Result::ok).unwrap_or(SeccompPlan { program: Vec::new(), rules: Vec::new() })
}

fn plan(asked: &Asked) -> Plan {
    let work = asked.work.as_str();
    let (uid, gid) = ringfence_sys::host::effective_ids();
    let flags = MountFlags::default();
    let tmpfs = |p: &str| MountOp::Tmpfs { target: path(p), mode: 0o1777, size: 1 << 28, flags };
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let row = |name: &str, attempt, must_work| Row { name: name.to_owned(), attempt, must_work };
    let read = |p: &str| (path(p), AccessSet::Read);
    let cover = |p: &String| {
        let (target, why) = (path(p), "test".to_owned());
        if std::path::Path::new(p).is_dir() {
            MountOp::CoverDir { target, why }
        } else {
            MountOp::CoverFile { target, why }
        }
    };
    let made = |p: &String| MountOp::MakeDir { path: path(p), mode: 0o755 };
    let mut plan = Plan {
        identity: Identity { uid, gid, map_all: uid == 0 },
        prepare: Vec::new(),
        mounts: vec![
            MountOp::FreezeRoot,
            MountOp::Dev { nodes: strings(&["null", "zero", "full", "random", "urandom", "tty"]), shm_size: 1 << 26 },
            MountOp::Proc {
                read_only: strings(&["sys", "sysrq-trigger", "irq", "bus", "fs"]),
                hidden: strings(&["kcore", "keys", "timer_list"]),
            },
            tmpfs("/tmp"),
            tmpfs("/run"),
            MountOp::Bind { source: path(work), target: path(work), dir: true, flags, why: "workspace".to_owned() },
        ],
        landlock: LandlockPlan {
            abi: ringfence_sys::host::landlock_abi().min(7),
            rules: vec![
                read("/"),
                (path(work), AccessSet::Full),
                (path("/tmp"), AccessSet::Full),
                (path("/dev"), AccessSet::WriteExisting),
                (path("/dev/shm"), AccessSet::Full),
                (path("/proc"), AccessSet::WriteExisting),
            ],
            scopes: true,
        },
        seccomp: seccomp(),
        guard: Some(GuardPlan { allowed: Vec::new() }),
        env: std::env::vars_os().collect(),
        environment: Vec::new(),
        cwd: path(asked.cwd.as_deref().unwrap_or(work)),
        doors: DoorsPlan {
            enabled: !asked.no_doors,
            transparent: vec![80, 443],
            http: 3128,
            socks: 1080,
            host_ports: vec![5432],
            publish: Vec::new(),
        },
        limits: LimitsPlan { wall: asked.wall, ..LimitsPlan::default() },
        proof: ProofPlan {
            enabled: !asked.no_proof,
            rows: vec![
                row("write outside", Attempt::CreateIn(path("/usr")), false),
                row("write inside", Attempt::CreateIn(path(work)), true),
                row("tcp of the host", Attempt::HostTcp, false),
                row("udp of the host", Attempt::HostUdp, false),
                row("abstract socket of the host", Attempt::HostAbstract, false),
                row("door", Attempt::Connect("127.0.0.1".to_owned(), 3128), !asked.no_doors),
                row("nested user namespace", Attempt::NewUserNamespace, false),
                row("io_uring", Attempt::IoUring, false),
                row("process 1", Attempt::TraceInit, false),
                row("launcher", Attempt::SignalLauncher, false),
                row("mount", Attempt::Mount, false),
            ],
        },
        status: Vec::new(),
    };
    plan.mounts.extend(asked.cover.iter().map(cover));
    plan.mounts.extend(asked.make.iter().map(made));
    if asked.bad_row {
        plan.proof.rows.push(row("a wall that is not there", Attempt::Read(path("/etc/passwd")), false));
    }
    plan
}

/// `WORKDIR [WORDS...] -- PROGRAM [ARGS...]`
pub(crate) fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let asked = parse(&mut words);
    let (Some(asked), Some(program)) = (asked, words.next()) else {
        let _ = writeln!(std::io::stderr(), "usage: WORKDIR [WORDS...] -- PROGRAM [ARGS...]");
        return 2.into();
    };
    let command = Command { program, args: words.collect() };
    let running = spawn(&plan(&asked), &command, IoSetup::default());
    let outcome = running.and_then(|mut running| {
        if asked.verbose {
            let _ = writeln!(std::io::stderr(), "box: {:?}", running.proved());
        }
        if asked.serve {
            serve(&mut running);
        }
        if let Some(port) = asked.dial {
            dial(&mut running, port);
        }
        running.wait_blocking()
    });
    match outcome {
        Ok(outcome) => {
            if asked.verbose {
                let _ = writeln!(std::io::stderr(), "box: {outcome:?}");
            }
            outcome.exit_code().into()
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map_or_else(String::new, |c| format!(": {c}"));
            let hint = error.hint().map_or_else(String::new, |h| format!("\n  = help: {h}"));
            let _ = writeln!(std::io::stderr(), "box: {error}{cause}{hint}");
            error.exit_code().into()
        }
    }
}

/// Answers one connection at a transparent listener with the address that was dialled.
fn serve(running: &mut Running) {
    let listeners: Vec<std::net::TcpListener> = running
        .take_listeners()
        .into_iter()
        .filter(|l| matches!(l.listens, Listens::TransparentV4 | Listens::TransparentV6) && l.port == 443)
        .map(|l| std::net::TcpListener::from(l.fd))
        .collect();
    for _ in 0..2000 {
        for listener in &listeners {
            if let Ok((mut connection, peer)) = listener.accept() {
                let to = connection.local_addr().map_or_else(|e| e.to_string(), |a| a.to_string());
                let _ = writeln!(connection, "{to} from {}", peer.ip());
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads what a server inside says.
fn dial(running: &mut Running, port: u16) {
    use std::io::Read as _;
    let mut refused = 0;
    while refused < 400 {
        if running.dial(port).is_err() {
            return;
        }
        let mut answer = None;
        while answer.is_none() {
            let Ok(turn) = running.turn() else { return };
            for happened in turn.happened {
                match happened {
                    Happened::Dialed { connection, .. } => answer = Some(connection),
                    Happened::Finished(_) => return,
                    Happened::Stopped => {}
                }
            }
        }
        if let Some(Ok(fd)) = answer {
            let mut stream = std::net::TcpStream::from(fd);
            let mut text = String::new();
            let _ = stream.set_nonblocking(false);
            let _ = stream.read_to_string(&mut text);
            let _ = writeln!(std::io::stderr(), "dialled: {}", text.trim());
            return;
        }
        refused += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}
