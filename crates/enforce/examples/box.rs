//! Runs a program behind the walls of a plan that is made by hand: for trying this crate without a policy.
//!
//! `box WORKDIR PROGRAM [ARGS...]`

use ringfence_enforce::{Command, IoSetup, spawn};
use ringfence_plan::landlock::AccessSet;
use ringfence_plan::mounts::{MountFlags, MountOp};
use ringfence_plan::proof::{Attempt, Row};
use ringfence_plan::seccomp::Arch;
use ringfence_plan::{DoorsPlan, GuardPlan, Identity, LandlockPlan, LimitsPlan, Plan, ProofPlan, SeccompPlan};
use ringfence_policy::HostPath;

fn path(p: &str) -> HostPath {
    HostPath::new(p).unwrap_or_else(|_| HostPath::root())
}

/// The filter of this machine, with the guard over connect(2).
fn seccomp() -> SeccompPlan {
    let built = Arch::native().map(|arch| ringfence_plan::seccomp::build(arch, &["connect"]));
    built.and_then(Result::ok).unwrap_or(SeccompPlan { program: Vec::new(), rules: Vec::new() })
}

fn plan(work: &str) -> Plan {
    let (uid, gid) = ringfence_sys::host::effective_ids();
    let flags = MountFlags::default();
    let tmpfs = |p: &str| MountOp::Tmpfs { target: path(p), mode: 0o1777, size: 1 << 28, flags };
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let row = |name: &str, attempt, must_work| Row { name: name.to_owned(), attempt, must_work };
    let read = |p: &str| (path(p), AccessSet::Read);
    Plan {
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
            MountOp::CoverDir { target: path("/etc/ssl/private"), why: "demonstration".to_owned() },
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
        cwd: path(work),
        doors: DoorsPlan {
            enabled: true,
            transparent: vec![80, 443],
            http: 3128,
            socks: 1080,
            host_ports: Vec::new(),
            publish: Vec::new(),
        },
        limits: LimitsPlan::default(),
        proof: ProofPlan {
            enabled: std::env::var_os("BOX_NO_PROOF").is_none(),
            rows: vec![
                row("write outside", Attempt::CreateIn(path("/usr")), false),
                row("write inside", Attempt::CreateIn(path(work)), true),
                row("tcp of the host", Attempt::HostTcp, false),
                row("udp of the host", Attempt::HostUdp, false),
                row("abstract socket of the host", Attempt::HostAbstract, false),
                row("door", Attempt::Connect("127.0.0.1".to_owned(), 3128), true),
                row("nested user namespace", Attempt::NewUserNamespace, false),
                row("io_uring", Attempt::IoUring, false),
                row("process 1", Attempt::TraceInit, false),
                row("launcher", Attempt::SignalLauncher, false),
                row("mount", Attempt::Mount, false),
            ],
        },
        status: Vec::new(),
    }
}

fn main() -> std::process::ExitCode {
    use std::io::Write as _;
    let mut args = std::env::args_os().skip(1);
    let (Some(work), Some(program)) = (args.next().and_then(|w| w.into_string().ok()), args.next()) else {
        let _ = writeln!(std::io::stderr(), "usage: box WORKDIR PROGRAM [ARGS...]");
        return 2.into();
    };
    let command = Command { program, args: args.collect() };
    let outcome = spawn(&plan(&work), &command, IoSetup::default()).and_then(|running| running.wait_blocking());
    match outcome {
        Ok(outcome) => {
            if std::env::var_os("BOX_DEBUG").is_some() {
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
