//! The guard over connect(2): reaching a Unix socket needs no writable mount and knows no network namespace, so neither
//! of these walls holds it. Every connect(2) of the command waits at a listener here, and is made here, on a copy of the
//! caller's socket and with a copy of its address: what was judged is what is done, whatever the caller changes meanwhile.
//!
//! A socket of the sandbox's own network namespace may be reached, and a path that the policy lists; nothing else. The
//! server sees process 1 as its peer's number, and the caller's user and group.

use ringfence_policy::HostPath;
use ringfence_sys::file::Blocking;
use ringfence_sys::listening::{BoundFile, Listening};
use ringfence_sys::other::{self, Thread};
use ringfence_sys::seccomp::{self, Answer, Notification};
use ringfence_sys::{Errno, SysError, caps, socket};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// `sizeof(struct sockaddr_storage)`: the kernel takes no longer address.
const ADDRESS_MAX: usize = 128;
/// How many calls may wait for their peers at once; more are refused for the moment, as by a peer with a full queue.
const WAITING_MAX: usize = 256;
/// How many threads stay when there is nothing to wait for: making one costs more than most calls wait.
const KEPT: usize = 4;
/// Stack of a thread that only waits in connect(2), in bytes.
const STACK: usize = 64 << 10;

/// What may be reached besides the sandbox's own sockets.
struct Guard {
    listener: OwnedFd,
    allowed: Vec<HostPath>,
    /// The sandbox's own network; `None` where the kernel does not tell one from another, and no foreign socket is passed on.
    network: Option<u64>,
    waiting: Mutex<Waiting>,
    /// Something was put to the calls that no thread has taken.
    more: Condvar,
}

/// The threads that wait for peers.
#[derive(Default)]
struct Waiting {
    threads: usize,
    idle: usize,
    /// Never more than there are idle threads.
    calls: VecDeque<(u64, Made)>,
}

/// Starts the guard on a thread of process 1.
///
/// # Errors
/// The thread cannot be made.
pub(crate) fn start(listener: OwnedFd, allowed: Vec<HostPath>) -> Result<(), SysError> {
    let (sample, _) = socket::pair()?;
    let network = socket::network_of(&sample).ok();
    let guard = Arc::new(Guard { listener, allowed, network, waiting: Mutex::default(), more: Condvar::new() });
    std::thread::Builder::new()
        .name("guard".to_owned())
        .stack_size(STACK * 2)
        .spawn(move || serve(&guard))
        .map(drop)
        .map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::AGAIN, Errno::from_raw_os_error);
            SysError::new("clone3", "thread of the guard", errno)
        })
}

fn serve(guard: &Arc<Guard>) {
    // The calls are made as the caller would make them; only looking into it needs more (ptrace(2)).
    if caps::keep_tracing().is_err() {
        return;
    }
    let mut asker = None;
    loop {
        match seccomp::receive(&guard.listener) {
            Ok(Some(call)) => answer(guard, &mut asker, call),
            // A caller that is gone; or all of them are, and this would be told for ever.
            Ok(None) if seccomp::is_over(&guard.listener) => return,
            Ok(None) => {}
            // Without a listener every connect(2) inside fails with ENOSYS: closed.
            Err(_) => return,
        }
    }
}

fn answer(guard: &Arc<Guard>, asker: &mut Option<Listening>, call: Notification) {
    match prepare(guard, asker, &call) {
        Err(errno) => tell(guard, call.id, Err(errno)),
        Ok(made) if made.blocking == Blocking::No => tell(guard, call.id, made.connect()),
        Ok(made) => aside(guard, call.id, made),
    }
}

/// A call that waits for its peer waits on a thread of its own.
fn aside(guard: &Arc<Guard>, id: u64, made: Made) {
    let mut waiting = guard.waiting();
    if waiting.idle > waiting.calls.len() {
        waiting.calls.push_back((id, made));
        guard.more.notify_one();
        return;
    }
    if waiting.threads >= WAITING_MAX {
        drop(waiting);
        return tell(guard, id, Err(Errno::AGAIN));
    }
    waiting.threads += 1;
    drop(waiting);
    let mine = Arc::clone(guard);
    let spawned = std::thread::Builder::new().stack_size(STACK).spawn(move || wait_for_peers(&mine, id, made));
    if spawned.is_err() {
        guard.waiting().threads -= 1;
        tell(guard, id, Err(Errno::AGAIN));
    }
}

