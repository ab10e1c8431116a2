//! `[[credential]]`.

use super::walk::{Value, Walk};
use crate::codes;
use crate::source::Diagnostic;
use crate::value::{Fault, env, host, path, shown};
use ringfence_policy::HostPattern;
use ringfence_policy::host_rule::Wide;
use ringfence_policy::secret::{Credential, SecretSource};
use std::ops::Range;
use toml::de::DeTable;

/// Keys of `[[credential]]`.
pub(crate) const CREDENTIAL_KEYS: &[&str] = &["name", "source", "for", "inject", "phantom"];
/// Keys of `source`, of which one is written.
pub(crate) const SOURCE_KEYS: &[&str] = &["env", "file", "exec", "keyring"];
/// Keys of `inject`.
pub(crate) const INJECT_KEYS: &[&str] = &["header", "format"];
/// Keys of `phantom`.
pub(crate) const PHANTOM_KEYS: &[&str] = &["env"];

/// A credential under way. The outer option tells whether the key was there, so that a malformed value is not reported
/// as missing as well.
#[derive(Default)]
struct Draft {
    name: Option<Option<(String, Range<usize>)>>,
    source: Option<Option<SecretSource>>,
    hosts: Option<Vec<HostPattern>>,
    inject: Option<Option<(String, String)>>,
    phantom: Option<String>,
}

impl Walk<'_> {
    pub(super) fn credentials(&mut self, value: &Value<'_>) {
        let mut names: Vec<(String, Range<usize>)> = Vec::new();
        for (table, span) in self.tables("[[credential]]", value) {
            let draft = self.draft(table);
            if let Some(Some((name, place))) = &draft.name {
                if let Some((_, first)) = names.iter().find(|(known, _)| known == name) {
                    let problem = Diagnostic::error(
                        codes::CREDENTIAL_NAME,
                        format!("two credentials are called `{}`", shown(name)),
                    )
                    .at(self.label(place.clone(), "the second"))
                    .at(self.label(first.clone(), "the first"));
                    self.report(problem);
                }
                names.push((name.clone(), place.clone()));
            }
            self.credential(draft, span);
        }
    }

    fn credential(&mut self, draft: Draft, span: Range<usize>) {
        let missing = [
            ("name", draft.name.is_none()),
            ("source", draft.source.is_none()),
            ("for", draft.hosts.is_none()),
            ("inject", draft.inject.is_none()),
        ];
        for (key, _) in missing.iter().filter(|(_, missing)| *missing) {
            let message = format!("a credential without `{key}`");
            self.missing(codes::KEY_MISSING, span.clone(), &message, &format!("add `{key} = ...`"));
        }
        let (Some(Some((name, _))), Some(Some(source)), Some(hosts), Some(Some((header, format)))) =
            (draft.name, draft.source, draft.hosts, draft.inject)
        else {
            return;
        };
        let origin = self.origin(&span);
        let phantom_env = draft.phantom;
        self.fragment.credentials.push(Credential { name, source, hosts, header, format, phantom_env, origin });
    }

    fn draft(&mut self, table: &DeTable<'_>) -> Draft {
        let mut draft = Draft::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "name" => {
                    let text = self.text("name", value).map(credential_name);
                    let name = text.and_then(|name| self.take(name, value.span()));
                    draft.name = Some(name.map(|name| (name, value.span())));
                }
                "source" => draft.source = Some(self.secret_source(value)),
                "for" => draft.hosts = Some(self.credential_hosts(value)),
                "inject" => draft.inject = Some(self.inject(value)),
                "phantom" => draft.phantom = self.phantom(value),
                _ => self.unknown(key, "[[credential]]", CREDENTIAL_KEYS),
            }
        }
        draft
    }

    fn secret_source(&mut self, value: &Value<'_>) -> Option<SecretSource> {
        let table = self.table("`source`", value)?;
        let mut written = 0;
        let mut source = None;
        for (key, item) in table {
            let name = key.get_ref().as_ref();
            if SOURCE_KEYS.contains(&name) {
                written += 1;
            }
            let found = match name {
                "env" => self.text("env", item).map(|text| env::name(text).map(SecretSource::Env)),
                "file" => self.text("file", item).map(|text| path::one(text, self.places()).map(SecretSource::File)),
                "keyring" => self.text("keyring", item).map(|text| not_empty("entry", text).map(SecretSource::Keyring)),
                "exec" => self.list("exec", item).map(|_| {
                    let words: Vec<String> = self.texts("exec", item).into_iter().map(|(w, _)| w.to_owned()).collect();
                    match words.first() {
                        Some(program) if !program.is_empty() && !words.iter().any(|w| w.contains('\0')) => {
                            Ok(SecretSource::Exec(words))
                        }
                        _ => Err(Fault::new(codes::CREDENTIAL, "`exec` names no program")
                            .label("a program and its arguments, without a shell")),
                    }
                }),
                _ => {
                    self.unknown(key, "`source`", SOURCE_KEYS);
                    None
                }
            };
            source = found.and_then(|found| self.take(found, item.span())).or(source);
        }
        if written != 1 {
            let problem = Diagnostic::error(codes::CREDENTIAL, "a credential has one source")
                .at(self.label(value.span(), &format!("{written} of them")))
                .hint("write one of `env`, `file`, `exec` and `keyring`");
            self.report(problem);
            return None;
        }
        source
    }

    fn credential_hosts(&mut self, value: &Value<'_>) -> Vec<HostPattern> {
        let mut hosts = Vec::new();
        let texts = self.texts("for", value);
        if texts.is_empty() && value.get_ref().as_array().is_some_and(|array| array.is_empty()) {
            let problem = Diagnostic::error(codes::CREDENTIAL, "a credential for no host")
                .at(self.label(value.span(), "name the hosts that get it"));
            self.report(problem);
        }
        for (text, span) in texts {
            let exact = host::host_only(text, Wide::Forced).and_then(|pattern| match pattern {
                HostPattern::Exact(_) => Ok(pattern),
                HostPattern::Network(_) if !text.contains('/') => Ok(pattern),
                HostPattern::Network(_) | HostPattern::Below(_) | HostPattern::Any => {
                    Err(Fault::new(codes::CREDENTIAL_HOST, format!("`{}` is not one host", shown(text)))
                        .label("a secret goes to hosts that are named one by one"))
                }
            });
            hosts.extend(self.take(exact, span));
        }
        hosts
    }

    fn inject(&mut self, value: &Value<'_>) -> Option<(String, String)> {
        let table = self.table("`inject`", value)?;
        let (mut header, mut named, mut format) = (None, false, Some("{}".to_owned()));
        for (key, item) in table {
            match key.get_ref().as_ref() {
                "header" => {
                    named = true;
                    let text = self.text("header", item).map(header_name);
                    header = text.and_then(|text| self.take(text, item.span()));
                }
                "format" => {
                    let text = self.text("format", item).map(header_format);
                    format = text.and_then(|text| self.take(text, item.span()));
                }
                _ => self.unknown(key, "`inject`", INJECT_KEYS),
            }
        }
        if !named {
            self.missing(codes::KEY_MISSING, value.span(), "`inject` without `header`", "add `header = \"...\"`");
        }
        Some((header?, format?))
    }

    fn phantom(&mut self, value: &Value<'_>) -> Option<String> {
        let table = self.table("`phantom`", value)?;
        let mut name = None;
        for (key, item) in table {
            match key.get_ref().as_ref() {
                "env" => {
                    let text = self.text("env", item).map(env::name);
                    name = text.and_then(|text| self.take(text, item.span()));
                }
                _ => self.unknown(key, "`phantom`", PHANTOM_KEYS),
            }
        }
        name
    }
}

