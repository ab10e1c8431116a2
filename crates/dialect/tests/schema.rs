//! The schema and the parser agree, and the committed copy is the schema.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use ringfence_dialect::codes::{self, CODES, Code, Example};
use ringfence_dialect::{presets, schema};
use ringfence_policy::Layer;
use serde_json::Value;
use std::path::Path;
use support::{parse_as, render};

/// What a schema can see: keys and types, and the spelling of simple values.
const SEEN: &[Code] = &[
    codes::VERSION_MISSING,
    codes::VERSION,
    codes::UNKNOWN_KEY,
    codes::WRONG_TYPE,
    codes::VALUE,
    codes::KEY_MISSING,
    codes::PORT,
    codes::SIZE,
    codes::DURATION,
    codes::RANGE,
    codes::ENV_NAME,
    codes::PRESET_UNKNOWN,
    codes::UPSTREAM,
    codes::REQUEST,
    codes::CREDENTIAL,
];

fn as_json(text: &str) -> Option<Value> {
    serde_json::to_value(toml::from_str::<toml::Table>(text).ok()?).ok()
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&schema::schema()).expect("a schema")
}

#[test]
fn the_schema_is_a_schema_and_its_copy_is_not_stale() {
    jsonschema::meta::validate(&schema::schema()).unwrap();
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.schema.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&copy, schema::text_of_schema()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(copy).unwrap(), schema::text_of_schema(), "cargo xtask generate");
}

#[test]
fn what_the_parser_takes_the_schema_takes() {
    let validator = validator();
    let mut texts: Vec<(&str, &str)> = presets::ALL.iter().map(|preset| (preset.name, preset.text)).collect();
    texts.push(("full", include_str!("samples/full.toml")));
    texts.push(("managed", include_str!("samples/managed.toml")));
    texts.push(("rule twice", "version = 1\n[network]\nallow = [\"a.example.com\", \"a.example.com\"]\n"));
    for (name, text) in texts {
        if let Err(problems) = parse_as(Layer::Managed, text) {
            panic!("{name}:\n{}", render(&problems));
        }
        let json = as_json(text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn what_a_schema_can_see_it_refuses() {
    let validator = validator();
    let mut refused = 0;
    for entry in CODES {
        let Example::Policy(text) = entry.example else { continue };
        let Some(json) = as_json(text) else { continue };
        let valid = validator.is_valid(&json);
        if SEEN.contains(&entry.code) {
            assert!(!valid, "{}: the schema takes\n{text}", entry.code);
            refused += 1;
        }
        // Not only the parser's errors: what the schema refuses, the parser refuses.
        if !valid {
            assert!(parse_as(Layer::User, text).is_err(), "{}: the parser takes\n{text}", entry.code);
        }
    }
    assert_eq!(refused, SEEN.len());
}