/// The life of a thread that waits for peers.
fn wait_for_peers(guard: &Guard, id: u64, made: Made) {
    let mut call = (id, made);
    loop {
        let (id, made) = call;
        tell(guard, id, made.connect());
        // The copy of the caller's socket must not outlive the call.
        drop(made);
        let mut waiting = guard.waiting();
        if waiting.idle >= KEPT {
            waiting.threads -= 1;
            return;
        }
        waiting.idle += 1;
        call = loop {
            match waiting.calls.pop_front() {
                Some(call) => break call,
                None => waiting = guard.more.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        };
        waiting.idle -= 1;
    }
}

impl Guard {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(guard: &Guard, id: u64, result: Result<(), Errno>) {
    let answer = match result {
        Ok(()) => Answer::Value(0),
        Err(errno) => Answer::Error(errno),
    };
    // A caller that is gone needs no answer.
    let _ = seccomp::respond(&guard.listener, id, answer);
}

/// A call that may be made.
struct Made {
    socket: OwnedFd,
    blocking: Blocking,
    address: Address,
}

/// Where to.
enum Address {
    /// The bytes that the caller gave.
    Given(Vec<u8>),
    /// The file of a Unix socket.
    File(OwnedFd),
}

impl Made {
    fn connect(&self) -> Result<(), Errno> {
        match &self.address {
            Address::Given(bytes) => other::connect(&self.socket, bytes),
            Address::File(file) => other::connect_unix(&self.socket, file),
        }
    }
}

fn prepare(guard: &Guard, asker: &mut Option<Listening>, call: &Notification) -> Result<Made, Errno> {
    let [number, pointer, length, ..] = call.args;
    let thread = Thread::new(call.pid).ok_or(Errno::SRCH)?;
    // Both are `int` to the kernel: the low halves of their registers.
    let number = low_half(number);
    let length = usize::try_from(low_half(length)).ok().filter(|n| *n <= ADDRESS_MAX).ok_or(Errno::INVAL)?;
    let socket = thread.descriptor(number).map_err(errno)?;
    let mut bytes = vec![0u8; length];
    if length > 0 {
        thread.read(pointer, &mut bytes).map_err(errno)?;
    }
    // A standard descriptor may be a connection of the host's: it stays what it is.
    if guard.network.is_some() && socket::network_of(&socket).map(Some)? != guard.network {
        return Err(Errno::ACCESS);
    }
    let blocking = other::waits(&socket)?;
    let address = match unix_path(&bytes) {
        None => Address::Given(bytes),
        Some(path) => Address::File(judge(guard, asker, thread, path)?),
    };
    // Only now: until here the number could have come to mean another process.
    if !seccomp::is_waiting(&guard.listener, call.id) {
        return Err(Errno::SRCH);
    }
    Ok(Made { socket, blocking, address })
}

/// The path of a Unix socket's address; `None` for other families, and for abstract and unnamed sockets, which belong
/// to the network namespace (unix(7)).
fn unix_path(address: &[u8]) -> Option<&OsStr> {
    let (family, path) = address.split_at_checked(2)?;
    let is_unix = u16::from_ne_bytes(family.try_into().ok()?) == 1;
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    (is_unix && !path.is_empty()).then(|| OsStr::from_bytes(path))
}

/// The file of a socket that may be reached.
fn judge(guard: &Guard, asker: &mut Option<Listening>, thread: Thread, path: &OsStr) -> Result<OwnedFd, Errno> {
    let path = Path::new(path);
    let base = thread.working_dir().map_err(errno)?;
    // Links of /proc that lead past the tree (`/proc/self/cwd`) would mean this process.
    let file = other::resolve(&base, path).map_err(errno)?;
    let own = listened_to(asker).map_err(errno)?;
    if own.contains(&BoundFile::of(&file).map_err(errno)?)
        || !own.is_empty() && own.contains(&BoundFile::by_mount(&file).map_err(errno)?)
    {
        return Ok(file);
    }
    let name = other::name(&file).map_err(errno)?;
    if guard.allowed.iter().any(|allowed| allowed.as_path() == name) {
        return Ok(file);
    }
    // A socket that nobody listens to answers as it would anywhere; one of the host's is none of the command's.
    Err(Errno::ACCESS)
}

/// The files of the sandbox's own sockets. The connection to the kernel is kept, unless it broke in mid-answer.
fn listened_to(asker: &mut Option<Listening>) -> Result<Vec<BoundFile>, SysError> {
    let open = match asker.take() {
        Some(open) => open,
        None => Listening::open()?,
    };
    let files = open.files()?;
    *asker = Some(open);
    Ok(files)
}

fn errno(error: SysError) -> Errno {
    error.errno
}

/// The low 32 bits, as the kernel reads an `int`.
fn low_half(register: u64) -> i32 {
    u32::try_from(register & u64::from(u32::MAX)).unwrap_or(u32::MAX).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_is_judged() {
        let address = |family: u16, path: &[u8]| [&family.to_ne_bytes()[..], path].concat();
        assert_eq!(unix_path(&address(1, b"/a/b\0rest")), Some(OsStr::new("/a/b")));
        assert_eq!(unix_path(&address(1, b"relative")), Some(OsStr::new("relative")));
        assert_eq!(unix_path(&address(1, b"\0abstract")), None);
        assert_eq!(unix_path(&address(1, b"")), None);
        assert_eq!(unix_path(&address(2, b"/a")), None);
        assert_eq!(unix_path(b"x"), None);
    }

    #[test]
    fn registers_are_read_as_the_kernel_reads_them() {
        assert_eq!(low_half(0xffff_ffff_0000_0005), 5);
        assert_eq!(low_half(0xffff_ffff), -1);
    }
}
