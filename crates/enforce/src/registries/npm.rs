//! npm, and with it pnpm, yarn and bun, which read the same or similar files.

use super::look::Look;
use super::url::{expand, has_user};
use super::{Answer, Told, ini};
use std::path::PathBuf;

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let mut default = from_env(look, answer);
    for (file, name) in rc_files(look) {
        let Some(text) = look.read(&file) else { continue };
        for (key, value) in ini::rc(&text) {
            let scoped = key.starts_with('@') && key.ends_with(":registry");
            // The strongest file that names the default registry decides; a scope adds to it.
            if !scoped && (key != "registry" || default) {
                continue;
            }
            let Some(url) = expand(&value, |var| look.var(var.trim_end_matches('?'))) else {
                answer.gap(format!("npm: `{key}` in {name} needs a variable that is not set"));
                continue;
            };
            let why = format!("npm: {key} of {name}");
            if answer.add(&url, &why, Told::Configuration) && !scoped {
                default = true;
                if !has_user(&url) {
                    answer.env.push(("npm_config_registry".to_owned(), url));
                }
            }
        }
    }
    if !default {
        ask_npm(look, answer);
    }
    yarn(look, answer);
    bun(look, answer);
}

/// npm reads its settings from variables in any case (npm-config, "Environment Variables").
fn from_env(look: &mut Look<'_>, answer: &mut Answer) -> bool {
    let mut default = false;
    for (key, value) in look.vars_with("npm_config_") {
        if key == "registry" {
            default |= answer.add(&value, "npm: npm_config_registry", Told::Configuration);
        } else if key.starts_with('@') && key.ends_with(":registry") {
            answer.add(&value, &format!("npm: npm_config_{key}"), Told::Configuration);
        }
    }
    default
}

/// The user's file, then the machine's. A project's file is never read.
fn rc_files(look: &mut Look<'_>) -> Vec<(PathBuf, String)> {
    let named = look.vars_with("npm_config_");
    let value = |key: &str| named.iter().find(|(k, _)| k == key).map(|(_, v)| PathBuf::from(v));
    let user = value("userconfig").unwrap_or_else(|| look.home(".npmrc"));
    let mut files = vec![(user, "~/.npmrc".to_owned()), (look.config("pnpm/rc"), "~/.config/pnpm/rc".to_owned())];
    let global = match value("globalconfig") {
        Some(file) => vec![file],
        None => ["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"].iter().map(|p| look.system(p)).collect(),
    };
    files.extend(global.into_iter().map(|file| (file.clone(), file.display().to_string())));
    files
}

/// The registry that is built into the client, or that a file names which only the client knows of.
fn ask_npm(look: &mut Look<'_>, answer: &mut Answer) {
    let config: Vec<(String, String)> =
        look.vars_with("npm_config_").into_iter().map(|(key, value)| (format!("npm_config_{key}"), value)).collect();
    let mut config: Vec<(&str, &str)> = config.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    // A question leaves a log and a cache folder in the home otherwise; what cannot be a folder is not made.
    config.extend([("npm_config_logs_max", "0"), ("npm_config_cache", "/dev/null")]);
    for client in ["npm", "pnpm"] {
        let Some(program) = look.program(client) else { continue };
        if let Ok(real) = std::fs::canonicalize(program.path()) {
            look.note(&real);
        }
        let why = format!("npm: {client} config get registry");
        match program.ask(&["config", "get", "registry"], &config) {
            Ok(text) if answer.add(text.trim(), &why, Told::Client) => return,
            Ok(_) => answer.gap(format!("{why} names no host")),
            Err(error) => {
                answer.unsettled = true;
                answer.gap(format!("{why}: {error}; allow the registry by name: --allow-host HOST"));
            }
        }
    }
}

fn yarn(look: &mut Look<'_>, answer: &mut Answer) {
    for var in ["YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY"] {
        if let Some(url) = look.var(var) {
            answer.add(&url, &format!("yarn: {var}"), Told::Configuration);
            return;
        }
    }
    let modern = look.home(".yarnrc.yml");
    let classic = look.home(".yarnrc");
    let named = look.read(&modern).and_then(|text| value_after(&text, "npmRegistryServer:"));
    if let Some(url) = named.or_else(|| look.read(&classic).and_then(|text| value_after(&text, "registry "))) {
        answer.add(&url, "yarn: its settings in the home", Told::Configuration);
        return;
    }
    let Some(program) = look.program("yarn") else { return };
    // As a shim of corepack it would fetch a yarn first.
    let quiet =
        [("COREPACK_ENABLE_NETWORK", "0"), ("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0"), ("YARN_ENABLE_TELEMETRY", "0")];
    for key in ["registry", "npmRegistryServer"] {
        if let Ok(text) = program.ask(&["config", "get", key], &quiet)
            && answer.add(text.trim(), &format!("yarn: yarn config get {key}"), Told::Client)
        {
            return;
        }
    }
}

fn bun(look: &mut Look<'_>, answer: &mut Answer) {
    for file in [look.home(".bunfig.toml"), look.config(".bunfig.toml")] {
        let Some(table) = look.read(&file).and_then(|text| text.parse::<toml::Table>().ok()) else { continue };
        let registry = table.get("install").and_then(|install| install.get("registry"));
        let url = registry.and_then(|r| r.as_str().or_else(|| r.get("url")?.as_str()));
        if let Some(url) = url {
            answer.add(url, "bun: registry of ~/.bunfig.toml", Told::Configuration);
        }
    }
}

fn value_after(text: &str, key: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().trim_matches(['"', '\'']).to_owned())
}
