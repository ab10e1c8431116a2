//! Turns a plan into a running process.

pub mod probe;
