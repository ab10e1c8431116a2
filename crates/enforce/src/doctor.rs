//! What this host can do, mechanism by mechanism, found by really trying each in a child that ends at once.
//!
//! The probe of the launch path foretells; this tries. It is for a person who asks why a wall cannot be built, so each row
//! carries what was found and what to do.

use crate::linux::launch::NAMESPACES;
use crate::store::Store;
use ringfence_plan::HostFacts;
use ringfence_plan::facts::{Availability, CgroupFacts};
use ringfence_policy::HostPath;
use ringfence_sys::clone::{IdMap, IdRange, MapOf, Namespace};
use ringfence_sys::file::Blocking;
use ringfence_sys::mount::{Attributes, Reach};
use ringfence_sys::netns::{Ipv6, Loopback};
use ringfence_sys::seccomp::Instruction;
use ringfence_sys::{
    SysError, attempt, caps, clone, file, landlock, mount, netns, pidfd, process, pty, seccomp, socket,
};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// How well a mechanism works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// As designed.
    Ok,
    /// Less than designed.
    Weaker,
    /// Not at all.
    Missing,
}

/// Whether the default wall can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// It cannot.
    Required,
    /// It can when the run accepts weaker walls (`--allow-weaker`).
    Acceptable,
    /// It can; the status of the run says so.
    Wanted,
}

/// One mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Whether the default wall can do without.
    pub need: Need,
    /// How well it works.
    pub status: Health,
    /// What was found.
    pub because: String,
    /// What to do, where it does not work as designed.
    pub remedy: Option<String>,
}

/// The whole examination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// One row for each mechanism, in the order in which a run uses them.
    pub rows: Vec<Row>,
    /// Whether the default wall can be built.
    pub can_build: bool,
    /// Whether a run that accepts weaker walls can be built.
    pub can_build_weaker: bool,
    /// The AppArmor profile that lifts Ubuntu's restriction for this program alone, where that is the remedy.
    pub apparmor_profile: Option<String>,
    /// How long it took.
    #[serde(rename = "millis", serialize_with = "as_millis")]
    pub took: Duration,
}

fn as_millis<S: serde::Serializer>(took: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

/// Everything that the default wall is made of needs at least this: mount_setattr(2).
const OLDEST_KERNEL: (u32, u32) = (5, 12);
/// The Landlock version with scopes for signals and abstract sockets (Linux 6.12).
const SCOPES_ABI: u32 = 6;
/// An address of TEST-NET-3 (RFC 5737), which belongs to nobody.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);
const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);
const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x65, 0xffff, 0, 0, 0, 0, 2);
/// `BPF_RET | BPF_K` with `SECCOMP_RET_ALLOW`.
const ALLOW_ALL: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };

/// Tries everything. `program` is this program's own path, for the AppArmor profile.
///
/// Must be called from a process with one thread: the children are copies of it (clone3(2)).
pub fn examine(facts: &HostFacts, store: &Store, program: Option<&Path>) -> Report {
    let start = Instant::now();
    let mut rows = vec![kernel(facts.kernel)];
    let ids = Ids { uid: facts.uid, gid: facts.gid };
    let namespaces = namespaces(ids, facts);
    let nested = namespaces.status == Health::Ok;
    rows.push(namespaces);
    if nested {
        rows.push(inside("read-only tree", ids, read_only_tree, "boot a kernel with mount_setattr(2), Linux 5.12"));
        rows.push(proc_row(ids, &facts.proc_mount));
        rows.push(inside("private /dev", ids, private_dev, "boot a kernel with CONFIG_DEVPTS_FS and CONFIG_TMPFS"));
        rows.push(inside("doors", ids, doors, "boot a kernel with CONFIG_INET and routing tables"));
        rows.push(inside("second lock", ids, second_lock, "nothing: seccomp forbids further user namespaces as well"));
        rows.push(inside("capabilities", ids, capabilities, "boot a kernel that can drop its bounding set"));
    }
    rows.push(landlock_row(facts.landlock_abi));
    rows.push(seccomp_row(&facts.seccomp));
    rows.push(terminal());
    rows.push(limits(&facts.cgroup));
    rows.push(own_files(store));
    let well = |needs: &[Need]| nested && rows.iter().all(|r| r.status == Health::Ok || !needs.contains(&r.need));
    let restricted = matches!(&facts.userns, Availability::No { why, .. } if why.contains("apparmor"));
    Report {
        can_build: well(&[Need::Required, Need::Acceptable]),
        can_build_weaker: well(&[Need::Required]),
        apparmor_profile: program.filter(|_| restricted).map(apparmor_profile),
        rows,
        took: start.elapsed(),
    }
}

