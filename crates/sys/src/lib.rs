//! System calls, thin, safe and typed.
//!
//! This is the only crate with unsafe code. Numbers, paths and descriptors go in; descriptors and values come out; every
//! failure is a [`SysError`] that names the call, its arguments and the error number. It knows no policy, no plan and no
//! process model. Descriptors that it makes are all close-on-exec.
//!
//! | module | calls | oldest kernel |
//! |---|---|---|
//! | [`clone`] | `clone3`, id maps | 5.7 (`CLONE_INTO_CGROUP`) |
//! | [`mount`] | `fsopen`, `fsmount`, `open_tree`, `move_mount`, `mount_setattr` | 5.12 |
//! | [`file`](mod@file) | `openat2`, `mkdirat`, `symlinkat` | 5.6 |
//! | [`files`], [`host`] | our own files; questions that change nothing | 5.6 |
//! | [`seccomp`] | `seccomp`, user notification | 5.9 (`ADDFD`) |
//! | [`other`], [`listening`] | `process_vm_readv`, `pidfd_getfd`, sock_diag | 5.6 |
//! | [`landlock`] | `landlock_*` | 5.13; scopes 6.12 |
//! | [`netns`] | netlink, sockets inside a network namespace | 4.x |
//! | [`socket`] | socket pairs, `SCM_RIGHTS` | 4.x |
//! | [`process`] | `execve`, `wait4`, `prctl`, `close_range`, `keyctl` | 5.11 (`CLOSE_RANGE_CLOEXEC`) |
//! | [`signal`] | masks, `signalfd` | 2.6 |
//! | [`caps`], [`pidfd`], [`pty`], [`limit`], [`event`] | | 5.4 |

#[cfg(target_os = "linux")]
pub mod attempt;
#[cfg(target_os = "linux")]
pub mod caps;
#[cfg(target_os = "linux")]
pub mod clone;
mod error;
#[cfg(target_os = "linux")]
pub mod event;
#[cfg(target_os = "linux")]
pub mod file;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod limit;
#[cfg(target_os = "linux")]
pub mod listening;
#[cfg(target_os = "linux")]
pub mod mount;
#[cfg(target_os = "linux")]
pub mod netns;
#[cfg(target_os = "linux")]
pub mod other;
#[cfg(target_os = "linux")]
pub mod pidfd;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod pty;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(target_os = "linux")]
pub mod signal;
#[cfg(target_os = "linux")]
pub mod socket;

pub(crate) use error::{Context, failed, last_errno};
pub use error::{Errno, SysError};
