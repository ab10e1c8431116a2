//! The private home folders, one for each workspace.

use crate::error::Error;
use crate::place::Spot;
use crate::sandbox::here;
use ringfence_policy::HostPath;
use std::path::Path;

pub use ringfence_enforce::store::{Cleaned, HomeEntry, Which};

/// All of them, the one used last first, and the user's own home, for shorter names.
///
/// # Errors
/// The folder that holds them cannot be read.
pub fn list() -> Result<(Vec<HomeEntry>, HostPath), Error> {
    let (place, store) = here()?;
    Ok((store.homes()?, place.home))
}

/// Removes some, with everything in them. Those in use are left.
///
/// # Errors
/// The folder that holds them cannot be read.
pub fn clean(which: &Which) -> Result<Cleaned, Error> {
    let (_, store) = here()?;
    Ok(store.clean_homes(which)?)
}

/// The workspace of this name, or the working directory. It need not exist any more.
///
/// # Errors
/// The working directory is gone, or the name is not one.
pub fn workspace(named: Option<&Path>) -> Result<HostPath, Error> {
    match Spot::find(named) {
        Ok(spot) => Ok(spot.workspace),
        Err(crate::PlaceError::Workspace { path, .. } | crate::PlaceError::NotAFolder { path }) => Ok(path),
        Err(error) => Err(error.into()),
    }
}
