//! Turns a plan into a running process.

pub mod audit;
pub mod probe;
pub mod store;
