//! Turns a plan into a running process.

pub mod probe;
pub mod store;
