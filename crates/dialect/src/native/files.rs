//! `preset` and `[files]`.

use super::walk::{Value, Walk};
use crate::codes;
use crate::presets;
use crate::source::Diagnostic;
use crate::suggest::nearest;
use crate::value::{Fault, path, scalar, shown};
use ringfence_policy::{CopyIn, PathRule, PathVerb};

/// Keys of `[files]`.
pub(crate) const FILE_KEYS: &[&str] =
    &["write", "read", "allow_read", "deny_read", "deny_write", "home", "copy", "protect", "unprotect"];

/// The keys of `[files]` that are lists of paths, and what each says.
const PATH_LISTS: &[(&str, PathVerb)] = &[
    ("write", PathVerb::AllowWrite),
    ("read", PathVerb::AllowRead),
    ("allow_read", PathVerb::AllowRead),
    ("deny_read", PathVerb::DenyRead),
    ("deny_write", PathVerb::DenyWrite),
];

impl Walk<'_> {
    pub(super) fn presets(&mut self, value: &Value<'_>) {
        for entry in self.entries("preset", value, &[]) {
            if presets::find(entry.text).is_some() {
                self.fragment.presets.push((entry.text.to_owned(), entry.origin));
                continue;
            }
            let label = match nearest(entry.text, presets::NAMES) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "no such preset".to_owned(),
            };
            let problem = Diagnostic::error(codes::PRESET_UNKNOWN, format!("unknown preset `{}`", shown(entry.text)))
                .at(self.label(entry.span, &label))
                .hint(format!("presets: {}", presets::NAMES.join(", ")));
            self.report(problem);
        }
    }

    pub(super) fn files(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("[files]", value) else { return };
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if let Some((list, verb)) = PATH_LISTS.iter().find(|(list, _)| *list == name) {
                let rules = self.path_rules(list, *verb, value);
                self.fragment.paths.extend(rules);
                continue;
            }
            match name {
                "home" => self.home(value),
                "copy" => self.copies(value),
                "protect" => self.protect(value),
                "unprotect" => self.unprotect(value),
                _ => self.unknown(key, "[files]", FILE_KEYS),
            }
        }
    }

    pub(super) fn path_rules(&mut self, list: &str, verb: PathVerb, value: &Value<'_>) -> Vec<PathRule> {
        let mut rules = Vec::new();
        for entry in self.entries(list, value, &[]) {
            let pattern = path::pattern(entry.text, self.places());
            if let Some(pattern) = self.take(pattern, entry.span) {
                rules.push(PathRule { pattern, verb, origin: entry.origin, why: entry.why });
            }
        }
        rules
    }

    fn home(&mut self, value: &Value<'_>) {
        let Some(text) = self.text("home", value) else { return };
        if let Some(mode) = self.take(scalar::home(text), value.span()) {
            self.fragment.home = Some((mode, self.origin(&value.span())));
        }
    }

    fn copies(&mut self, value: &Value<'_>) {
        for entry in self.entries("copy", value, &[]) {
            let path = path::one(entry.text, self.places()).and_then(|path| {
                if path.is_within(self.context.home) && path != *self.context.home {
                    return Ok(path);
                }
                Err(Fault::new(codes::PATH, format!("`{}` is not in the home folder", shown(entry.text)))
                    .label("only files of the home folder are copied")
                    .hint("what lies elsewhere is readable as it is"))
            });
            if let Some(path) = self.take(path, entry.span) {
                let why = entry.why.unwrap_or_else(|| "copied into the private home".to_owned());
                self.fragment.copies.push(CopyIn { path, origin: entry.origin, why });
            }
        }
    }

    fn protect(&mut self, value: &Value<'_>) {
        for entry in self.entries("protect", value, &[]) {
            let why = entry.why.unwrap_or_else(|| "protected by this policy".to_owned());
            let name = path::protected(entry.text, &why, entry.origin);
            let name = self.take(name, entry.span);
            self.fragment.protected.extend(name);
        }
    }

    fn unprotect(&mut self, value: &Value<'_>) {
        for entry in self.entries("unprotect", value, &[]) {
            let name = path::protected(entry.text, "", entry.origin.clone());
            if let Some(name) = self.take(name, entry.span) {
                self.fragment.unprotect.push((name.pattern, entry.origin));
            }
        }
    }
}
