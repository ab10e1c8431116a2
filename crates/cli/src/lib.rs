//! The ringfence program: what may be typed, and what is printed. Everything else is in the library `ringfence`.
//!
//! This is a library only so that the manual pages and completions are generated from the same definitions that parse
//! the command line ([`generate_man`], [`generate_completions`]).

mod args;
mod exit;
mod generate;
mod render;
mod verbs;

pub use generate::{command, generate_completions, generate_man};

use args::{Cli, Verb};
use clap::Parser as _;
use exit::Exit;
use std::ffi::OsString;
use std::process::ExitCode;

/// Does what the arguments say.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    let exit = match cli.verb {
        Verb::Run(args) => verbs::run::run(args),
        Verb::Exec(args) => verbs::exec::exec(args),
        Verb::Explain(args) => verbs::explain::explain(args),
        Verb::Why(args) => verbs::why::why(args),
        Verb::Preset(args) => verbs::preset::preset(args),
        Verb::Trust(args) => verbs::trust::trust(args),
        Verb::Doctor(args) => verbs::doctor::doctor(args),
        Verb::Log(args) => verbs::log::log(args),
        Verb::Home(args) => verbs::home::home(args),
        Verb::Bench(args) => verbs::bench::bench(args),
        Verb::Man(args) => verbs::man::man(args),
        Verb::Completions(args) => verbs::completions::completions(args),
        Verb::Schema => verbs::schema::schema(),
    };
    exit.into()
}

/// Help and version were asked for and go to standard output; anything else is a mistake in the arguments.
fn usage(error: &clap::Error) -> Exit {
    // Where the reader of help is gone, nothing is left to be said.
    let _ = error.print();
    if error.use_stderr() { Exit::Refused } else { Exit::Success }
}
