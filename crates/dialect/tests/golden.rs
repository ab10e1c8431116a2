//! What is said, word by word, and where the caret stands. `BLESS=1 cargo test` writes the answers anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::path::Path;
use support::{parse, render};

#[test]
fn what_is_said() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases = 0;
    for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|ext| ext != "toml") {
            continue;
        }
        let said = match parse(&std::fs::read_to_string(&file).unwrap()) {
            Ok(parsed) => format!("accepted\n{}", render(&parsed.warnings)),
            Err(problems) => render(&problems),
        };
        let answer = file.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&answer, &said).unwrap();
        }
        let wanted = std::fs::read_to_string(&answer).unwrap_or_default();
        assert_eq!(said, wanted, "{}", file.display());
        cases += 1;
    }
    assert!(cases > 10, "{cases}");
}
