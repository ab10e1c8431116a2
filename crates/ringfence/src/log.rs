//! Reads audit files.

use crate::error::Error;
use crate::sandbox::here;
use ringfence_policy::Event;
use std::ops::ControlFlow;
use std::path::Path;

pub use ringfence_enforce::audit::{Filter, Follow, ReadSummary, Record};

/// Reads an audit file, or the default one. `each` is called for every event that the filter lets through, and may stop.
///
/// # Errors
/// The file cannot be read. A file that does not exist is an error unless it is followed.
pub fn read(
    file: Option<&Path>,
    filter: &Filter,
    follow: Follow,
    each: &mut dyn FnMut(&Record) -> ControlFlow<()>,
) -> Result<ReadSummary, Error> {
    let (place, store) = here()?;
    let path = match file {
        Some(file) => place.absolute(file)?,
        None => store.audit_file(),
    };
    ringfence_enforce::audit::read(&path, filter, follow, each).map_err(Error::Audit)
}

/// An event as the line that stands in an audit file, with its end. `run` names the run.
pub fn line(event: &Event, run: &str) -> Option<String> {
    ringfence_enforce::audit::line(event, run)
}
