//! The JSON schema of the native format, for editors. It knows keys, types and the spelling of simple values; what a
//! host or a pattern may be, only the parser knows: what the parser takes, the schema takes.

use crate::context::HOST_SETS;
use crate::presets;
use crate::value::scalar::HOME_MODES;
use serde_json::{Map, Value, json};

/// The schema.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ringfence policy",
        "description": "A policy of ringfence, version 1. Also for the text of a TOML file after its translation to JSON.",
        "type": "object",
        "required": ["version"],
        "additionalProperties": false,
        "properties": {
            "version": { "description": "Version of this format.", "const": 1 },
            "description": { "description": "What the file is for, in a line.", "type": "string" },
            "preset": list(rule(json!({ "enum": presets::NAMES }), &[]), "Built-in policies to include: `ringfence preset list`."),
            "files": files(),
            "network": network(),
            "credential": {
                "description": "Secrets that stay outside and are put into requests at the edge.",
                "type": "array",
                "items": credential()
            },
            "unix": table("Unix sockets of the host.", &[
                ("allow", list(rule(words("Path of a socket, without wildcards."), &[]), "Sockets that may be connected to.")),
            ], &[]),
            "env": env(),
            "limits": limits("What a run may use up."),
            "walls": table("What may be weaker than designed.", &[
                ("allow_weaker", boolean("Accept a layer that is not as designed.")),
                ("prove", boolean("Try the walls before the command starts. Default: true.")),
            ], &[]),
            "ceiling": ceiling(),
        }
    })
}

/// The schema as the file that is committed.
pub fn text_of_schema() -> String {
    format!("{:#}\n", schema())
}

fn files() -> Value {
    let paths = |says: &str| list(rule(words("A path or a pattern: absolute, `~/...`, or relative."), &[]), says);
    let names = |says: &str| list(rule(words("One or more names, at any depth, such as `.git/hooks`."), &[]), says);
    table(
        "Which files may be read and written. The most specific rule wins; at the same place deny, write, read.",
        &[
            ("write", paths("May be written and read. The workspace is writable without it.")),
            ("read", paths("May be read.")),
            ("allow_read", paths("May be read: the same as `read`, for what a denial around it hides.")),
            ("deny_read", paths("May be neither read nor written. Adds to the built-in credential stores.")),
            ("deny_write", paths("May not be written.")),
            ("home", json!({ "description": "What stands in the place of the home folder.", "enum": HOME_MODES })),
            ("copy", list(rule(words("A file of the home folder."), &[]), "Copied into the private home once.")),
            ("protect", names("Names that may not be written below any writable folder.")),
            ("unprotect", names("Built-in protected names that may be written all the same.")),
        ],
        &[],
    )
}

fn network() -> Value {
    let sets = HOST_SETS.iter().map(|set| format!("`@{set}`")).collect::<Vec<_>>().join(", ");
    let host = words(&format!("A host: `name`, `name:port`, `*.name`, an address or a network; or a set: {sets}."));
    let port = json!({ "type": "integer", "minimum": 1, "maximum": 65535 });
    let allow = rule(
        host.clone(),
        &[
            (
                "addresses",
                list(
                    words("An address or a network."),
                    "Private networks to which the names of this rule may resolve.",
                ),
            ),
            ("force", boolean("Take a pattern that covers hosts of anybody.")),
        ],
    );
    let request = table(
        "What requests to a host may be.",
        &[
            ("host", words("A host or a wildcard, without a port.")),
            ("methods", list(json!({ "type": "string", "pattern": "^[A-Z-]+$" }), "Methods; none: all.")),
            ("paths", list(json!({ "type": "string", "pattern": "^/[^?#]*$" }), "Patterns over paths; none: all.")),
        ],
        &["host"],
    );
    table(
        "Which hosts may be reached. An empty list of `allow` allows nothing.",
        &[
            ("allow", list(allow, "May be reached, on ports 443 and 80 unless a port is written.")),
            ("deny", list(rule(host, &[]), "May not be reached; beats every `allow`.")),
            (
                "allow_from_env",
                list(
                    rule(variable("A variable of the launcher."), &[]),
                    "Variables whose value is a URL: its host may be reached, or its port, where it is this machine.",
                ),
            ),
            (
                "ports",
                table(
                    "Ports that are carried through the wall.",
                    &[
                        ("publish", list(port.clone(), "Servers inside, reachable on the host's loopback.")),
                        ("host", list(port, "Servers on the host's loopback, reachable inside.")),
                    ],
                    &[],
                ),
            ),
            (
                "upstream",
                json!({
                    "description": "The proxy through which is dialled: `http://host:port`, or `environment`.",
                    "type": "string",
                    "pattern": "^(environment|http://[^@/]+:[0-9]+/?)$"
                }),
            ),
            ("rule", json!({ "description": "Rules over requests.", "type": "array", "items": request })),
        ],
        &[],
    )
}

