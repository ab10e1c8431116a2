//! `[unix]`, `[env]`, `[limits]`, `[walls]` and `[ceiling]`.

use super::walk::{Key, Value, Walk, is_meant};
use crate::codes;
use crate::source::Diagnostic;
use crate::value::{Fault, env, path, scalar};
use ringfence_policy::env_rule::EnvSet;
use ringfence_policy::limits::Limit;
use ringfence_policy::{Ceiling, EnvRule, HostVerb, Layer, Limits, PathVerb, UnixRule};
use toml::de::DeValue;

/// Keys of `[unix]`.
pub(crate) const UNIX_KEYS: &[&str] = &["allow"];
/// Keys of `[env]`.
pub(crate) const ENV_KEYS: &[&str] = &["pass", "set", "deny"];
/// Keys of a variable of `set` that is a table.
pub(crate) const SET_KEYS: &[&str] = &["value", "why"];
/// Keys of `[limits]`.
pub(crate) const LIMIT_KEYS: &[&str] = &["memory", "pids", "disk", "wall", "cpu", "open_files"];
/// Keys of `[walls]`.
pub(crate) const WALL_KEYS: &[&str] = &["allow_weaker", "prove"];
/// Keys of `[ceiling]`.
pub(crate) const CEILING_KEYS: &[&str] = &["write", "hosts", "home", "allow_weaker", "ports", "unix", "limits"];

