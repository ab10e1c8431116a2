//! The go command.

use super::look::Look;
use super::{Answer, Told, ini};
use std::path::PathBuf;

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let program = look.program("go");
    // A variable beats the user's file, which beats the file of the installation (go help environment).
    let user = match look.var("GOENV") {
        Some(file) if file == "off" => None,
        Some(file) => Some(PathBuf::from(file)),
        None => Some(look.config("go/env")),
    };
    let user = user.and_then(|file| look.read(&file)).map(|text| ini::rc(&text)).unwrap_or_default();
    let mut settings: Vec<(&str, String, String, Told)> = Vec::new();
    for key in ["GOPROXY", "GOSUMDB"] {
        if let Some(value) = look.var(key) {
            settings.push((key, value, format!("go: {key}"), Told::Configuration));
        } else if let Some((_, value)) = user.iter().find(|(k, v)| k == key && !v.is_empty()) {
            settings.push((key, value.clone(), format!("go: {key} of ~/.config/go/env"), Told::Configuration));
        }
    }
    if settings.len() < 2
        && let Some(program) = program
    {
        // `local`: else the go command of the PATH may fetch another one and run it.
        match program.ask(&["env", "GOPROXY", "GOSUMDB"], &[("GOTOOLCHAIN", "local"), ("GOFLAGS", "")]) {
            Ok(text) => {
                for (key, value) in ["GOPROXY", "GOSUMDB"].into_iter().zip(text.lines()) {
                    if !settings.iter().any(|(k, ..)| *k == key) {
                        settings.push((key, value.trim().to_owned(), format!("go: go env {key}"), Told::Client));
                    }
                }
            }
            Err(error) => {
                answer.unsettled = true;
                answer.gap(format!("go: go env: {error}; allow the proxy by name: --allow-host HOST"));
            }
        }
    }
    for (key, value, why, told) in settings {
        if key == "GOPROXY" {
            proxies(answer, &value, &why, told);
        } else {
            checksums(answer, &value, &why, told);
        }
    }
}

/// A list of URLs, divided by `,` or `|`.
fn proxies(answer: &mut Answer, value: &str, why: &str, told: Told) {
    for part in value.split([',', '|']).map(str::trim) {
        match part {
            "direct" if value.trim() == "direct" => {
                answer.gap(
                    "go: modules come directly from the hosts that keep them: allow those by name, --allow-host HOST",
                );
            }
            "" | "direct" | "off" => {}
            // The go command takes a host without a scheme as https.
            _ if !part.contains("://") => {
                answer.add(&format!("https://{part}"), why, told);
            }
            _ => {
                answer.add(part, why, told);
            }
        }
    }
}

/// `off`, or a name with an optional key, and an optional URL.
fn checksums(answer: &mut Answer, value: &str, why: &str, told: Told) {
    let mut words = value.split_whitespace();
    match (words.next(), words.next()) {
        (None | Some("off"), _) => {}
        (_, Some(url)) => {
            answer.add(url, why, told);
        }
        (Some(name), None) => {
            let host = name.split('+').next().unwrap_or(name);
            answer.add(&format!("https://{host}"), why, told);
        }
    }
}
