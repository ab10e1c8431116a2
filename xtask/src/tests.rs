//! The one command that runs every test.

use crate::run;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Installs what the tests need, builds the program, runs the unit, property and corpus tests, then the end-to-end suite.
pub(crate) fn run(root: &Path, quick: bool) -> Result<()> {
    if !quick {
        run::program(root, "bash", &["tests/install-peers.sh"])?;
    }
    run::cargo_test(root, &["--workspace", "--exclude", "ringfence-e2e", "--all-features", "--locked"], &[])?;
    if !quick {
        // The suite runs the program as its users do: built for release.
        run::cargo(root, &["build", "--release", "--locked", "-p", "ringfence-cli"])?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let built = target.join("release").join("ringfence");
        run::cargo_test(root, &["--locked", "-p", "ringfence-e2e"], &[("RINGFENCE_BIN", &built)])?;
    }
    Ok(())
}
