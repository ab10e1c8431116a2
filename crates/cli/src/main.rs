//! The ringfence program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ringfence_cli::run(std::env::args_os())
}
