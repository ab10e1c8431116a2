//! Ringfence beside its peers, in one run: contenders take turns, so that a drift of the machine's speed meets all of
//! them alike; medians and minima are printed with the load.

mod start;
mod tunnel;
mod weight;

use crate::run;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) use tunnel::client;

/// Runs every benchmark and prints the report; with `write` it renews the measured part of `docs/performance.md`.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    run::cargo(root, &["build", "--release", "--locked", "-p", "ringfence-cli", "-p", "xtask"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("release").join("ringfence");
    let helper = target.join("release").join("xtask");
    let place = tempfile_dir(&target)?;
    let mut report = String::new();
    let _ = writeln!(report, "{}\n", machine()?);
    report.push_str(&start::run(&program, &target, &place)?);
    report.push_str(&weight::run(&program, &place)?);
    report.push_str(&tunnel::run(&program, &helper, &place)?);
    println!("{report}");
    if write {
        renew(&root.join("docs/performance.md"), &report)?;
    }
    Ok(())
}

fn tempfile_dir(target: &Path) -> Result<PathBuf> {
    let place = target.join("bench-workspace");
    if place.exists() {
        std::fs::remove_dir_all(&place).with_context(|| format!("cannot clear {}", place.display()))?;
    }
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

fn machine() -> Result<String> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read /proc/loadavg")?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's release")?;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load: Vec<&str> = load.split(' ').take(3).collect();
    Ok(format!("{cores} cores, Linux {}, load at start {}", kernel.trim(), load.join(" ")))
}

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

fn renew(file: &Path, report: &str) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (head, rest) = text.split_once(BEGIN).context("docs/performance.md has no begin mark")?;
    let (_, tail) = rest.split_once(END).context("docs/performance.md has no end mark")?;
    std::fs::write(file, format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", report.trim()))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Median and minimum of a sample.
pub(crate) fn median_min(sample: &mut [f64]) -> (f64, f64) {
    sample.sort_by(f64::total_cmp);
    (sample.get(sample.len() / 2).copied().unwrap_or(f64::NAN), sample.first().copied().unwrap_or(f64::NAN))
}
