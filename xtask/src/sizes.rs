//! No file above 600 lines before its tests: a reader holds one room at a time.

use crate::run;
use anyhow::{Context, Result, bail};
use std::path::Path;

const BOUND: usize = 600;

/// Counts the lines of each Rust file that git knows and that is no test, up to its `#[cfg(test)]` module.
pub(crate) fn check(root: &Path) -> Result<()> {
    let listed = run::output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    let mut sizes = Vec::new();
    for file in listed.lines().filter(|f| !f.starts_with("fuzz/") && !f.split('/').any(|part| part == "tests")) {
        // A file that was removed but not yet committed is still listed.
        let path = root.join(file);
        if !path.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        let lines = text.lines().take_while(|l| l.trim_start() != "#[cfg(test)]").count();
        sizes.push((lines, file.to_owned()));
    }
    sizes.sort();
    let over: Vec<String> = sizes.iter().filter(|(n, _)| *n > BOUND).map(|(n, f)| format!("{n} {f}")).collect();
    if !over.is_empty() {
        bail!("files above {BOUND} lines before their tests:\n  {}", over.join("\n  "));
    }
    let median = sizes.get(sizes.len() / 2).map_or(0, |(n, _)| *n);
    println!("xtask: sizes ok ({} files, median {median} lines)", sizes.len());
    Ok(())
}
