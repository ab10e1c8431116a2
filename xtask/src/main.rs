//! House checks, generated files and benchmarks: `cargo xtask <task>`.
fn main() {}
