//! House checks, generated files, tests and benchmarks: `cargo xtask <task>`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool: its output is its purpose")]

mod bench;
mod generate;
mod layering;
mod run;
mod sizes;
mod tests;

use anyhow::{Result, bail};
use std::path::PathBuf;

const USAGE: &str = "usage: cargo xtask <task>

  check               format, clippy, layering, sizes, drift of generated files, licences
  test [--quick]      install test peers, build, run every test (--quick: without the end-to-end suite)
  layering            the crates use each other only along the arrows of docs/architecture.md
  sizes               no file above 600 lines before its tests
  generate [--check]  schema, man pages, completions, diagnostics; --check fails on drift
  bench [--write]     ringfence beside its peers, interleaved; --write renews docs/performance.md
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = root()?;
    let has = |flag: &str| args.iter().skip(1).any(|a| a == flag);
    match args.first().map(String::as_str) {
        Some("check") => check(&root),
        Some("test") => tests::run(&root, has("--quick")),
        Some("layering") => layering::check(&root),
        Some("sizes") => sizes::check(&root),
        Some("generate") => generate::run(&root, has("--check")),
        Some("bench") => bench::run(&root, has("--write")),
        // Not for people: what `bench` runs inside a sandbox.
        Some("bench-client") => bench::client(args.get(1..).unwrap_or_default()),
        Some("help" | "--help" | "-h") | None => {
            print!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("no task `{other}`\n\n{USAGE}"),
    }
}

fn check(root: &std::path::Path) -> Result<()> {
    run::cargo(root, &["fmt", "--all", "--check"])?;
    layering::check(root)?;
    sizes::check(root)?;
    run::cargo(
        root,
        &["clippy", "--workspace", "--all-targets", "--all-features", "--locked", "--", "-D", "warnings"],
    )?;
    generate::run(root, true)?;
    run::ensure_cargo_deny(root)?;
    // Advisories need a database from the network and are left to a scheduled job; the rest needs nothing.
    run::cargo(root, &["deny", "--locked", "check", "licenses", "bans", "sources"])
}

fn root() -> Result<PathBuf> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    match manifest.parent() {
        Some(parent) => Ok(parent.to_owned()),
        None => bail!("{} has no parent", manifest.display()),
    }
}