/// A profile that confines nothing and allows user namespaces, for one program.
pub fn apparmor_profile(program: &Path) -> String {
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile ringfence \"{}\" flags=(unconfined) {{\n  userns,\n\n  \
         include if exists <local/ringfence>\n}}\n",
        program.display()
    )
}

#[derive(Debug, Clone, Copy)]
struct Ids {
    uid: u32,
    gid: u32,
}

fn row(name: &'static str, need: Need, tried: Result<String, String>, remedy: impl Into<String>) -> Row {
    match tried {
        Ok(because) => Row { name, need, status: Health::Ok, because, remedy: None },
        Err(because) => Row { name, need, status: Health::Missing, because, remedy: Some(remedy.into()) },
    }
}

fn remedy_of(available: &Availability) -> String {
    match available {
        Availability::Yes => "run ringfence outside of this container".to_owned(),
        Availability::No { remedy, .. } => remedy.clone(),
    }
}

fn kernel(found: (u32, u32)) -> Row {
    let (major, minor) = found;
    let tried = if found >= OLDEST_KERNEL {
        Ok(format!("Linux {major}.{minor}"))
    } else {
        Err(format!("Linux {major}.{minor} is older than {}.{}", OLDEST_KERNEL.0, OLDEST_KERNEL.1))
    };
    row("kernel", Need::Required, tried, "boot a newer kernel")
}

/// All namespaces at once, as a run makes them, and a mount inside: under AppArmor's restriction the first succeeds and
/// the second does not.
fn namespaces(ids: Ids, facts: &HostFacts) -> Row {
    let tried = in_namespaces(ids, || {
        let tree = mount::new_filesystem("tmpfs", &[], Attributes::NO_DEV).map_err(text)?;
        mount::attach(tree, file::open_path(Path::new("/")).map_err(text)?).map_err(text)?;
        Ok("user, mount, process, network, IPC, UTS and cgroup namespaces".to_owned())
    });
    let refused = "the kernel refuses: this is a chroot, or a filter or security module of a container forbids it";
    row("namespaces", Need::Required, explained(tried, &facts.userns, Some(refused)), remedy_of(&facts.userns))
}

/// The foretelling knows the reason; the kernel says only `EPERM`.
fn explained(tried: Result<String, String>, known: &Availability, unknown: Option<&str>) -> Result<String, String> {
    tried.map_err(|error| match (known, unknown) {
        (Availability::No { why, .. }, _) => format!("{why} ({error})"),
        (Availability::Yes, Some(why)) => format!("{why} ({error})"),
        (Availability::Yes, None) => error,
    })
}

fn proc_row(ids: Ids, known: &Availability) -> Row {
    let tried = explained(in_namespaces(ids, fresh_proc), known, None);
    row("fresh /proc", Need::Acceptable, tried, remedy_of(known))
}

fn inside(name: &'static str, ids: Ids, body: fn() -> Result<String, String>, remedy: impl Into<String>) -> Row {
    let need = if name == "second lock" { Need::Wanted } else { Need::Required };
    row(name, need, in_namespaces(ids, body), remedy)
}

fn read_only_tree() -> Result<String, String> {
    let root = mount::root().map_err(text)?;
    let all = Attributes::READ_ONLY | Attributes::NO_SUID | Attributes::NO_DEV;
    mount::set_attributes(root, all, Reach::Tree).map_err(text)?;
    match attempt::create_named(Path::new("/tmp/.ringfence-doctor")) {
        Ok(()) => Err("a file could be made although everything was set read-only".to_owned()),
        Err(_) => Ok("the whole tree at once, by mount_setattr(2)".to_owned()),
    }
}

