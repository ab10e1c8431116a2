//! The crates use each other only along the arrows of `docs/architecture.md`.

use crate::run;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Crate and the crates of the workspace that it may use. Nothing else is allowed, development dependencies included.
const ARROWS: &[(&str, &[&str])] = &[
    ("ringfence-policy", &[]),
    ("ringfence-plan", &["ringfence-policy"]),
    ("ringfence-sys", &[]),
    ("ringfence-enforce", &["ringfence-policy", "ringfence-plan", "ringfence-sys"]),
    ("ringfence-egress", &["ringfence-policy"]),
    ("ringfence-dialect", &["ringfence-policy"]),
    ("ringfence-boundary", &["ringfence-policy", "ringfence-plan", "ringfence-enforce"]),
    (
        "ringfence",
        &[
            "ringfence-policy",
            "ringfence-plan",
            "ringfence-enforce",
            "ringfence-egress",
            "ringfence-boundary",
            "ringfence-dialect",
        ],
    ),
    ("ringfence-cli", &["ringfence"]),
    ("ringfence-e2e", &[]),
    ("xtask", &[]),
];

/// External crates that only these crates of the workspace may use: async stays in the engine and in the facade that
/// starts it, system calls stay below `enforce`, argument parsing stays in the command line.
const CONFINED: &[(&str, &[&str])] = &[
    ("tokio", &["ringfence-egress", "ringfence"]),
    ("libc", &["ringfence-sys"]),
    ("landlock", &["ringfence-sys"]),
    ("clap", &["ringfence-cli"]),
    ("annotate-snippets", &["ringfence-cli"]),
    // Policy files, and the package clients' own setup.
    ("toml", &["ringfence-dialect", "ringfence-enforce"]),
    ("anyhow", &["xtask"]),
];

/// Compares `cargo metadata` with the tables.
pub(crate) fn check(root: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let text = run::output(root, cargo, &["metadata", "--format-version", "1", "--no-deps", "--locked"])?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("cargo metadata has no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p.get("name")?.as_str()).collect();
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut faults = Vec::new();
    for package in packages {
        let name = package.get("name").and_then(Value::as_str).context("a package has no name")?;
        let Some(allowed) = arrows.get(name) else {
            faults.push(format!("{name} is not in the table of xtask/src/layering.rs"));
            continue;
        };
        for dependency in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
            let used = dependency.get("name").and_then(Value::as_str).unwrap_or_default();
            let kind = dependency.get("kind").and_then(Value::as_str).unwrap_or("normal");
            if names.contains(&used) && !allowed.contains(&used) {
                faults.push(format!("{name} uses {used}, which no arrow of docs/architecture.md allows"));
            }
            for (external, users) in CONFINED {
                if used == *external && kind == "normal" && !users.contains(&name) {
                    faults.push(format!("{name} uses {used}, which only {} may use", users.join(" and ")));
                }
            }
        }
    }
    if !faults.is_empty() {
        bail!("layering:\n  {}", faults.join("\n  "));
    }
    println!("xtask: layering ok ({} crates)", packages.len());
    Ok(())
}
