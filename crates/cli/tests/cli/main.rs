//! Whole commands: exit status, standard output and standard error, as root and as an ordinary user.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "a test says what is wrong by panicking, in its scenery as well"
)]

mod bad_hosts;
mod bad_input;
mod passthrough;
mod scene;
mod verbs;
