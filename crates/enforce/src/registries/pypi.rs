//! pip, uv and poetry.

use super::look::Look;
use super::url::{has_user, place};
use super::{Answer, Told, ini};
use std::path::PathBuf;

/// The constants of pip's own source: the index, and the host that keeps its files.
const QUESTION: &str =
    "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)";

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let pip = pip(look, answer);
    let uv = uv(look, answer);
    let built_in = ask(look, answer);
    match built_in {
        Some((index, files)) => {
            let host = |url: &str| place(url).ok().flatten();
            let uses_default = !pip.replaced || (uv.present && !uv.replaced);
            if uses_default && !pip.no_index {
                answer.add(&index, "pip: the index that is built in", Told::Client);
            }
            // An index that is not the built-in one mostly keeps its files itself.
            if answer.places.iter().any(|p| Some((p.host.clone(), p.port)) == host(&index)) {
                answer.add(&files, "pip: the file host that is built in", Told::Client);
            }
        }
        None if answer.places.is_empty() && !pip.no_index && look.program("uv").is_some() => {
            answer.gap("uv cannot be asked for its index: name it in uv.toml, or allow it by name: --allow-host HOST");
        }
        None => {}
    }
    if pip.replaced {
        answer.gap("pip: files of a mirror that keeps them elsewhere need that host by name: --allow-host HOST");
    }
}

#[derive(Default)]
struct Settings {
    /// Another index stands in the place of the default one.
    replaced: bool,
    /// No index is used at all.
    no_index: bool,
    /// The client is set up here.
    present: bool,
}

fn pip(look: &mut Look<'_>, answer: &mut Answer) -> Settings {
    let mut settings = Settings::default();
    // Variables beat files, and the user's file beats the machine's (pip, "Configuration").
    if let Some(url) = look.var("PIP_INDEX_URL") {
        settings.replaced = answer.add(&url, "pip: PIP_INDEX_URL", Told::Configuration);
    }
    for var in ["PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"] {
        for url in look.var(var).unwrap_or_default().split_whitespace() {
            answer.add(url, &format!("pip: {var}"), Told::Configuration);
        }
    }
    settings.no_index = look.var("PIP_NO_INDEX").is_some_and(|v| is_true(&v));
    for (file, name) in pip_files(look) {
        let Some(text) = look.read(&file) else { continue };
        let mut replaced = settings.replaced;
        for (section, key, values) in ini::sections(&text) {
            if !["global", "install", "download", "wheel", "user"].contains(&section.as_str()) {
                continue;
            }
            let why = format!("pip: {key} of {name}");
            match key.as_str() {
                "index-url" if !settings.replaced => {
                    for url in values {
                        if !answer.add(&url, &why, Told::Configuration) {
                            continue;
                        }
                        replaced = true;
                        if !has_user(&url) && !answer.env.iter().any(|(n, _)| n == "PIP_INDEX_URL") {
                            answer.env.push(("PIP_INDEX_URL".to_owned(), url));
                        }
                    }
                }
                "extra-index-url" | "find-links" => {
                    for url in values.iter().flat_map(|v| v.split_whitespace()) {
                        answer.add(url, &why, Told::Configuration);
                    }
                }
                "no-index" => settings.no_index |= values.iter().any(|v| is_true(v)),
                _ => {}
            }
        }
        settings.replaced = replaced;
    }
    settings
}

/// Strongest first.
fn pip_files(look: &mut Look<'_>) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    if let Some(file) = look.var("PIP_CONFIG_FILE") {
        files.push((PathBuf::from(&file), file));
    }
    files.push((look.config("pip/pip.conf"), "~/.config/pip/pip.conf".to_owned()));
    files.push((look.home(".pip/pip.conf"), "~/.pip/pip.conf".to_owned()));
    for file in ["etc/xdg/pip/pip.conf", "etc/pip.conf"] {
        files.push((look.system(file), format!("/{file}")));
    }
    files
}

fn uv(look: &mut Look<'_>, answer: &mut Answer) -> Settings {
    let mut settings = Settings { present: look.program("uv").is_some(), ..Settings::default() };
    for var in ["UV_DEFAULT_INDEX", "UV_INDEX_URL"] {
        if let Some(url) = look.var(var) {
            settings.replaced |= answer.add(named_url(&url), &format!("uv: {var}"), Told::Configuration);
        }
    }
    for var in ["UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"] {
        for url in look.var(var).unwrap_or_default().split([' ', ',']) {
            answer.add(named_url(url), &format!("uv: {var}"), Told::Configuration);
        }
    }
    for (file, name) in
        [(look.config("uv/uv.toml"), "~/.config/uv/uv.toml"), (look.system("etc/uv/uv.toml"), "/etc/uv/uv.toml")]
    {
        let Some(table) = look.read(&file).and_then(|text| text.parse::<toml::Table>().ok()) else { continue };
        let pip = table.get("pip").and_then(toml::Value::as_table);
        for table in std::iter::once(&table).chain(pip) {
            if let Some(url) = table.get("index-url").and_then(toml::Value::as_str) {
                settings.replaced |= answer.add(url, &format!("uv: index-url of {name}"), Told::Configuration);
            }
            for url in strings(table.get("extra-index-url")) {
                answer.add(url, &format!("uv: extra-index-url of {name}"), Told::Configuration);
            }
        }
        for index in table.get("index").and_then(toml::Value::as_array).into_iter().flatten() {
            let Some(url) = index.get("url").and_then(toml::Value::as_str) else { continue };
            let added = answer.add(url, &format!("uv: index of {name}"), Told::Configuration);
            settings.replaced |= added && index.get("default").and_then(toml::Value::as_bool) == Some(true);
        }
    }
    settings
}

/// uv takes `name=url`.
fn named_url(text: &str) -> &str {
    match text.split_once('=') {
        Some((name, url)) if !name.contains("://") => url,
        _ => text,
    }
}

fn strings(value: Option<&toml::Value>) -> Vec<&str> {
    value.and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str).collect()
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Index and file host of an installed pip.
fn ask(look: &mut Look<'_>, answer: &mut Answer) -> Option<(String, String)> {
    for name in ["python3", "python"] {
        for python in look.programs(name) {
            // Isolated: neither the folder it starts in nor variables nor the user's packages are imported from.
            let Ok(text) = python.ask(&["-I", "-c", QUESTION], &[]) else { continue };
            let mut lines = text.lines().map(str::trim);
            if let (Some(index), Some(files)) = (lines.next(), lines.next()) {
                return Some((index.to_owned(), files.to_owned()));
            }
        }
    }
    if look.program("pip").is_some() || look.program("pip3").is_some() {
        answer.gap(
            "pip is installed but no Python of PATH could be asked for its index; allow it by name: --allow-host HOST",
        );
        answer.unsettled = true;
    }
    None
}
