//! Walking a document: places, types, and keys that are not known.

use super::{TOP_KEYS, fragment_of};
use crate::codes::{self, Code};
use crate::context::ParseContext;
use crate::source::{Diagnostic, Label, SourceText};
use crate::suggest::nearest;
use crate::value::path::Places;
use crate::value::{Fault, shown};
use ringfence_policy::{Fragment, Origin};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

pub(super) type Key<'t> = Spanned<DeString<'t>>;
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// A document under way to a fragment.
pub(super) struct Walk<'c> {
    pub(super) source: Arc<SourceText>,
    pub(super) context: &'c ParseContext<'c>,
    pub(super) fragment: Fragment,
    problems: Vec<Diagnostic>,
}

impl<'c> Walk<'c> {
    pub(super) fn new(source: Arc<SourceText>, context: &'c ParseContext<'c>) -> Self {
        Self { source, fragment: fragment_of(context), context, problems: Vec::new() }
    }

    pub(super) fn finish(self) -> (Fragment, Vec<Diagnostic>) {
        (self.fragment, self.problems)
    }

    pub(super) fn document(&mut self, document: &DeTable<'_>) {
        let mut version = false;
        for (key, value) in document {
            match key.get_ref().as_ref() {
                "version" => {
                    version = true;
                    self.version(value);
                }
                "description" => {
                    let _ = self.text("description", value);
                }
                "preset" => self.presets(value),
                "files" => self.files(value),
                "network" => self.network(value),
                "credential" => self.credentials(value),
                "unix" => self.unix(value),
                "env" => self.env(value),
                "limits" => {
                    let limits = self.limits("[limits]", value);
                    self.fragment.limits = limits;
                }
                "walls" => self.walls(value),
                "ceiling" => self.ceiling(key, value),
                _ => {
                    version |= is_meant(key, "version", TOP_KEYS);
                    self.unknown(key, "", TOP_KEYS);
                }
            }
        }
        if !version {
            let problem = Diagnostic::error(codes::VERSION_MISSING, "the version is missing").at(Label::new(
                &self.source,
                0..0,
                "write `version = 1` here",
            ));
            self.report(problem);
        }
    }

    fn version(&mut self, value: &Value<'_>) {
        let Some(number) = self.integer("version", value) else { return };
        if number != Some(1) {
            let problem = Diagnostic::error(codes::VERSION, "this program reads version 1 only")
                .at(self.label(value.span(), "write `1`"))
                .hint("a file of a later version is for a later ringfence");
            self.report(problem);
        }
    }

    // Places.

    pub(super) fn label(&self, span: Range<usize>, text: &str) -> Label {
        Label::new(&self.source, span, text)
    }

    /// The origin of what stands at a place.
    pub(super) fn origin(&self, span: &Range<usize>) -> Origin {
        Origin {
            layer: self.context.layer,
            source: self.context.source.clone(),
            line: Some(self.source.line(span.start)),
        }
    }

