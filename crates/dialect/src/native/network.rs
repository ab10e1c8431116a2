//! `[network]` and `[[network.rule]]`.

use super::walk::{Value, Walk};
use crate::codes;
use crate::source::Diagnostic;
use crate::value::host::Meaning;
use crate::value::{Fault, env, host, shown};
use ringfence_policy::fragment::EnvHost;
use ringfence_policy::host_rule::Wide;
use ringfence_policy::request_rule::RequestRule;
use ringfence_policy::{HostPattern, HostRule, HostVerb, PortRule, PortSet, UpstreamProxy};
use std::ops::Range;
use toml::de::DeTable;

/// Keys of `[network]`.
pub(crate) const NETWORK_KEYS: &[&str] = &["allow", "deny", "allow_from_env", "ports", "upstream", "rule"];
/// Keys of `ports`.
pub(crate) const PORT_KEYS: &[&str] = &["publish", "host"];
/// Keys of a rule of `allow` that is a table, beyond `rule` and `why`.
pub(crate) const ALLOW_KEYS: &[&str] = &["addresses", "force"];
/// Keys of `[[network.rule]]`.
pub(crate) const REQUEST_KEYS: &[&str] = &["host", "methods", "paths"];

impl Walk<'_> {
    pub(super) fn network(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("[network]", value) else { return };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "allow" => {
                    let rules = self.host_rules("allow", HostVerb::Allow, value);
                    self.fragment.hosts.extend(rules);
                }
                "deny" => {
                    let rules = self.host_rules("deny", HostVerb::Deny, value);
                    self.fragment.hosts.extend(rules);
                }
                "allow_from_env" => self.allow_from_env(value),
                "ports" => self.ports(value),
                "upstream" => self.upstream(value),
                "rule" => {
                    for (table, span) in self.tables("[[network.rule]]", value) {
                        self.request(table, span);
                    }
                }
                _ => self.unknown(key, "[network]", NETWORK_KEYS),
            }
        }
    }

    /// Names of variables; what they hold is the launcher's, and read by whoever has its environment.
    fn allow_from_env(&mut self, value: &Value<'_>) {
        for entry in self.entries("allow_from_env", value, &[]) {
            if let Some(name) = self.take(env::name(entry.text), entry.span) {
                self.fragment.allow_from_env.push(EnvHost { name, origin: entry.origin });
            }
        }
    }

    pub(super) fn host_rules(&mut self, list: &str, verb: HostVerb, value: &Value<'_>) -> Vec<HostRule> {
        // A deny may be as wide as it likes, and opens no address.
        let extra = if verb == HostVerb::Allow { ALLOW_KEYS } else { &[] };
        let mut rules = Vec::new();
        for entry in self.entries(list, value, extra) {
            let (addresses, forced) = entry.table.map_or((None, false), |table| self.allow_keys(table));
            let wide = if forced || verb == HostVerb::Deny { Wide::Forced } else { Wide::Refused };
            let why = entry.why.as_deref();
            let meaning = host::meaning(entry.text, verb, wide, &entry.origin, why, self.context);
            match self.take(meaning, entry.span.clone()) {
                Some(Meaning::Rules(found)) => rules.extend(found.into_iter().map(|mut rule| {
                    rule.addresses.extend(addresses.iter().flatten().filter_map(|pattern| match pattern {
                        HostPattern::Network(network) => Some(*network),
                        HostPattern::Exact(_) | HostPattern::Below(_) | HostPattern::Any => None,
                    }));
                    rule
                })),
                Some(Meaning::Nothing(why)) => {
                    let problem = Diagnostic::warning(
                        codes::SET_UNRESOLVED,
                        format!("`{}` stands for no host on this machine: {}", shown(entry.text), shown(&why)),
                    )
                    .at(self.label(entry.span, "this allows nothing here"));
                    self.report(problem);
                }
                None => {}
            }
        }
        rules
    }

    /// `addresses` and `force` of a rule that is a table.
    fn allow_keys(&mut self, table: &DeTable<'_>) -> (Option<Vec<HostPattern>>, bool) {
        let (mut addresses, mut forced) = (None, false);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "addresses" => {
                    let mut networks = Vec::new();
                    for (text, span) in self.texts("addresses", value) {
                        let parsed = host::rule(text, Wide::Refused);
                        let network = match parsed {
                            Ok((host @ HostPattern::Network(_), PortSet::Default)) => Ok(host),
                            Ok(_) | Err(_) => {
                                Err(Fault::new(codes::ADDRESS, format!("`{}` is no network", shown(text)))
                                    .label("an address, or a network such as `10.0.0.0/8`"))
                            }
                        };
                        networks.extend(self.take(network, span));
                    }
                    addresses = Some(networks);
                }
                "force" => forced = self.boolean("force", value).unwrap_or(false),
                _ => {}
            }
        }
        (addresses, forced)
    }

    fn ports(&mut self, value: &Value<'_>) {
        let Some(table) = self.table("`ports`", value) else { return };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "publish" => {
                    let rules = self.port_rules("publish", value);
                    self.fragment.publish.extend(rules);
                }
                "host" => {
                    let rules = self.port_rules("host", value);
                    self.fragment.host_ports.extend(rules);
                }
                _ => self.unknown(key, "`ports`", PORT_KEYS),
            }
        }
    }

    fn port_rules(&mut self, list: &str, value: &Value<'_>) -> Vec<PortRule> {
        let mut rules: Vec<PortRule> = Vec::new();
        for item in self.list(list, value).unwrap_or_default() {
            let Some(number) = self.integer(&format!("{list}[]"), item) else { continue };
            let Some(port) = self.take(host::port(number), item.span()) else { continue };
            if rules.iter().any(|rule| rule.port == port) {
                let problem = Diagnostic::warning(codes::DUPLICATE_RULE, format!("port {port} is written twice"))
                    .at(self.label(item.span(), "this has no effect"));
                self.report(problem);
                continue;
            }
            rules.push(PortRule { port, origin: self.origin(&item.span()) });
        }
        rules
    }

    fn upstream(&mut self, value: &Value<'_>) {
        let Some(text) = self.text("upstream", value) else { return };
        if let Some(url) = self.take(host::upstream(text), value.span()) {
            self.fragment.upstream = Some(UpstreamProxy { url, origin: self.origin(&value.span()) });
        }
    }

    fn request(&mut self, table: &DeTable<'_>, span: Range<usize>) {
        let (mut host, mut named) = (None, false);
        let (mut methods, mut paths) = (Vec::new(), Vec::new());
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "host" => {
                    named = true;
                    if let Some(text) = self.text("host", value) {
                        host = self.take(host::host_only(text, Wide::Refused), value.span());
                    }
                }
                "methods" => {
                    for (text, span) in self.texts("methods", value) {
                        methods.extend(self.take(method(text), span));
                    }
                }
                "paths" => {
                    for (text, span) in self.texts("paths", value) {
                        paths.extend(self.take(request_path(text), span));
                    }
                }
                _ => self.unknown(key, "[[network.rule]]", REQUEST_KEYS),
            }
        }
        if !named {
            self.missing(codes::KEY_MISSING, span.clone(), "a request rule without `host`", "add `host = \"...\"`");
        }
        if let Some(host) = host {
            let origin = self.origin(&span);
            self.fragment.requests.push(RequestRule { host, methods, paths, origin });
        }
    }
}

/// A method as it stands in a request line (RFC 9110 section 9.1: methods are case-sensitive).
fn method(text: &str) -> Result<String, Fault> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return Ok(text.to_owned());
    }
    let fault = Fault::new(codes::REQUEST, format!("`{}` is no method", shown(text)));
    let upper = text.to_ascii_uppercase();
    if !text.is_empty() && upper.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return Err(fault.label(format!("write `{upper}`")).hint("methods are case-sensitive"));
    }
    Err(fault.label("an upper-case word, such as `GET`"))
}

/// A pattern over paths of requests.
fn request_path(text: &str) -> Result<String, Fault> {
    let fault = |label: &str| Fault::new(codes::REQUEST, format!("`{}` is no path", shown(text))).label(label);
    if !text.starts_with('/') {
        return Err(fault("paths start with `/`"));
    }
    if text.contains(['?', '#']) {
        return Err(fault("a path has no query"));
    }
    if text.split('/').any(|part| matches!(part, "." | "..")) {
        return Err(fault("`.` and `..` never reach a server"));
    }
    if text.split('/').any(|part| part.contains("**") && part != "**") {
        return Err(fault("`**` stands alone between slashes"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(fault("no white space"));
    }
    Ok(text.to_owned())
}
