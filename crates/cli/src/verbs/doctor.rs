//! `ringfence doctor`: what this host can do, and the remedy for what it cannot.

use crate::args::DoctorArgs;
use crate::exit::Exit;

pub(crate) fn doctor(_args: DoctorArgs) -> Exit {
    Exit::Refused
}