fn mount_proc() -> Result<(), String> {
    let attributes = Attributes::NO_SUID | Attributes::NO_DEV | Attributes::NO_EXEC;
    let proc = mount::new_filesystem("proc", &[], attributes).map_err(text)?;
    mount::attach(proc, file::open_path(Path::new("/proc")).map_err(text)?).map_err(text)
}

fn fresh_proc() -> Result<String, String> {
    mount_proc()?;
    match file::link_target(
        file::open_path_at_link(file::open_path(Path::new("/proc")).map_err(text)?, "self".as_ref()).map_err(text)?,
    ) {
        Ok(own) if own == "1" => Ok("shows the sandbox's own processes only".to_owned()),
        Ok(own) => Err(format!("it shows this process as {}", own.display())),
        Err(error) => Err(text(error)),
    }
}

fn private_dev() -> Result<String, String> {
    let none = Attributes::NO_SUID | Attributes::NO_EXEC;
    let dev = mount::new_filesystem("tmpfs", &[("mode", "755")], none).map_err(text)?;
    mount::attach(dev, file::open_path(Path::new("/dev")).map_err(text)?).map_err(text)?;
    let dir = file::open_path(Path::new("/dev")).map_err(text)?;
    file::make_dir_at(&dir, "pts", 0o755).map_err(text)?;
    let pts = mount::new_filesystem("devpts", &[("ptmxmode", "666"), ("mode", "620")], none).map_err(text)?;
    mount::attach(pts, file::open_path(Path::new("/dev/pts")).map_err(text)?).map_err(text)?;
    pty::open(Path::new("/dev/pts/ptmx")).map_err(text)?;
    Ok("with terminals of its own".to_owned())
}

/// A connection to an address that belongs to nobody must arrive at our listener with that address.
fn doors() -> Result<String, String> {
    let ipv6 = netns::set_up(Loopback::EveryAddress { v4: SOURCE_V4, v6: SOURCE_V6 }).map_err(text)?;
    let listener = netns::listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 443)).map_err(text)?;
    let destination = SocketAddr::new(IpAddr::V4(ELSEWHERE), 443);
    let _client = netns::dial(destination, std::time::Duration::from_millis(100)).map_err(text)?;
    let taken = netns::accept(listener).map_err(text)?.ok_or("a connection did not arrive")?;
    let seen = netns::local_address(taken).map_err(text)?;
    if seen != destination {
        return Err(format!("a connection to {destination} arrived as one to {seen}"));
    }
    Ok(match ipv6 {
        Ipv6::Available => "every address arrives at the doors, IPv4 and IPv6".to_owned(),
        Ipv6::Missing => "every IPv4 address arrives at the doors; this kernel has no IPv6".to_owned(),
    })
}

fn second_lock() -> Result<String, String> {
    mount_proc()?;
    file::write_existing("/proc/sys/user/max_user_namespaces", b"0").map_err(text)?;
    match attempt::new_user_namespace() {
        Ok(()) => Err("a further user namespace could be made".to_owned()),
        Err(_) => Ok("user.max_user_namespaces is 0 inside".to_owned()),
    }
}

fn capabilities() -> Result<String, String> {
    caps::drop_all().map_err(text)?;
    match attempt::mount(Path::new("/")) {
        Ok(()) => Err("a mount worked without capabilities".to_owned()),
        Err(_) => Ok("all dropped, the bounding set empty".to_owned()),
    }
}

fn landlock_row(abi: u32) -> Row {
    let name = "landlock";
    if abi == 0 {
        let why = "this kernel has no Landlock, or it is not in its list of security modules".to_owned();
        return row(
            name,
            Need::Acceptable,
            Err(why),
            "boot with lsm=landlock,... (CONFIG_SECURITY_LANDLOCK, Linux 5.13)",
        );
    }
    let scopes = if abi >= SCOPES_ABI { landlock::Scopes::Enforced } else { landlock::Scopes::Off };
    let tried = in_child(&[], || {
        process::no_new_privileges().map_err(text)?;
        landlock::restrict(abi, &[], scopes).map_err(text)?;
        match attempt::read(Path::new("/etc/passwd")) {
            Ok(()) => Err("a file could be read although nothing was granted".to_owned()),
            Err(_) => Ok(format!("ABI {abi}")),
        }
    });
    let mut row = row(name, Need::Acceptable, tried, "boot a newer kernel");
    if row.status == Health::Ok && abi < SCOPES_ABI {
        row.status = Health::Weaker;
        row.because = format!("ABI {abi} has no scopes for signals and abstract sockets; namespaces hold there alone");
        row.remedy = Some("boot Linux 6.12 or later".to_owned());
    }
    row
}

