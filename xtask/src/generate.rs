//! Files that are generated from the program itself, committed, and compared in CI.

use crate::run;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Renews the generated files, or with `check` fails when one differs.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    run::cargo(root, &["build", "--quiet", "--locked", "-p", "ringfence-cli"])?;
    let wanted = wanted(root)?;
    let mut drifted = Vec::new();
    for (file, content) in &wanted {
        let path = root.join(file);
        let same = std::fs::read_to_string(&path).is_ok_and(|now| now == *content);
        if same {
            continue;
        }
        if check {
            drifted.push(file.display().to_string());
        } else {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            }
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
            println!("xtask: wrote {}", file.display());
        }
    }
    if !drifted.is_empty() {
        bail!("generated files are out of date; run `cargo xtask generate`:\n  {}", drifted.join("\n  "));
    }
    println!("xtask: generated files ok ({})", wanted.len());
    Ok(())
}

fn wanted(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let program = program(root);
    let mut files = BTreeMap::new();
    files.insert(PathBuf::from("docs/policy.schema.json"), run::output(root, &program, &["schema"])?);
    files.insert(PathBuf::from("docs/diagnostics.md"), run::output(root, &program, &["explain", "--codes"])?);
    for shell in ["bash", "zsh", "fish"] {
        let text = run::output(root, &program, &["completions", shell])?;
        files.insert(PathBuf::from(format!("docs/completions/ringfence.{shell}")), text);
    }
    // `man` with a folder writes one page a verb; it is asked to write beside the build and read back.
    let scratch = root.join("target").join("xtask-man");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).with_context(|| format!("cannot clear {}", scratch.display()))?;
    }
    std::fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    run::output(root, &program, &["man", "--dir", &scratch.to_string_lossy()])?;
    for entry in std::fs::read_dir(&scratch)? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path())?;
        files.insert(PathBuf::from("docs/man").join(entry.file_name()), text);
    }
    Ok(files)
}

fn program(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("debug").join("ringfence")
}
