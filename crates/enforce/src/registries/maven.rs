//! Maven; Gradle and others use the same central repository.

use super::look::Look;
use super::url::expand;
use super::xml::{Element, parse};
use super::{Answer, Told};
use std::path::{Path, PathBuf};

pub(super) fn find(look: &mut Look<'_>, answer: &mut Answer) {
    let mvn = look.program("mvn");
    let installation = mvn.as_ref().and_then(|p| std::fs::canonicalize(p.path()).ok()).and_then(|real| {
        // bin/mvn of the installation.
        Some(real.parent()?.parent()?.to_owned())
    });
    let mut central_replaced = false;
    for file in settings_files(look, installation.as_deref()) {
        let Some(text) = look.read(&file) else { continue };
        central_replaced |= settings(look, answer, &parse(&text), &file.display().to_string());
    }
    if central_replaced {
        return;
    }
    match &installation {
        Some(folder) => central(look, answer, folder),
        None if look.program("gradle").is_some() => {
            answer.gap("gradle cannot be asked for its repositories: allow them by name, --allow-host HOST");
        }
        None => {}
    }
}

/// The user's file and the machine's.
fn settings_files(look: &mut Look<'_>, installation: Option<&Path>) -> Vec<PathBuf> {
    let mut files = vec![look.home(".m2/settings.xml")];
    files.extend(installation.map(|folder| folder.join("conf/settings.xml")));
    files.push(look.system("etc/maven/settings.xml"));
    files
}

/// Adds mirrors and repositories; `true` when a mirror stands in the place of the central repository.
fn settings(look: &mut Look<'_>, answer: &mut Answer, root: &Element, name: &str) -> bool {
    let mut central_replaced = false;
    for mirror in root.child("mirrors").into_iter().flat_map(|m| m.all("mirror")) {
        // Maven ships a mirror that blocks plain HTTP by an address that leads nowhere.
        if mirror.value("blocked") == Some("true") {
            continue;
        }
        let of = mirror.value("mirrorOf").unwrap_or_default();
        if add(look, answer, mirror.value("url"), &format!("maven: mirror of {name}")) {
            central_replaced |= covers_central(of);
        }
    }
    let active: Vec<&str> =
        root.child("activeProfiles").into_iter().flat_map(|a| a.all("activeProfile")).map(|p| p.text.trim()).collect();
    for profile in root.child("profiles").into_iter().flat_map(|p| p.all("profile")) {
        let by_default = profile.child("activation").and_then(|a| a.value("activeByDefault")) == Some("true");
        if !by_default && !profile.value("id").is_some_and(|id| active.contains(&id)) {
            continue;
        }
        for (list, item) in [("repositories", "repository"), ("pluginRepositories", "pluginRepository")] {
            for repository in profile.child(list).into_iter().flat_map(|r| r.all(item)) {
                let added = add(look, answer, repository.value("url"), &format!("maven: repository of {name}"));
                central_replaced |= added && repository.value("id") == Some("central");
            }
        }
    }
    central_replaced
}

/// `mirrorOf`: names divided by commas, `*`, `external:*`, and `!name` for exceptions.
fn covers_central(mirror_of: &str) -> bool {
    let parts: Vec<&str> = mirror_of.split(',').map(str::trim).collect();
    !parts.contains(&"!central") && parts.iter().any(|p| ["*", "external:*", "central"].contains(p))
}

fn add(look: &mut Look<'_>, answer: &mut Answer, url: Option<&str>, why: &str) -> bool {
    let Some(url) = url else { return false };
    let expanded = expand(url, |name| look.var(name.strip_prefix("env.")?));
    match expanded {
        Some(url) => answer.add(&url, why, Told::Configuration),
        None => {
            answer.gap(format!("{why}: `{url}` needs a property that is not known here"));
            false
        }
    }
}

/// The central repository stands in the model that every project inherits, inside a library of the installation.
fn central(look: &mut Look<'_>, answer: &mut Answer, installation: &Path) {
    const MODEL: &str = "org/apache/maven/model/pom-4.0.0.xml";
    let why = "maven: the repository of its own model";
    let lib = installation.join("lib");
    let names = look.list(&lib);
    let jar = names.iter().filter_map(|name| name.to_str()).find(|name| {
        ["maven-model-builder-", "maven-impl-", "maven-api-impl-"].iter().any(|p| name.starts_with(p))
            && name.ends_with(".jar")
    });
    let Some(jar) = jar.map(|name| lib.join(name)) else {
        answer.gap(format!("{why}: its library is not in {}", lib.display()));
        return;
    };
    look.note(&jar);
    let jar = jar.to_string_lossy().into_owned();
    // A jar is a zip archive; one of these programs opens it.
    let python = format!("import sys,zipfile; sys.stdout.write(zipfile.ZipFile(sys.argv[1]).read('{MODEL}').decode())");
    let ways: [(&str, Vec<&str>); 3] = [
        ("unzip", vec!["-p", &jar, MODEL]),
        ("python3", vec!["-I", "-c", &python, &jar]),
        ("bsdtar", vec!["-xOf", &jar, MODEL]),
    ];
    for (program, args) in ways {
        for program in look.programs(program) {
            let Ok(text) = program.ask(&args, &[]) else { continue };
            let model = parse(&text);
            let repositories = [("repositories", "repository"), ("pluginRepositories", "pluginRepository")];
            let urls = repositories.iter().flat_map(|(list, item)| {
                model.child(list).into_iter().flat_map(|r| r.all(item)).filter_map(|r| r.value("url"))
            });
            if urls.filter(|url| answer.add(url, why, Told::Client)).count() > 0 {
                return;
            }
        }
    }
    answer.unsettled = true;
    answer
        .gap(format!("{why}: neither unzip nor python3 nor bsdtar could read it; allow it by name: --allow-host HOST"));
}
