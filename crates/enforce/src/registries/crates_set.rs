//! cargo.

use super::look::Look;
use super::program::{Helper, Stream};
use super::url::place;
use super::{Answer, Told, cache};
use ringfence_policy::HostPath;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Source replacements beyond this are a loop.
const MAX_REPLACED: usize = 8;

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let cargo_home = look.folder("CARGO_HOME", ".cargo");
    let config = ["config.toml", "config"].iter().find_map(|name| look.read(&cargo_home.join(name)));
    let config = config.and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
    let table = |key: &str| config.get(key).and_then(toml::Value::as_table);

    match replacement(table("source")) {
        Replaced::By(url) => {
            let why = "cargo: the source that replaces the default one";
            answer.add(&url, why, Told::Configuration);
            downloads(look, answer, &cargo_home, &url, why, Told::Configuration);
        }
        Replaced::Local => answer.source("cargo: a local source replaces the default one"),
        Replaced::No => default_index(look, answer, &cargo_home),
    }
    let mut others: Vec<(String, String)> = Vec::new();
    for (name, registry) in table("registries").into_iter().flatten() {
        if let Some(index) = registry.get("index").and_then(toml::Value::as_str) {
            others.push((index.to_owned(), format!("cargo: registry {name}")));
        }
    }
    for (key, url) in look.vars_with("CARGO_REGISTRIES_") {
        if let Some(name) = key.strip_suffix("_index") {
            others.push((url, format!("cargo: CARGO_REGISTRIES_{}_INDEX", name.to_ascii_uppercase())));
        }
    }
    for (url, why) in others {
        if answer.add(&url, &why, Told::Configuration) {
            downloads(look, answer, &cargo_home, &url, &why, Told::Configuration);
        }
    }
}

enum Replaced {
    No,
    By(String),
    Local,
}

/// Follows `replace-with` from the default source (cargo reference, "Source Replacement").
fn replacement(sources: Option<&toml::Table>) -> Replaced {
    let Some(sources) = sources else { return Replaced::No };
    let text = |source: &toml::Value, key: &str| source.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let mut name = "crates-io".to_owned();
    let mut moved = false;
    for _ in 0..MAX_REPLACED {
        let Some(source) = sources.get(&name) else { break };
        match text(source, "replace-with") {
            Some(next) => {
                name = next;
                moved = true;
            }
            None => {
                let url = text(source, "registry").or_else(|| text(source, "git"));
                return match (moved, url) {
                    (false, _) => Replaced::No,
                    (true, Some(url)) => Replaced::By(url),
                    (true, None) => Replaced::Local,
                };
            }
        }
    }
    Replaced::No
}

/// The index that is built into cargo: the client names it when it cannot reach it.
fn default_index(look: &mut Look<'_>, answer: &mut Answer, cargo_home: &Path) {
    let Some(cargo) = look.program("cargo") else { return };
    let Some(scratch) = Scratch::new(look) else {
        answer.gap("cargo cannot be asked for its index: there is no folder for our own files");
        answer.unsettled = true;
        return;
    };
    // A proxy that is not there, so that nothing is fetched and the error names the address. Port 9 is `discard`, on
    // which nothing listens that would answer.
    let Some(url) = scratch.fetch(&cargo, Some("http://127.0.0.1:9")).as_deref().and_then(first_url) else {
        answer.gap("cargo: it named no index when it was asked; allow it by name: --allow-host HOST");
        answer.unsettled = true;
        return;
    };
    let why = "cargo: the index that is built in";
    answer.add(&url, why, Told::Client);
    downloads(look, answer, cargo_home, &url, why, Told::Client);
}

