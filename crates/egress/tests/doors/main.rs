//! The threat table of the egress path, two-sided over loopback: the client gets the documented refusal **and** no server
//! sees a byte; beside every refusal stands the same thing allowed, so that "nothing works" cannot pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "an integration test is one crate of test code"
)]

mod addresses;
mod bounds;
mod names;
mod ports;
mod requests;
mod rig;
mod spoken;
mod targets;
mod upstream;