fn not_empty(what: &str, text: &str) -> Result<String, Fault> {
    if text.is_empty() || text.contains('\0') {
        return Err(Fault::new(codes::CREDENTIAL, format!("the {what} has no name")).label("name it"));
    }
    Ok(text.to_owned())
}

/// The only part of a credential that is logged: short and harmless.
fn credential_name(text: &str) -> Result<String, Fault> {
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if fits {
        return Ok(text.to_owned());
    }
    Err(Fault::new(codes::CREDENTIAL, format!("`{}` is no name of a credential", shown(text)))
        .label("1 to 64 letters, digits, `-`, `_` and `.`"))
}

/// A field name (RFC 9110 section 5.1: a token). Fields that frame a message are refused: the engine writes them.
fn header_name(text: &str) -> Result<String, Fault> {
    const FRAMING: [&str; 8] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "proxy-authorization",
    ];
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let fault =
        |label: &str| Fault::new(codes::CREDENTIAL, format!("`{}` is no header for it", shown(text))).label(label);
    if text.is_empty() || !text.bytes().all(token) {
        return Err(fault("the name of a header, such as `Authorization`"));
    }
    if FRAMING.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(fault("this header frames the message"));
    }
    Ok(text.to_owned())
}

fn header_format(text: &str) -> Result<String, Fault> {
    let fault = |label: &str| Fault::new(codes::CREDENTIAL, format!("`{}` is no format", shown(text))).label(label);
    if text.matches("{}").count() != 1 {
        return Err(fault("`{}` stands for the secret, once"));
    }
    if text.bytes().any(|b| !(0x20..0x7f).contains(&b)) {
        return Err(fault("printable ASCII only"));
    }
    Ok(text.to_owned())
}