fn seccomp_row(known: &Availability) -> Row {
    let tried = in_child(&[], || {
        process::no_new_privileges().map_err(text)?;
        seccomp::install(&[ALLOW_ALL]).map_err(text)?;
        seccomp::install_with_listener(&[ALLOW_ALL]).map_err(text)?;
        Ok("filters and user notification".to_owned())
    });
    row("seccomp", Need::Required, tried, remedy_of(known))
}

fn terminal() -> Row {
    let tried = pty::open(Path::new("/dev/ptmx")).map(|_| "can be made".to_owned()).map_err(text);
    row("terminal", Need::Wanted, tried, "mount devpts at /dev/pts, or run with --no-pty")
}

fn limits(cgroup: &CgroupFacts) -> Row {
    let (status, because, remedy) = match cgroup {
        CgroupFacts::Delegated { path, controllers } => {
            (Health::Ok, format!("{} of {path}", controllers.join(", ")), None)
        }
        CgroupFacts::None { why } => (
            Health::Weaker,
            format!("{why}: limits are per process (setrlimit), not over the whole run"),
            Some(
                "start it in a delegated group: systemd-run --user --scope -p Delegate=yes ringfence run ..."
                    .to_owned(),
            ),
        ),
    };
    Row { name: "limits", need: Need::Wanted, status, because, remedy }
}

fn own_files(store: &Store) -> Row {
    let (tried, remedy) = match store.decoy().and_then(|_| store.homes()) {
        Ok(homes) => (Ok(format!("{}; {} private homes", shown(store.state_dir()), homes.len())), String::new()),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}")).unwrap_or_default();
            (Err(format!("{error}{cause}")), error.hint())
        }
    };
    row("own files", Need::Required, tried, remedy)
}

fn shown(path: &HostPath) -> String {
    path.to_string()
}

fn text(error: SysError) -> String {
    error.to_string()
}

/// Runs `body` as process 1 of fresh namespaces, with the id map that a run of this user has.
fn in_namespaces(ids: Ids, body: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    in_child(&NAMESPACES, move || {
        clone::deny_setgroups(MapOf::Own).map_err(text)?;
        let one = |id: u32| [IdRange { inside: id, outside: id, count: 1 }];
        clone::write_ids(MapOf::Own, IdMap::Users, &one(ids.uid)).map_err(text)?;
        clone::write_ids(MapOf::Own, IdMap::Groups, &one(ids.gid)).map_err(text)?;
        body()
    })
}

/// Runs `body` in a child and brings its words back. Whatever the child did to itself ends with it.
fn in_child(namespaces: &[Namespace], body: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let (ours, theirs) = socket::pair().map_err(text)?;
    let child = clone::spawn(namespaces, None, || {
        let (mark, words) = match body() {
            Ok(words) => ('+', words),
            Err(words) => ('-', words),
        };
        let message: String = std::iter::once(mark).chain(words.chars().take(1000)).collect();
        match socket::send(&theirs, message.as_bytes(), &[]) {
            Ok(()) => 0,
            Err(_) => 1,
        }
    })
    .map_err(text)?;
    drop(theirs);
    let answer = socket::receive(&ours, Blocking::Yes).map_err(text);
    let ended = pidfd::collect(&child.pidfd, Blocking::Yes).map_err(text);
    let bytes = answer?.map(|received| received.bytes).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes).into_owned();
    match words.split_at_checked(1) {
        Some(("+", words)) => Ok(words.to_owned()),
        Some((_, words)) => Err(words.to_owned()),
        None => Err(format!("the child that tried it ended without a word: {:?}", ended?)),
    }
}
