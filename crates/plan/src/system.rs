//! The parts of every sandbox that do not come from rules: `/proc`, `/sys`, `/dev`, and files that describe the machine.

use crate::fs_view::Kind;
use crate::layout::Want;
use crate::mounts::MountOp;
use crate::survey::{Survey, kernel};
use ringfence_policy::{HostPath, PathPattern, PathVerb};
use std::collections::BTreeSet;

/// Paths below `/proc` that concern the whole machine and are written to: settings, interrupts, buses, devices, file
/// systems, and the keys of the console.
const PROC_READ_ONLY: &[&str] = &["bus", "driver", "dynamic_debug", "fs", "irq", "mtrr", "sys", "sysrq-trigger"];

/// Paths below `/proc` that tell of the whole machine what no program needs: memory and its addresses, logs, keyrings,
/// timers of other processes. Programs such as ps(1), free(1), top(1), the JVM and Go read none of them.
const PROC_HIDDEN: &[&str] = &[
    "acpi",
    "asound",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "pagetypeinfo",
    "sched_debug",
    "scsi",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
    "vmcore",
];

/// Paths of sysfs that hold firmware, tracing, security modules, other file systems' controls, or addresses of the
/// kernel. A launcher that is root could read them all: its files are mapped into the sandbox's user namespace.
const SYS_HIDDEN: &[&str] = &[
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/fuse/connections",
    "/sys/fs/pstore",
    "/sys/kernel/config",
    "/sys/kernel/debug",
    "/sys/kernel/notes",
    "/sys/kernel/security",
    "/sys/kernel/slab",
    "/sys/kernel/tracing",
    "/sys/kernel/vmcoreinfo",
];

/// File systems that reach the machine or other processes wherever they are mounted: a second `/proc` in a chroot shows
/// every process of the host.
const FOREIGN_TYPES: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nfsd",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "tracefs",
];

/// Nodes of `/dev` that every sandbox has.
const NODES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];

/// Puts nodes for what the kernel shows of the whole machine.
pub(crate) fn place(survey: &mut Survey<'_>) {
    let facts = survey.facts;
    let foreign = facts.mounts.iter().filter(|mount| {
        let usual = ["/proc", "/dev"].iter().any(|own| mount.point.is_within(&kernel(own)));
        !usual && FOREIGN_TYPES.contains(&mount.fs_type.as_str())
    });
    let foreign: Vec<_> = foreign.map(|mount| mount.point.clone()).collect();
    for path in SYS_HIDDEN.iter().map(|path| kernel(path)).chain(foreign) {
        let asked_for = survey.policy.files.rules.iter().any(|rule| {
            rule.verb == PathVerb::AllowRead
                && matches!(&rule.pattern, PathPattern::Subtree(base) if base.depth() > 0 && path.is_within(base))
        });
        if !asked_for
            && let Some((real, kind)) = survey.resolve(&path)
            && survey.layout.want(&real).is_host()
        {
            survey.layout.put(real, Want::Hidden, kind, "belongs to the whole machine");
        }
    }
}

/// The `/proc` of the sandbox. Rules below `/proc` move paths between the lists.
pub(crate) fn proc(survey: &Survey<'_>) -> MountOp {
    let mut hidden: BTreeSet<String> = PROC_HIDDEN.iter().map(|&path| path.to_owned()).collect();
    let mut read_only: BTreeSet<String> = PROC_READ_ONLY.iter().map(|&path| path.to_owned()).collect();
    let root = kernel("/proc");
    for rule in &survey.policy.files.rules {
        let PathPattern::Subtree(path) = &rule.pattern else { continue };
        if !path.is_within(&root) {
            continue;
        }
        let Ok(below) = path.as_path().strip_prefix(root.as_path()) else { continue };
        let below = below.to_string_lossy().into_owned();
        // `/proc` as a whole is not for a rule to hide: programs find themselves there.
        if below.is_empty() {
            continue;
        }
        match survey.word(path).want {
            Want::Hidden => {
                hidden.insert(below);
            }
            Want::ReadOnly if rule.verb == PathVerb::AllowRead && hidden.remove(&below) => {
                read_only.insert(below);
            }
            Want::ReadOnly | Want::Writable | Want::Private(_) => {}
        }
    }
    MountOp::Proc { read_only: read_only.into_iter().collect(), hidden: hidden.into_iter().collect() }
}

/// What is covered of the host's own `/proc` where no fresh one can be mounted.
pub(crate) fn proc_of_host(survey: &mut Survey<'_>) {
    for path in PROC_HIDDEN {
        let path = kernel("/proc").join(path);
        if let Some(kind) = survey.view.kind(&path).filter(|kind| *kind != Kind::Symlink) {
            survey.layout.put(path, Want::Hidden, kind, "belongs to the whole machine");
        }
    }
}

/// The nodes of `/dev`: the usual ones, and devices that a rule opens.
pub(crate) fn nodes(survey: &Survey<'_>) -> Vec<String> {
    let mut nodes: BTreeSet<String> = NODES.iter().map(|&node| node.to_owned()).collect();
    let dev = kernel("/dev");
    for rule in &survey.policy.files.rules {
        let PathPattern::Subtree(path) = &rule.pattern else { continue };
        if !path.is_within(&dev) || path.depth() != 2 {
            continue;
        }
        let Some(name) = path.file_name() else { continue };
        let name = name.to_string_lossy().into_owned();
        let want = survey.word(path).want;
        if want == Want::Hidden {
            nodes.remove(&name);
        } else if !rule.verb.is_deny() && want.is_host() && survey.view.kind(path) == Some(Kind::Other) {
            nodes.insert(name);
        }
    }
    nodes.into_iter().collect()
}

/// Files that describe the machine and must describe the sandbox.
pub(crate) fn files(survey: &Survey<'_>, resolver: &str) -> Vec<MountOp> {
    let facts = &survey.facts.resolver;
    let file = |target: &Option<HostPath>, content: String, why: &str| {
        target.clone().map(|target| MountOp::File { target, content, why: why.to_owned() })
    };
    let resolv = format!("nameserver {resolver}\n");
    let nsswitch = facts.nsswitch_text.as_deref().map(nsswitch);
    let mut out = Vec::new();
    out.extend(file(&facts.resolv_conf, resolv, "names are resolved by the sandbox"));
    out.extend(file(&facts.hosts, hosts(&facts.hostname), "the sandbox's own names"));
    out.extend(nsswitch.and_then(|text| file(&facts.nsswitch, text, "names are resolved by the sandbox")));
    out
}

/// The host's own entries would give addresses that no door knows.
fn hosts(hostname: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    if !hostname.is_empty() && hostname != "localhost" && hostname.chars().all(plain) {
        text.push_str("127.0.1.1 ");
        text.push_str(hostname);
        text.push('\n');
    }
    text
}

/// Keeps everything but the `hosts` line: other sources of it (`resolve`, `mdns`, `myhostname`, `nscd`) would ask programs
/// of the host, or answer with addresses that no door knows.
fn nsswitch(text: &str) -> String {
    let is_hosts =
        |line: &&str| line.split_once(':').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case("hosts"));
    let mut out: String = text.lines().filter(|line| !is_hosts(line)).map(|line| format!("{line}\n")).collect();
    out.push_str("hosts: files dns\n");
    out
}