/// The host of an index's downloads stands in its `config.json`, which cargo keeps beside the index. Without one, cargo is
/// let fetch it once.
fn downloads(look: &mut Look<'_>, answer: &mut Answer, cargo_home: &Path, index: &str, why: &str, told: Told) {
    let why = format!("{why}, its downloads");
    let kept = look.folder_of_index(cargo_home, index);
    let config = kept.and_then(|folder| look.read(&folder.join("config.json"))).or_else(|| {
        let (Some(cargo), Some(scratch)) = (look.program("cargo"), Scratch::new(look)) else { return None };
        scratch.replace_source(index)?;
        let _ = scratch.fetch(&cargo, None);
        scratch.config_json()
    });
    let url = config.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()).and_then(|json| {
        let url = json.get("dl")?.as_str()?;
        // Markers such as `{crate}` may stand in the path, and not in the host.
        Some(url.to_owned())
    });
    match url {
        Some(url) => {
            answer.add(&url, &why, told);
        }
        None => {
            answer.gap(format!(
                "{why} are not known yet: run cargo once outside, or allow the host by name: --allow-host HOST"
            ));
            answer.unsettled = true;
        }
    }
}

impl Look<'_> {
    /// The folder in which cargo keeps an index: its host, a dash and a hash. More than one folder of the host: it cannot
    /// be told which, and one of them may be of a project's own registry.
    fn folder_of_index(&mut self, cargo_home: &Path, index: &str) -> Option<PathBuf> {
        let (host, _) = place(index).ok()??;
        let folder = cargo_home.join("registry/index");
        let of_host = |name: &&std::ffi::OsString| {
            name.to_str().and_then(|n| n.rsplit_once('-')).is_some_and(|(h, hash)| h == host && hash.len() == 16)
        };
        let names = self.list(&folder);
        let mut found = names.iter().filter(of_host);
        match (found.next(), found.next()) {
            (Some(name), None) => Some(folder.join(name)),
            _ => None,
        }
    }
}

/// The first URL between backquotes.
fn first_url(text: &str) -> Option<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).find(|q| q.starts_with("https://") || q.starts_with("http://"))
}

/// A project and a cargo home of our own, gone again afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(look: &Look<'_>) -> Option<Self> {
        let cache: HostPath = look.scratch()?;
        cache::make_private_folder(&cache).ok()?;
        let folder = cache.as_path().join(format!("ask-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let scratch = Self(folder);
        std::fs::create_dir_all(scratch.0.join("project/src")).ok()?;
        std::fs::create_dir_all(scratch.0.join("home")).ok()?;
        std::fs::write(scratch.0.join("project/src/lib.rs"), "").ok()?;
        let manifest = "[package]\nname = \"ask\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nlibc = \"*\"\n";
        std::fs::write(scratch.0.join("project/Cargo.toml"), manifest).ok()?;
        Some(scratch)
    }

    fn replace_source(&self, index: &str) -> Option<()> {
        // A string of JSON is one of TOML, too.
        let index = serde_json::to_string(index).ok()?;
        let text = format!("[source.crates-io]\nreplace-with = \"ask\"\n[source.ask]\nregistry = {index}\n");
        std::fs::write(self.0.join("home/config.toml"), text).ok()
    }

    /// What cargo says while it resolves the project; it downloads no package.
    fn fetch(&self, cargo: &Helper, proxy: Option<&str>) -> Option<String> {
        let manifest = self.0.join("project/Cargo.toml");
        let home = self.0.join("home");
        let args = [OsStr::new("generate-lockfile"), OsStr::new("--manifest-path"), manifest.as_os_str()];
        let mut env: Vec<(&str, &OsStr)> = vec![
            ("CARGO_HOME", home.as_os_str()),
            ("CARGO_NET_RETRY", OsStr::new("0")),
            ("CARGO_TERM_COLOR", OsStr::new("never")),
            ("CARGO_TERM_QUIET", OsStr::new("false")),
            // Asked for a toolchain that is not there, rustup would fetch it.
            ("RUSTUP_AUTO_INSTALL", OsStr::new("0")),
        ];
        if let Some(proxy) = proxy {
            env.push(("CARGO_HTTP_PROXY", OsStr::new(proxy)));
        }
        cargo.run(&args, &env, Stream::Err).ok()
    }

    fn config_json(&self) -> Option<String> {
        let folder = std::fs::read_dir(self.0.join("home/registry/index")).ok()?;
        folder.flatten().find_map(|entry| std::fs::read_to_string(entry.path().join("config.json")).ok())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