    pub(super) fn places(&self) -> Places<'c> {
        Places { home: self.context.home, base: self.context.base }
    }

    // Problems.

    pub(super) fn report(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// Takes the value, or reports the fault at its place.
    pub(super) fn take<T>(&mut self, result: Result<T, Fault>, span: Range<usize>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                let problem = fault.at(self.label(span, ""));
                self.report(problem);
                None
            }
        }
    }

    pub(super) fn missing(&mut self, code: Code, span: Range<usize>, message: &str, label: &str) {
        let problem = Diagnostic::error(code, message).at(self.label(span, label));
        self.report(problem);
    }

    /// Reports a key that is not known in `table` (`[files]`, or empty for the document itself).
    pub(super) fn unknown(&mut self, key: &Key<'_>, table: &str, known: &[&str]) {
        let name = key.get_ref().as_ref();
        let place = if table.is_empty() { String::new() } else { format!(" in {table}") };
        let message = format!("unknown key `{}`{place}", shown(name));
        let list = || known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        let (label, hint) = match nearest(name, known) {
            Some(near) => (format!("did you mean `{near}`?"), None),
            None => match home_of(name) {
                Some(home) => (format!("this belongs in {home}"), None),
                None => ("not known here".to_owned(), Some(format!("known here: {}", list()))),
            },
        };
        let mut problem = Diagnostic::error(codes::UNKNOWN_KEY, message).at(self.label(key.span(), &label));
        problem.hint = hint;
        self.report(problem);
    }

    // Types.

    fn wrong_type(&mut self, what: &str, value: &Value<'_>, wanted: &str, hint: Option<&str>) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let mut problem = Diagnostic::error(codes::WRONG_TYPE, format!("{what} is {wanted}"))
            .at(self.label(value.span(), &format!("this is {found}")));
        problem.hint = hint.map(str::to_owned);
        self.report(problem);
    }

    pub(super) fn text<'v>(&mut self, what: &str, value: &'v Value<'_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(&format!("`{what}`"), value, "a text in quotes", None);
        }
        text
    }

    pub(super) fn boolean(&mut self, what: &str, value: &Value<'_>) -> Option<bool> {
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(&format!("`{what}`"), value, "`true` or `false`, without quotes", None);
        }
        truth
    }

    /// `Some(None)`: an integer, but not one that fits.
    pub(super) fn integer(&mut self, what: &str, value: &Value<'_>) -> Option<Option<u64>> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(&format!("`{what}`"), value, "a whole number", None);
            return None;
        };
        Some(u64::from_str_radix(integer.as_str(), integer.radix()).ok())
    }

    pub(super) fn table<'v, 't>(&mut self, what: &str, value: &'v Value<'t>) -> Option<&'v DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(what, value, "a table", None);
        }
        table
    }

    pub(super) fn list<'v, 't>(&mut self, what: &str, value: &'v Value<'t>) -> Option<&'v [Value<'t>]> {
        match value.get_ref().as_array() {
            Some(array) => Some(array),
            None => {
                let hint = value.get_ref().as_str().map(|_| {
                    let written = shown(self.source.slice(value.span()).trim());
                    format!("write `[{written}]`")
                });
                self.wrong_type(&format!("`{what}`"), value, "a list", hint.as_deref());
                None
            }
        }
    }

    /// An array of tables: `[[network.rule]]`.
    pub(super) fn tables<'v, 't>(&mut self, what: &str, value: &'v Value<'t>) -> Vec<(&'v DeTable<'t>, Range<usize>)> {
        let Some(array) = value.get_ref().as_array() else {
            let hint = format!("write {what}, with two brackets, for each");
            self.wrong_type(what, value, "a list of tables", Some(&hint));
            return Vec::new();
        };
        array.iter().filter_map(|item| self.table(what, item).map(|table| (table, item.span()))).collect()
    }

    pub(super) fn rule_or_table(&mut self, what: &str, value: &Value<'_>) {
        let hint = "a rule is a text, or `{ rule = \"...\", why = \"...\" }`";
        self.wrong_type(&format!("an entry of `{what}`"), value, "a text or a table", Some(hint));
    }
}

/// Whether a key that is not known was most likely meant to be `wanted`, which is then not missing as well.
pub(super) fn is_meant(key: &Key<'_>, wanted: &str, known: &[&str]) -> bool {
    nearest(key.get_ref().as_ref(), known) == Some(wanted)
}

/// The table to which a key belongs that was written elsewhere.
fn home_of(key: &str) -> Option<&'static str> {
    let (_, home) = super::files::FILE_KEYS
        .iter()
        .map(|k| (*k, "[files]"))
        .chain(super::network::NETWORK_KEYS.iter().map(|k| (*k, "[network]")))
        .chain(super::rest::LIMIT_KEYS.iter().map(|k| (*k, "[limits]")))
        .chain(super::rest::WALL_KEYS.iter().map(|k| (*k, "[walls]")))
        .chain(super::rest::ENV_KEYS.iter().map(|k| (*k, "[env]")))
        .find(|(k, _)| *k == key)?;
    Some(home)
}
