//! `ringfence exec STRING`: a shell line behind walls, for harnesses.

use super::run::{self, Greeting};
use crate::args::ExecArgs;
use crate::exit::Exit;
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(crate) fn exec(args: ExecArgs) -> Exit {
    // `--`, because a line may start with a dash (sh(1): operands follow it).
    let command = vec![shell(), OsString::from("-c"), OsString::from("--"), args.script];
    run::launch(args.policy, args.launch, command, Greeting::Silent)
}

/// Bash where the user's shell is bash, because harnesses write what their user's shell understands; `/bin/sh` else.
fn shell() -> OsString {
    let shell = std::env::var_os("SHELL").unwrap_or_default();
    match Path::new(&shell).file_name() {
        Some(name) if name == OsStr::new("bash") && Path::new(&shell).is_absolute() => shell,
        _ => OsString::from("/bin/sh"),
    }
}
