//! `ringfence trust`: the user's word on the present content of a repository's policy file.

use crate::args::TrustArgs;
use crate::exit::Exit;
use crate::render::diagnostic::{self, Form};
use crate::render::{self, complain, lines};

pub(crate) fn trust(args: TrustArgs) -> Exit {
    let file = args.file.as_deref();
    let done = if args.list {
        ringfence::trust::list().map(|entries| {
            render::stdout(|out| {
                let mut entries = entries.iter();
                entries.try_for_each(|entry| writeln!(out, "{}  {}", entry.sha256, lines::plain(&entry.path)))
            })
        })
    } else if args.revoke {
        ringfence::trust::revoke(file).map(|was| {
            complain(if was { "the trust is taken away" } else { "it was not trusted" });
            Exit::Success
        })
    } else {
        ringfence::trust::trust(file).map(|text| {
            // What is trusted is shown, because the user vouches for it.
            let name = lines::plain(&text.path.display().to_string());
            let content: String = text.text.lines().map(|line| format!("  {}\n", lines::plain(line))).collect();
            render::stderr(&format!("ringfence: trusted {name}, which says\n{content}"));
            Exit::Success
        })
    };
    done.unwrap_or_else(|error| {
        diagnostic::say(&error.diagnostics(), Form::Text);
        Exit::Refused
    })
}
