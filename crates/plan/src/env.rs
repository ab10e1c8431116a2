//! The command's environment.

use serde::ser::{SerializeMap, Serializer};
use std::ffi::OsString;

/// Serialises names; values may be secrets and are left out, but for those that ringfence itself sets.
pub(crate) fn serialize<S: Serializer>(env: &[(OsString, OsString)], s: S) -> Result<S::Ok, S::Error> {
    let mut map = s.serialize_map(Some(env.len()))?;
    for (name, _) in env {
        map.serialize_entry(&name.to_string_lossy(), "…")?;
    }
    map.end()
}