fn credential() -> Value {
    let mut source = table(
        "Where the secret is taken from, outside.",
        &[
            ("env", variable("A variable of the launcher.")),
            ("file", words("A file, without wildcards.")),
            (
                "exec",
                json!({
                    "description": "A program and its arguments, without a shell.",
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1
                }),
            ),
            ("keyring", json!({ "description": "An entry of the keyring.", "type": "string", "minLength": 1 })),
        ],
        &[],
    );
    if let Some(source) = source.as_object_mut() {
        source.insert("minProperties".to_owned(), json!(1));
        source.insert("maxProperties".to_owned(), json!(1));
    }
    table(
        "One credential.",
        &[
            (
                "name",
                json!({
                    "description": "Its name, the only part that is logged.",
                    "type": "string",
                    "pattern": "^[A-Za-z0-9._-]{1,64}$"
                }),
            ),
            ("source", source),
            (
                "for",
                json!({
                    "description": "The hosts that get it, one by one.",
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1
                }),
            ),
            (
                "inject",
                table(
                    "Where it goes.",
                    &[
                        ("header", words("A header.")),
                        (
                            "format",
                            json!({
                                "description": "Its value, with `{}` for the secret.",
                                "type": "string",
                                "pattern": "\\{\\}"
                            }),
                        ),
                    ],
                    &["header"],
                ),
            ),
            ("phantom", table("What the program sees instead.", &[("env", variable("A variable."))], &[])),
        ],
        &["name", "source", "for", "inject"],
    )
}

fn env() -> Value {
    let names = |says: &str| {
        let name =
            json!({ "type": "string", "pattern": "^[^=\\s?\\[\\]{}]+$", "description": "A name; `*` is a wildcard." });
        list(rule(name, &[]), says)
    };
    let value = json!({
        "anyOf": [
            { "type": "string" },
            table("A value with its reason.", &[("value", words("The value.")), ("why", words("The reason."))], &["value"]),
        ]
    });
    table(
        "The environment of the command: the launcher's own, without what is withheld, with what is set.",
        &[
            ("pass", names("Passed although a rule withholds them.")),
            (
                "set",
                json!({
                    "description": "Variables with their values.",
                    "type": "object",
                    "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                    "additionalProperties": value
                }),
            ),
            ("deny", names("Withheld. Adds to the built-in list.")),
        ],
        &[],
    )
}

fn limits(says: &str) -> Value {
    let count = |says: &str| json!({ "description": says, "type": "integer", "minimum": 1 });
    let size = |says: &str| {
        json!({
            "description": says,
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *([KkMmGgTt]?[Ii]?[Bb]|[KkMmGgTt])?$" },
            ]
        })
    };
    let time = |says: &str| json!({ "description": says, "type": "string", "pattern": "^([0-9]+(ms|s|m|min|h|d))+$", "examples": ["90s", "1h30m"] });
    table(
        says,
        &[
            ("memory", size("Memory, such as `8G`.")),
            ("pids", count("Processes and threads.")),
            ("disk", size("What is written, such as `20G`.")),
            ("wall", time("Time until the run is ended.")),
            ("cpu", time("Time on processors.")),
            ("open_files", count("Open files of a process.")),
        ],
        &[],
    )
}

fn ceiling() -> Value {
    table(
        "The most that any source may allow. Only in /etc/ringfence/policy.toml and policy.d.",
        &[
            ("write", list(rule(words("A path or a pattern."), &[]), "Only these may be written.")),
            (
                "hosts",
                list(
                    rule(
                        words("A host."),
                        &[
                            ("addresses", list(words("An address or a network."), "Private networks.")),
                            ("force", boolean("Take a pattern that covers hosts of anybody.")),
                        ],
                    ),
                    "Only these may be reached.",
                ),
            ),
            ("home", json!({ "description": "The widest home that may be chosen.", "enum": HOME_MODES })),
            ("allow_weaker", boolean("Whether weaker walls and runs without proof may be chosen.")),
            ("ports", boolean("Whether ports may be carried through the wall.")),
            ("unix", boolean("Whether sockets of the host may be opened.")),
            ("limits", limits("Upper bounds; a run without the limit gets it.")),
        ],
        &[],
    )
}

/// A rule of a list: a text, or a table with it and its reason.
fn rule(text_schema: Value, extra: &[(&str, Value)]) -> Value {
    let mut keys = vec![("rule", text_schema.clone()), ("why", words("The reason, in a few words."))];
    keys.extend(extra.iter().cloned());
    json!({ "anyOf": [text_schema, table("A rule with its reason.", &keys, &["rule"])] })
}

fn list(items: Value, says: &str) -> Value {
    json!({ "description": says, "type": "array", "items": items })
}

fn words(says: &str) -> Value {
    json!({ "description": says, "type": "string" })
}

fn boolean(says: &str) -> Value {
    json!({ "description": says, "type": "boolean" })
}

fn variable(says: &str) -> Value {
    json!({ "description": says, "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
}

fn table(says: &str, keys: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut out = json!({
        "description": says,
        "type": "object",
        "additionalProperties": false,
        "properties": properties
    });
    if let (Some(out), false) = (out.as_object_mut(), required.is_empty()) {
        out.insert("required".to_owned(), json!(required));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::keys;

    fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_schema_knows_the_keys_that_the_parser_knows() {
        let schema = schema();
        let mut tables = 0;
        for (place, known) in keys() {
            let table = place.iter().fold(&schema, |at, step| {
                let next = if step.is_empty() { Some(&at["items"]) } else { at["properties"].get(step) };
                next.unwrap_or_else(|| panic!("no {step} on the way to {place:?}"))
            });
            let has = sorted(table["properties"].as_object().unwrap().keys().map(String::as_str));
            assert_eq!(has, sorted(known.iter().copied()), "{place:?}");
            tables += 1;
        }
        assert!(tables > 10, "{tables}");
    }
}
