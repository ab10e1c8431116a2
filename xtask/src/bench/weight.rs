//! Resident memory and processes of an idle sandbox.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) fn run(program: &Path, place: &Path) -> Result<String> {
    let mut child = Command::new(program)
        .args(["run", "--quiet", "--allow-host", "example.com", "--", "sleep", "20"])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start ringfence")?;
    let measured = measure(child.id());
    child.kill().context("cannot end ringfence")?;
    child.wait().context("cannot wait for ringfence")?;
    let (processes, ours_kib) = measured?;
    Ok(format!(
        "An idle sandbox with its proxy ready: {processes} processes with the command; ours have {:.1} MB resident (sum of RSS, \
         shared pages counted twice).\n\n",
        ours_kib as f64 / 1024.0
    ))
}

fn measure(launcher: u32) -> Result<(usize, u64)> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let tree = descendants(launcher)?;
        let sleeping = tree.iter().any(|pid| comm(*pid).is_some_and(|c| c == "sleep"));
        if sleeping {
            std::thread::sleep(Duration::from_millis(300));
            let tree = descendants(launcher)?;
            let ours = tree.iter().filter(|pid| comm(**pid).is_some_and(|c| c != "sleep"));
            return Ok((tree.len(), ours.filter_map(|pid| rss_kib(*pid)).sum()));
        }
        if Instant::now() > deadline {
            bail!("the command did not start within five seconds");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn descendants(root: u32) -> Result<Vec<u32>> {
    let mut all = vec![root];
    let mut at = 0;
    while let Some(pid) = all.get(at).copied() {
        at += 1;
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .with_context(|| format!("process {pid} is gone"))?;
        all.extend(children.split_whitespace().filter_map(|p| p.parse::<u32>().ok()));
    }
    Ok(all)
}

fn comm(pid: u32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

fn rss_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
