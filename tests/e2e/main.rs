//! End-to-end tests: the program as it is installed, real attempts to get out, real work, real agents.
//!
//! `cargo test -p ringfence-e2e -- [--list] [--quick] [--jobs N] [FILTER...]`
//!
//! As root the tests make a pretended outside in network namespaces of their own and run each case twice, as an ordinary
//! user and as root. As an ordinary user only that half runs, without the outside; what is left out is counted as skipped.
//! Environment: `RINGFENCE_BIN` (the program; otherwise it is built), `RINGFENCE_E2E_WALL=none|bwrap` (what stands in its
//! place, to test the tests), `RINGFENCE_TEST_USER` (the ordinary account).

mod agents;
mod attacks;
mod case;
mod doors;
mod fresh;
mod inside;
mod lifecycle;
mod refusals;
mod run;
mod runner;
mod stage;
mod terminal;
mod usability;
mod wall;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = runner::Args::from_env();
    let mut trials = Vec::new();
    attacks::collect(&mut trials);
    doors::collect(&mut trials);
    usability::collect(&mut trials);
    lifecycle::collect(&mut trials);
    inside::collect(&mut trials);
    refusals::collect(&mut trials);
    work::collect(&mut trials);
    agents::collect(&mut trials);
    trials.retain(|t| args.wants(t));
    if args.list {
        runner::list(&trials);
        return ExitCode::SUCCESS;
    }
    if trials.is_empty() {
        runner::say("0 passed, 0 failed, 0 skipped");
        return ExitCode::SUCCESS;
    }
    match stage::Stage::build() {
        Ok(stage) => runner::run(&stage, trials, &args),
        Err(why) => {
            runner::say(&format!("the stage could not be built: {why}"));
            ExitCode::FAILURE
        }
    }
}
