//! Runs a program behind the walls of a plan that is made by hand: for trying this crate without a policy.
//!
//! `box WORKDIR [WORDS...] -- PROGRAM [ARGS...]`

#[path = "../tests/support/hand.rs"]
mod hand;

fn main() -> std::process::ExitCode {
    hand::main(std::env::args_os().skip(1))
}
