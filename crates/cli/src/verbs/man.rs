//! `ringfence man`: the manual page, as roff.

use crate::args::ManArgs;
use crate::exit::Exit;
use crate::generate::{generate_man, man_page};
use crate::render::{self, complain};

pub(crate) fn man(args: ManArgs) -> Exit {
    if let Some(dir) = args.dir {
        return match generate_man(&dir) {
            Ok(()) => Exit::Success,
            Err(error) => {
                complain(&format!("cannot write the pages into `{}`: {error}", dir.display()));
                Exit::Refused
            }
        };
    }
    let Some(page) = man_page(args.verb.as_deref()) else {
        complain(&format!("no verb is named `{}`", args.verb.unwrap_or_default()));
        return Exit::Refused;
    };
    render::stdout(|out| page.render(&mut *out))
}
