//! apt.

use super::look::Look;
use super::{Answer, Told};
use std::path::{Path, PathBuf};

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let main = look.system("etc/apt/sources.list");
    if let Some(text) = look.read(&main) {
        one_line(look, answer, &text, &shown(look, &main));
    }
    let parts = look.system("etc/apt/sources.list.d");
    for name in look.list(&parts) {
        let path = parts.join(&name);
        let Some(extension) = path.extension() else { continue };
        let deb822 = extension == "sources";
        if !deb822 && extension != "list" {
            continue;
        }
        let Some(text) = look.read(&path) else { continue };
        let name = shown(look, &path);
        if deb822 {
            stanzas(look, answer, &text, &name);
        } else {
            one_line(look, answer, &text, &name);
        }
    }
    proxies(look, answer);
}

fn shown(look: &Look<'_>, path: &Path) -> String {
    let system = look.system("");
    PathBuf::from("/").join(path.strip_prefix(&system).unwrap_or(path)).display().to_string()
}

/// sources.list(5), one-line style: `deb [options] uri suite component...`.
fn one_line(look: &mut Look<'_>, answer: &mut Answer, text: &str, name: &str) {
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        if !matches!(words.next(), Some("deb" | "deb-src")) {
            continue;
        }
        let mut in_options = false;
        let uri = words.find(|word| {
            in_options |= word.starts_with('[');
            let option = in_options;
            in_options &= !word.ends_with(']');
            !option
        });
        if let Some(uri) = uri {
            add(look, answer, uri, name);
        }
    }
}

/// sources.list(5), deb822 style: stanzas of fields, `URIs` may go on over lines.
fn stanzas(look: &mut Look<'_>, answer: &mut Answer, text: &str, name: &str) {
    let mut uris: Vec<String> = Vec::new();
    let mut enabled = true;
    let mut field = String::new();
    // An empty line ends a stanza; one is added for the last.
    for line in text.lines().chain(std::iter::once("")) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            for uri in std::mem::take(&mut uris) {
                if enabled {
                    add(look, answer, &uri, name);
                }
            }
            enabled = true;
            field.clear();
            continue;
        }
        let value = if line.starts_with([' ', '\t']) {
            line
        } else {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            field = key.trim().to_ascii_lowercase();
            value
        };
        match field.as_str() {
            "uris" => uris.extend(value.split_whitespace().map(str::to_owned)),
            "enabled" => enabled = !["no", "false", "0", "off"].contains(&value.trim().to_ascii_lowercase().as_str()),
            _ => {}
        }
    }
}

fn add(look: &mut Look<'_>, answer: &mut Answer, uri: &str, name: &str) {
    let why = format!("apt: {name}");
    // apt-transport-mirror(1): the list of mirrors may be a file.
    if let Some(path) = uri.strip_prefix("mirror+file:") {
        let path = format!("/{}", path.trim_start_matches('/'));
        for line in look.read(Path::new(&path)).unwrap_or_default().lines() {
            if let Some(mirror) = line.split_whitespace().next().filter(|m| !m.starts_with('#')) {
                answer.add(mirror, &format!("apt: {path}"), Told::Configuration);
            }
        }
        return;
    }
    answer.add(uri, &why, Told::Configuration);
}

/// apt.conf(5): `Acquire::http::Proxy "http://host:port";`, or the same in nested braces.
fn proxies(look: &mut Look<'_>, answer: &mut Answer) {
    let folder = look.system("etc/apt/apt.conf.d");
    let mut files = vec![look.system("etc/apt/apt.conf")];
    files.extend(look.list(&folder).into_iter().map(|name| folder.join(name)));
    for file in files {
        let Some(text) = look.read(&file) else { continue };
        let why = format!("apt: proxy of {}", shown(look, &file));
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with('#')) {
            let mut quoted = line.split('"');
            let key = quoted.next().unwrap_or_default().trim().to_ascii_lowercase();
            if (key == "proxy" || key.ends_with("::proxy"))
                && let Some(url) = quoted.next()
            {
                answer.add(url, &why, Told::Configuration);
            }
        }
    }
}
