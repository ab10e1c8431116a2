//! `ringfence completions`: the script for a shell.

use crate::args::CompletionsArgs;
use crate::exit::Exit;
use crate::generate::command;
use crate::render;

pub(crate) fn completions(args: CompletionsArgs) -> Exit {
    render::stdout(|out| {
        // The generator panics when its writer fails, so it writes into memory.
        let mut script = Vec::new();
        clap_complete::generate(args.shell, &mut command(), "ringfence", &mut script);
        out.write_all(&script)
    })
}
