//! Answers on disk, each with the files and variables that it came from.

use super::look::{Look, Stamp};
use super::{Answer, Ask, Context};
use crate::store::{make_private, sha256_hex};
use ringfence_policy::HostPath;
use ringfence_sys::files::{create_new, list_dir, open_read};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const VERSION: u32 = 1;
/// A client's built-in answer can change with a file that nobody looked at, so an answer is asked for again now and then.
const KEPT: Duration = Duration::from_secs(7 * 86_400);
const MAX: u64 = 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    version: u32,
    made: u64,
    files: Vec<(PathBuf, Option<Stamp>)>,
    vars: BTreeSet<String>,
    prefixes: BTreeSet<String>,
    env: String,
    untrusted: String,
    answer: Answer,
}

/// The answer, when nothing that it came from has changed.
pub(super) fn load(set: &str, context: &Context<'_>) -> Option<Answer> {
    let mut bytes = Vec::new();
    open_read(path(set, context)?.as_path()).ok()?.take(MAX).read_to_end(&mut bytes).ok()?;
    let entry: Entry = serde_json::from_slice(&bytes).ok()?;
    let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_secs(entry.made)).ok()?;
    let fresh = entry.version == VERSION
        && age < KEPT
        && entry.env == Look::env_hash(context.env, &entry.vars, &entry.prefixes)
        && entry.untrusted == untrusted(context, &entry.files)
        && entry.files.iter().all(|(path, stamp)| Stamp::of(path) == *stamp);
    fresh.then_some(entry.answer)
}

/// Keeps an answer. A cache that cannot be written costs time, not safety.
pub(super) fn save(set: &str, context: &Context<'_>, look: &Look<'_>, answer: &Answer) {
    let Some(path) = path(set, context) else { return };
    let Some(folder) = context.cache else { return };
    let files: Vec<(PathBuf, Option<Stamp>)> = look.files.iter().map(|(p, s)| (p.clone(), *s)).collect();
    let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let entry = Entry {
        version: VERSION,
        made,
        env: Look::env_hash(context.env, &look.vars, &look.prefixes),
        untrusted: untrusted(context, &files),
        vars: look.vars.clone(),
        prefixes: look.prefixes.clone(),
        files,
        answer: answer.clone(),
    };
    // A path that is not UTF-8 cannot be written as JSON.
    let Ok(text) = serde_json::to_vec(&entry) else { return };
    let _ = replace(folder, &path, &text);
}

fn replace(folder: &HostPath, path: &HostPath, text: &[u8]) -> std::io::Result<()> {
    make_private_folder(folder)?;
    prune(folder.as_path());
    let mut name = path.file_name().unwrap_or_default();
    name.push(format!(".{}", std::process::id()));
    let fresh = folder.join(name);
    let _ = std::fs::remove_file(fresh.as_path());
    create_new(fresh.as_path())?.write_all(text)?;
    std::fs::rename(fresh.as_path(), path.as_path())
}

/// The cache folder and the state folder that holds it.
pub(super) fn make_private_folder(folder: &HostPath) -> std::io::Result<()> {
    let (Some(state), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    make_private(&state, &[&name]).map(drop).map_err(std::io::Error::other)
}

/// Removes what nobody used for a month: each combination of `PATH` and home has a file of its own.
fn prune(folder: &Path) {
    for (name, _) in list_dir(folder).unwrap_or_default() {
        let path = folder.join(name);
        let old =
            |m: std::fs::Metadata| m.is_file() && m.modified().is_ok_and(|t| t.elapsed().is_ok_and(|e| e > KEPT * 4));
        if path.symlink_metadata().is_ok_and(old) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn path(set: &str, context: &Context<'_>) -> Option<HostPath> {
    // Two terminals with different environments must not overwrite each other's answer at every launch.
    let mut key: Vec<u8> = context.home.as_path().as_os_str().as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(crate::probe::Env(context.env).get("PATH").map(|p| p.as_bytes()).unwrap_or_default());
    key.push(match context.ask {
        Ask::Clients => 1,
        Ask::Nobody => 2,
    });
    key.extend_from_slice(context.system.as_os_str().as_bytes());
    let hash = sha256_hex(&key);
    Some(context.cache?.join(format!("{set}-{}.json", hash.get(..12)?)))
}

/// Which of the files the command may write in this run: an answer that was made while it could write fewer of them is
/// not good for a run in which it can write more.
fn untrusted(context: &Context<'_>, files: &[(PathBuf, Option<Stamp>)]) -> String {
    let bits = files.iter().map(|(path, _)| {
        let inside = HostPath::new(path).map_or(true, |p| context.untrusted.iter().any(|root| p.is_within(root)));
        if inside { '1' } else { '0' }
    });
    bits.collect()
}
