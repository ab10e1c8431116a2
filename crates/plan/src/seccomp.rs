//! The system call policy.
//!
//! Everything is allowed but for a list of calls that reach the machine as a whole, or that would build a second set of
//! walls around these. Denied calls fail with `EPERM` where the program would meet that without privilege as well, so
//! it goes on as it does in any container.

use crate::bpf::{self, Action, BpfError, Clause, Insn, Rule, Table, Test};
use serde::Serialize;
use std::collections::BTreeMap;

/// The filter, ready to be installed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeccompPlan {
    /// The compiled program.
    #[serde(skip)]
    pub program: Vec<Insn>,
    /// The rules that it was compiled from, for `explain`.
    pub rules: Vec<String>,
}

/// A machine whose call numbers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// The one that this program was compiled for; `None` where no table exists.
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// `AUDIT_ARCH_*` of linux/audit.h: ELF machine, 64-bit and little-endian marks.
    pub const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// First number of the x32 calls (`__X32_SYSCALL_BIT`).
    const fn kill_from(self) -> Option<u32> {
        match self {
            Self::X86_64 => Some(0x4000_0000),
            Self::Aarch64 => None,
        }
    }
}

/// A system call by name, with its number on each machine that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall {
    /// Its name.
    pub name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Syscall {
    /// Its number; `None` where the machine does not have it.
    pub const fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

const fn both(name: &'static str, x86_64: u32, aarch64: u32) -> Syscall {
    Syscall { name, x86_64: Some(x86_64), aarch64: Some(aarch64) }
}

const fn x86(name: &'static str, x86_64: u32) -> Syscall {
    Syscall { name, x86_64: Some(x86_64), aarch64: None }
}

const EPERM: u16 = 1;
const ENOSYS: u16 = 38;
const EPROTONOSUPPORT: u16 = 93;
const EOPNOTSUPP: u16 = 95;
const EAFNOSUPPORT: u16 = 97;

/// Calls that fail whatever their arguments, with the reason. Where the error is not `EPERM`, it is the one that makes
/// programs fall back to another way.
const DENIED: &[(Syscall, u16, &str)] = &[
    (both("io_uring_setup", 425, 425), EPERM, "its operations pass no filter"),
    (both("io_uring_enter", 426, 426), EPERM, "its operations pass no filter"),
    (both("io_uring_register", 427, 427), EPERM, "its operations pass no filter"),
    (both("add_key", 248, 217), EPERM, "keyrings are shared with the host"),
    (both("request_key", 249, 218), EPERM, "keyrings are shared with the host; runs a host program"),
    (both("keyctl", 250, 219), EPERM, "keyrings are shared with the host"),
    (both("bpf", 321, 280), EPERM, "loads code into the kernel"),
    (both("perf_event_open", 298, 241), EPERM, "observes the whole machine"),
    (both("userfaultfd", 323, 282), EPERM, "holds the kernel in the middle of a copy"),
    (both("kexec_load", 246, 104), EPERM, "replaces the kernel"),
    (both("kexec_file_load", 320, 294), EPERM, "replaces the kernel"),
    (x86("create_module", 174), EPERM, "loads code into the kernel"),
    (both("init_module", 175, 105), EPERM, "loads code into the kernel"),
    (both("finit_module", 313, 273), EPERM, "loads code into the kernel"),
    (both("delete_module", 176, 106), EPERM, "changes the kernel"),
    (x86("get_kernel_syms", 177), EPERM, "addresses of the kernel"),
    (x86("query_module", 178), EPERM, "addresses of the kernel"),
    (both("mount", 165, 40), EPERM, "changes what paths mean"),
    (both("umount2", 166, 39), EPERM, "would lift a cover"),
    (both("pivot_root", 155, 41), EPERM, "changes what paths mean"),
    (both("chroot", 161, 51), EPERM, "changes what paths mean"),
    (both("open_tree", 428, 428), EPERM, "changes what paths mean"),
    (both("move_mount", 429, 429), EPERM, "changes what paths mean"),
    (both("fsopen", 430, 430), EPERM, "makes mounts"),
    (both("fsconfig", 431, 431), EPERM, "makes mounts"),
    (both("fsmount", 432, 432), EPERM, "makes mounts"),
    (both("fspick", 433, 433), EPERM, "makes mounts"),
    (both("mount_setattr", 442, 442), EPERM, "would make a mount writable"),
    (both("open_tree_attr", 467, 467), EPERM, "changes what paths mean"),
    (both("setns", 308, 268), EPERM, "joins other namespaces"),
    // Its flags lie in memory, where a filter cannot look; with this error the C library calls clone(2) instead.
    (both("clone3", 435, 435), ENOSYS, "its flags cannot be checked"),
    (both("swapon", 167, 224), EPERM, "concerns the whole machine"),
    (both("swapoff", 168, 225), EPERM, "concerns the whole machine"),
    (both("reboot", 169, 142), EPERM, "concerns the whole machine"),
    (both("acct", 163, 89), EPERM, "concerns the whole machine"),
    (both("quotactl", 179, 60), EPERM, "concerns whole file systems"),
    (both("quotactl_fd", 443, 443), EPERM, "concerns whole file systems"),
    (both("settimeofday", 164, 170), EPERM, "concerns the whole machine"),
    (both("clock_settime", 227, 112), EPERM, "concerns the whole machine"),
    (both("sethostname", 170, 161), EPERM, "changes the sandbox's name"),
    (both("setdomainname", 171, 162), EPERM, "changes the sandbox's name"),
    (both("syslog", 103, 116), EPERM, "the kernel's log"),
    (both("lookup_dcookie", 212, 18), EPERM, "paths by number"),
    (both("nfsservctl", 180, 42), EPERM, "concerns the whole machine"),
    (x86("iopl", 172), EPERM, "reaches devices"),
    (x86("ioperm", 173), EPERM, "reaches devices"),
    (x86("modify_ldt", 154), EPERM, "16-bit segments, a frequent source of kernel faults"),
    (x86("uselib", 134), EPERM, "obsolete"),
    // What a file system without file handles answers; programs then go by path.
    (both("name_to_handle_at", 303, 264), EOPNOTSUPP, "files by number"),
    (both("open_by_handle_at", 304, 265), EPERM, "files by number, past every path rule"),
    (both("kcmp", 312, 272), EPERM, "addresses of the kernel"),
    (both("vhangup", 153, 58), EPERM, "concerns the terminal"),
];

const CLONE: Syscall = both("clone", 56, 220);
const UNSHARE: Syscall = both("unshare", 272, 97);
const PERSONALITY: Syscall = both("personality", 135, 92);
const IOCTL: Syscall = both("ioctl", 16, 29);
const PRLIMIT: Syscall = both("prlimit64", 302, 261);
const SOCKET: Syscall = both("socket", 41, 198);
const SOCKETPAIR: Syscall = both("socketpair", 53, 199);

/// Calls by which names are made or changed and Unix sockets reached: those that a listener can be asked about.
const BROKERED: &[Syscall] = &[
    x86("open", 2),
    both("openat", 257, 56),
    both("openat2", 437, 437),
    x86("creat", 85),
    x86("rename", 82),
    both("renameat", 264, 38),
    both("renameat2", 316, 276),
    x86("link", 86),
    both("linkat", 265, 37),
    x86("symlink", 88),
    both("symlinkat", 266, 36),
    x86("mkdir", 83),
    both("mkdirat", 258, 34),
    x86("mknod", 133),
    both("mknodat", 259, 33),
    x86("unlink", 87),
    both("unlinkat", 263, 35),
    x86("rmdir", 84),
    both("truncate", 76, 45),
    both("connect", 42, 203),
    both("bind", 49, 200),
];

// CLONE_NEW* of linux/sched.h but for CLONE_NEWTIME, whose bit belongs to the exit signal in clone(2).
const NAMESPACES: u32 = 0x7e02_0000;
const NEW_TIME: u32 = 0x80;

// Low four bits of a socket's type; above them are SOCK_NONBLOCK and SOCK_CLOEXEC (linux/net.h, SOCK_TYPE_MASK).
const TYPE_MASK: u32 = 0xf;
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const SEQPACKET: u32 = 5;

fn allow(tests: &[Test]) -> Clause {
    Clause { tests: tests.to_vec(), action: Action::Allow }
}

fn refuse(tests: &[Test], errno: u16) -> Clause {
    Clause { tests: tests.to_vec(), action: Action::Errno(errno) }
}

/// A call whose answer depends on its arguments: call, rule, the rule in words.
type Checked = (Syscall, Rule, &'static str);

/// Calls whose answer depends on their arguments.
fn checked() -> Vec<Checked> {
    let otherwise_allowed = |clauses| Rule { clauses, otherwise: Action::Allow };
    vec![
        (
            CLONE,
            otherwise_allowed(vec![refuse(&[Test::any_bit(0, NAMESPACES)], EPERM)]),
            "new namespaces: EPERM (their root could undo mounts)",
        ),
        (
            UNSHARE,
            otherwise_allowed(vec![refuse(&[Test::any_bit(0, NAMESPACES | NEW_TIME)], EPERM)]),
            "new namespaces: EPERM (their root could undo mounts)",
        ),
        (
            PERSONALITY,
            personality(),
            "ordinary, query, 32-bit, and without address randomisation (debuggers); else EPERM",
        ),
        (
            IOCTL,
            // The kernel takes the request as `unsigned int`: a request with high bits set is the same request.
            otherwise_allowed(vec![
                refuse(&[Test::is(1, 0x5412)], EPERM),
                refuse(&[Test::is(1, 0x541c)], EPERM),
                refuse(&[Test::is(1, 0x5423)], EPERM),
            ]),
            "TIOCSTI, TIOCLINUX (typing into a terminal), TIOCSETD (line disciplines): EPERM",
        ),
        (
            PRLIMIT,
            // Equal user numbers suffice for it (prlimit(2)), so it would reach process 1: a limit on its processor time
            // kills it, one on its descriptors stops the guard.
            Rule { clauses: vec![allow(&[Test::is(0, 0)])], otherwise: Action::Errno(EPERM) },
            "the caller's own limits; those of other processes: EPERM",
        ),
        (
            SOCKET,
            socket(),
            "TCP, UDP, Unix stream and seqpacket, routing netlink; else EAFNOSUPPORT, EPROTONOSUPPORT or EPERM",
        ),
        (
            SOCKETPAIR,
            Rule { clauses: unix_clauses(), otherwise: Action::Errno(EAFNOSUPPORT) },
            "Unix stream and seqpacket; datagram: EPERM (it can be sent to any path)",
        ),
    ]
}

fn personality() -> Rule {
    // PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE, and the query (linux/personality.h). READ_IMPLIES_EXEC and the page at
    // address 0 stay out of reach.
    let values = [0, 0x8, 0x4_0000, u32::MAX];
    Rule {
        clauses: values.iter().map(|value| allow(&[Test::is(0, *value)])).collect(),
        otherwise: Action::Errno(EPERM),
    }
}

/// A Unix datagram socket can be pointed at any path with every message (unix(7)), so no wall at connect(2) would hold
/// it; the kernel makes one from SOCK_RAW, too.
fn unix_clauses() -> Vec<Clause> {
    vec![
        allow(&[Test::is(0, AF_UNIX), Test::masked(1, TYPE_MASK, STREAM)]),
        allow(&[Test::is(0, AF_UNIX), Test::masked(1, TYPE_MASK, SEQPACKET)]),
        refuse(&[Test::is(0, AF_UNIX)], EPERM),
    ]
}

fn socket() -> Rule {
    let mut clauses = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let family = Test::is(0, family);
        // Protocol 0 is the type's own. Multipath TCP is what Go's servers ask for first; SCTP and others would load
        // modules of the host, and ICMP would be answered by the sandbox itself for every address.
        for (kind, protocol) in [(STREAM, 0), (STREAM, 6), (STREAM, 262), (DATAGRAM, 0), (DATAGRAM, 17)] {
            clauses.push(allow(&[family, Test::masked(1, TYPE_MASK, kind), Test::is(2, protocol)]));
        }
        clauses.push(refuse(&[family], EPERM));
    }
    clauses.extend(unix_clauses());
    // getifaddrs(3) needs NETLINK_ROUTE. What the others answer on a kernel without them is what libraries expect
    // (libaudit, libudev).
    clauses.push(allow(&[Test::is(0, AF_NETLINK), Test::is(2, 0)]));
    clauses.push(refuse(&[Test::is(0, AF_NETLINK)], EPROTONOSUPPORT));
    Rule { clauses, otherwise: Action::Errno(EAFNOSUPPORT) }
}

/// The table for a machine. `brokered` names the calls whose answer a listener gives where no rule refuses them.
///
/// # Errors
/// A name that no listener can be asked about.
pub fn table(arch: Arch, brokered: &[&str]) -> Result<Table, SeccompError> {
    let mut rules = BTreeMap::new();
    for (call, errno, _) in DENIED {
        if let Some(number) = call.number(arch) {
            rules.insert(number, Rule::always(Action::Errno(*errno)));
        }
    }
    for (call, rule, _) in checked() {
        if let Some(number) = call.number(arch) {
            rules.insert(number, rule);
        }
    }
    for name in brokered {
        let call =
            BROKERED.iter().find(|c| c.name == *name).ok_or_else(|| SeccompError::NotBrokered((*name).to_owned()))?;
        if let Some(number) = call.number(arch) {
            rules.insert(number, Rule::always(Action::Notify));
        }
    }
    Ok(Table { arch: arch.audit(), kill_from: arch.kill_from(), rules })
}

/// The filter for a machine; see [`table`].
///
/// # Errors
/// See [`table`] and [`bpf::compile`].
pub fn build(arch: Arch, brokered: &[&str]) -> Result<SeccompPlan, SeccompError> {
    let program = bpf::compile(&table(arch, brokered)?)?;
    let mut rules = vec!["calls of a foreign architecture or of x32: killed".to_owned()];
    for (call, errno, why) in DENIED {
        if call.number(arch).is_some() {
            rules.push(format!("{}: {} ({why})", call.name, errno_name(*errno)));
        }
    }
    for (call, _, words) in checked() {
        rules.push(format!("{}: {words}", call.name));
    }
    for name in brokered {
        rules.push(format!("{name}: asked"));
    }
    Ok(SeccompPlan { program, rules })
}

/// Why there is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeccompError {
    /// A call that no listener can be asked about.
    #[error("a listener cannot be asked about `{0}`")]
    NotBrokered(String),
    /// The rules cannot be compiled.
    #[error(transparent)]
    Compile(#[from] BpfError),
}

fn errno_name(errno: u16) -> &'static str {
    match errno {
        EPERM => "EPERM",
        ENOSYS => "ENOSYS",
        EPROTONOSUPPORT => "EPROTONOSUPPORT",
        EOPNOTSUPP => "EOPNOTSUPP",
        EAFNOSUPPORT => "EAFNOSUPPORT",
        _ => "an error",
    }
}