impl Walk<'_> {
    pub(super) fn unix(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("[unix]", value) else { return };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "allow" => {
                    for entry in self.entries("allow", value, &[]) {
                        let path = path::one(entry.text, self.places());
                        if let Some(path) = self.take(path, entry.span) {
                            self.fragment.unix.push(UnixRule { path, origin: entry.origin });
                        }
                    }
                }
                _ => self.unknown(key, "[unix]", UNIX_KEYS),
            }
        }
    }

    pub(super) fn env(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("[env]", value) else { return };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "deny" => {
                    let rules = self.env_patterns("deny", value);
                    self.fragment.env_deny.extend(rules);
                }
                "pass" => {
                    let rules = self.env_patterns("pass", value);
                    self.fragment.env_pass.extend(rules);
                }
                "set" => self.env_set(value),
                _ => self.unknown(key, "[env]", ENV_KEYS),
            }
        }
    }

    fn env_patterns(&mut self, list: &str, value: &Value<'_>) -> Vec<EnvRule> {
        let mut rules = Vec::new();
        for entry in self.entries(list, value, &[]) {
            if let Some(pattern) = self.take(env::pattern(entry.text), entry.span) {
                rules.push(EnvRule { pattern, origin: entry.origin });
            }
        }
        rules
    }

    fn env_set(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("`set`", value) else { return };
        for (key, item) in table {
            let name = self.take(env::name(key.get_ref().as_ref()), key.span());
            let text = match item.get_ref() {
                DeValue::Table(table) => {
                    let (mut text, mut written) = (None, false);
                    for (key, item) in table {
                        match key.get_ref().as_ref() {
                            "value" => {
                                written = true;
                                text = self.text("value", item);
                            }
                            "why" => {
                                let _ = self.text("why", item);
                            }
                            _ => {
                                written |= is_meant(key, "value", SET_KEYS);
                                self.unknown(key, "a variable of `set`", SET_KEYS);
                            }
                        }
                    }
                    if !written {
                        let place = item.span();
                        self.missing(codes::KEY_MISSING, place, "a variable without `value`", "add `value = \"...\"`");
                    }
                    text
                }
                _ => self.text(key.get_ref().as_ref(), item),
            };
            let value = text.and_then(|text| self.take(env::value(text), item.span()));
            if let (Some(name), Some(value)) = (name, value) {
                self.fragment.env_set.push(EnvSet { name, value, origin: self.origin(&key.span()) });
            }
        }
    }

    pub(super) fn limits(&mut self, place: &str, value: &Value<'_>) -> Limits {
        let mut limits = Limits::default();
        let Some(table) = self.table(place, value) else { return limits };
        for (key, item) in table {
            match key.get_ref().as_ref() {
                "memory" => limits.memory = self.size("memory", item),
                "disk" => limits.disk = self.size("disk", item),
                "pids" => limits.pids = self.count("pids", item),
                "open_files" => limits.open_files = self.count("open_files", item),
                "wall" => limits.wall = self.time("wall", item),
                "cpu" => limits.cpu = self.time("cpu", item),
                _ => self.unknown(key, place, LIMIT_KEYS),
            }
        }
        limits
    }

    fn limit<T>(&mut self, value: Option<T>, item: &Value<'_>) -> Option<Limit<T>> {
        value.map(|value| Limit { value, origin: self.origin(&item.span()) })
    }

    fn size(&mut self, what: &str, item: &Value<'_>) -> Option<Limit<u64>> {
        if item.get_ref().is_integer() {
            return self.count(what, item);
        }
        let text = self.text(what, item)?;
        let size = self.take(scalar::size(text), item.span());
        self.limit(size, item)
    }

    fn count(&mut self, what: &str, item: &Value<'_>) -> Option<Limit<u64>> {
        let number = match self.integer(what, item)? {
            Some(0) => Err(scalar::zero(&format!("`{what}`"))),
            Some(number) => Ok(number),
            None => Err(Fault::new(codes::RANGE, format!("`{what}` is out of range")).label("at least 1")),
        };
        let number = self.take(number, item.span());
        self.limit(number, item)
    }

    fn time(&mut self, what: &str, item: &Value<'_>) -> Option<Limit<std::time::Duration>> {
        if item.get_ref().is_integer() {
            let fault =
                Fault::new(codes::DURATION, format!("`{what}` has no unit")).label("such as `\"90s\"` or `\"2h\"`");
            return self.take(Err(fault), item.span());
        }
        let text = self.text(what, item)?;
        let time = self.take(scalar::duration(text), item.span());
        self.limit(time, item)
    }

    pub(super) fn walls(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("[walls]", value) else { return };
        for (key, item) in table {
            let here = || Some(self.origin(&item.span()));
            match key.get_ref().as_ref() {
                "allow_weaker" => {
                    let origin = here();
                    if self.boolean("allow_weaker", item) == Some(true) {
                        self.fragment.allow_weaker = origin;
                    }
                }
                "prove" => {
                    let origin = here();
                    if self.boolean("prove", item) == Some(false) {
                        self.fragment.skip_proof = origin;
                    }
                }
                _ => self.unknown(key, "[walls]", WALL_KEYS),
            }
        }
    }

    pub(super) fn ceiling(&mut self, key: &Key<'_>, value: &Value<'_>) {
        let Some(table) = self.table("[ceiling]", value) else { return };
        if self.context.layer != Layer::Managed {
            let problem = Diagnostic::error(codes::CEILING, "only a managed policy can set a ceiling")
                .at(self.label(key.span(), "this file is none"))
                .hint("write it in /etc/ringfence/policy.toml; here, rules narrow by denying");
            self.report(problem);
        }
        // What is not said sets no bound.
        let mut ceiling = Ceiling {
            write: None,
            hosts: None,
            home: None,
            allow_weaker: true,
            ports: true,
            unix: true,
            limits: Limits::default(),
            origin: self.origin(&key.span()),
        };
        for (key, item) in table {
            match key.get_ref().as_ref() {
                "write" => ceiling.write = Some(self.path_rules("write", PathVerb::AllowWrite, item)),
                "hosts" => ceiling.hosts = Some(self.host_rules("hosts", HostVerb::Allow, item)),
                "home" => {
                    if let Some(text) = self.text("home", item) {
                        ceiling.home = self.take(scalar::home(text), item.span());
                    }
                }
                "allow_weaker" => ceiling.allow_weaker = self.boolean("allow_weaker", item).unwrap_or(false),
                "ports" => ceiling.ports = self.boolean("ports", item).unwrap_or(false),
                "unix" => ceiling.unix = self.boolean("unix", item).unwrap_or(false),
                "limits" => ceiling.limits = self.limits("[ceiling.limits]", item),
                _ => self.unknown(key, "[ceiling]", CEILING_KEYS),
            }
        }
        self.fragment.ceiling = Some(ceiling);
    }
}
