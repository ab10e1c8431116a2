//! The user's word on the content of a repository's policy file.

use crate::error::{Error, PlaceError};
use crate::place::Place;
use crate::sandbox::here;
use crate::sources::{self, FileText};
use ringfence_policy::HostPath;
use std::path::Path;

pub use ringfence_enforce::store::TrustEntry;

/// Trusts the present content of a policy file, and no other content of it. Returns the file and its text, so that what
/// was trusted can be shown. `None`: the file that is found from the working directory upwards.
///
/// # Errors
/// There is none, it cannot be read, or the list cannot be written.
pub fn trust(file: Option<&Path>) -> Result<FileText, Error> {
    let (place, store) = here()?;
    let path = resolve(&place, file)?;
    let text = sources::file(path.as_path())?;
    store.trust(&path, text.text.as_bytes())?;
    Ok(text)
}

/// Takes the trust away; tells whether there was any. The file need not exist any more.
///
/// # Errors
/// The list cannot be written.
pub fn revoke(file: Option<&Path>) -> Result<bool, Error> {
    let (place, store) = here()?;
    Ok(store.distrust(&resolve(&place, file)?)?)
}

/// What is trusted.
///
/// # Errors
/// The list cannot be read.
pub fn list() -> Result<Vec<TrustEntry>, Error> {
    let (_, store) = here()?;
    Ok(store.trusted_files()?)
}

/// The path under which a run finds the file: its folder without symlinks.
fn resolve(place: &Place, file: Option<&Path>) -> Result<HostPath, Error> {
    let Some(typed) = file else {
        let found = place.project_file().ok_or_else(|| Error::NoProjectFile { dir: place.cwd.clone() })?;
        return Ok(HostPath::new(found).map_err(PlaceError::from)?);
    };
    let path = place.absolute(typed)?;
    let parent = path.parent().and_then(|dir| std::fs::canonicalize(dir.as_path()).ok());
    match (parent.and_then(|dir| HostPath::new(dir).ok()), path.file_name()) {
        (Some(dir), Some(name)) => Ok(dir.join(name)),
        _ => Ok(path),
    }
}
