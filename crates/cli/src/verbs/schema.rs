//! `ringfence schema`: the JSON schema of policy files.

use crate::exit::Exit;
use crate::render;

pub(crate) fn schema() -> Exit {
    render::stdout(|out| out.write_all(ringfence::schema().as_bytes()))
}
