//! Starting programs, with the command in the error.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs `cargo` in the workspace; the one that started us, so that both are of one toolchain.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    start(root, &cargo, args, &[])
}

/// Runs `cargo test`, with paths in environment variables, and with every signal as a program expects it: a command in
/// the background of a script is started with SIGINT ignored, one below nohup(1) with SIGHUP; ringfence hands that on as
/// every launcher does, and tests that send signals would wait for ever.
pub(crate) fn cargo_test(root: &Path, args: &[&str], env: &[(&str, &Path)]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let cargo = cargo.to_string_lossy();
    let args: Vec<&str> = ["--default-signal", &*cargo, "test"].into_iter().chain(args.iter().copied()).collect();
    start(root, OsStr::new("env"), &args, env)
}

/// Runs a program and fails unless it ended with status 0.
pub(crate) fn program(root: &Path, program: impl AsRef<OsStr>, args: &[&str]) -> Result<()> {
    start(root, program.as_ref(), args, &[])
}

fn start(root: &Path, program: &OsStr, args: &[&str], env: &[(&str, &Path)]) -> Result<()> {
    let shown = format!("{} {}", program.to_string_lossy(), args.join(" "));
    println!("xtask: {shown}");
    let status = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed with {status}");
    }
    Ok(())
}

/// Runs a program and returns its standard output.
pub(crate) fn output(root: &Path, program: impl AsRef<OsStr>, args: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let shown = format!("{} {}", program.to_string_lossy(), args.join(" "));
    let out = Command::new(program)
        .args(args)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !out.status.success() {
        bail!("`{shown}` failed with {}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    String::from_utf8(out.stdout).with_context(|| format!("`{shown}` printed bytes that are not UTF-8"))
}

/// Installs cargo-deny where it is missing; it is a tool of the checks and no dependency of the program.
pub(crate) fn ensure_cargo_deny(root: &Path) -> Result<()> {
    if output(root, "cargo-deny", &["--version"]).is_ok() {
        return Ok(());
    }
    cargo(root, &["install", "cargo-deny", "--locked", "--quiet"])
}
