//! The wall of namespaces, mounts, Landlock and seccomp.

mod command;
mod doors;
pub(crate) mod error;
mod guard;
mod init;
pub(crate) mod launch;
pub(crate) mod message;
mod mounts;
mod ours;
mod plant;
mod prepare;
mod prove;
mod relay;
mod stdio;
pub(crate) mod supervise;
mod terminal;
