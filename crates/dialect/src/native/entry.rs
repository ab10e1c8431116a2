//! Rules in lists: a text, or a table that gives a reason with it.

use super::walk::{Value, Walk, is_meant};
use crate::codes;
use crate::source::Diagnostic;
use crate::value::shown;
use ringfence_policy::Origin;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Keys of a rule that is a table; some lists know more.
pub(crate) const ENTRY_KEYS: &[&str] = &["rule", "why"];

/// One rule of a list.
pub(super) struct Entry<'v, 't> {
    pub(super) text: &'v str,
    /// Where the text stands.
    pub(super) span: Range<usize>,
    pub(super) origin: Origin,
    pub(super) why: Option<String>,
    /// The table, for the keys that this list knows beyond [`ENTRY_KEYS`].
    pub(super) table: Option<&'v DeTable<'t>>,
}

impl Walk<'_> {
    /// The rules of a list. `extra` are the keys that its tables know beyond [`ENTRY_KEYS`].
    pub(super) fn entries<'v, 't>(&mut self, what: &str, value: &'v Value<'t>, extra: &[&str]) -> Vec<Entry<'v, 't>> {
        let Some(list) = self.list(what, value) else { return Vec::new() };
        let mut entries: Vec<Entry<'v, 't>> = Vec::with_capacity(list.len());
        let mut seen: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for item in list {
            let Some(entry) = self.entry(what, item, extra) else { continue };
            // A table may say more of the same text.
            let more = entry.table.is_some_and(|table| table.keys().any(|key| extra.contains(&key.get_ref().as_ref())));
            if let Some(first) = seen.get(entry.text).filter(|_| !more) {
                let problem =
                    Diagnostic::warning(codes::DUPLICATE_RULE, format!("`{}` is written twice", shown(entry.text)))
                        .at(self.label(entry.span.clone(), "this has no effect"))
                        .at(self.label(first.clone(), "the first"));
                self.report(problem);
            } else {
                seen.insert(entry.text, entry.span.clone());
            }
            entries.push(entry);
        }
        entries
    }

    fn entry<'v, 't>(&mut self, what: &str, item: &'v Value<'t>, extra: &[&str]) -> Option<Entry<'v, 't>> {
        let origin = self.origin(&item.span());
        let table = match item.get_ref() {
            DeValue::String(text) => {
                return Some(Entry { text: text.as_ref(), span: item.span(), origin, why: None, table: None });
            }
            DeValue::Table(table) => table,
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                self.rule_or_table(what, item);
                return None;
            }
        };
        let (mut rule, mut why, mut sound) = (None, None, true);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "rule" => {
                    rule = self.text("rule", value).map(|text| (text, value.span()));
                    sound &= rule.is_some();
                }
                "why" => why = self.text("why", value).map(str::to_owned),
                known if extra.contains(&known) => {}
                _ => {
                    let known: Vec<&str> = ENTRY_KEYS.iter().chain(extra).copied().collect();
                    sound &= !is_meant(key, "rule", &known);
                    self.unknown(key, &format!("a rule of `{what}`"), &known);
                }
            }
        }
        match rule {
            Some((text, span)) => Some(Entry { text, span, origin, why, table: Some(table) }),
            None => {
                if sound {
                    self.missing(codes::KEY_MISSING, item.span(), "a rule without `rule`", "add `rule = \"...\"`");
                }
                None
            }
        }
    }

    /// Texts of a list that know no table.
    pub(super) fn texts<'v>(&mut self, what: &str, value: &'v Value<'_>) -> Vec<(&'v str, Range<usize>)> {
        let Some(list) = self.list(what, value) else { return Vec::new() };
        let entry = format!("{what}[]");
        list.iter().filter_map(|item| self.text(&entry, item).map(|text| (text, item.span()))).collect()
    }
}
