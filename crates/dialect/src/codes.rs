//! Every diagnostic has a code that is never used twice. This is the one table: `ringfence explain RF0103` prints an
//! entry, `docs/diagnostics.md` is made from it, and the parser names its entries as constants.
//!
//! | range | what |
//! |---|---|
//! | `RF00xx` | the command line, the place, the files that are read |
//! | `RF01xx` | what a policy says |
//! | `RF02xx` | what this host cannot do |
//! | `RF03xx` | what a policy says that does not take effect, or is weaker than it looks |

mod table;

pub use table::*;

use serde::Serialize;
use std::fmt;

/// A code such as `RF0103`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Code(&'static str);

impl Code {
    /// `RF0103`.
    pub const fn as_text(self) -> &'static str {
        self.0
    }

    /// Where the manual explains it.
    pub fn doc(self) -> String {
        format!("docs/diagnostics.md#{}", self.0.to_ascii_lowercase())
    }

    /// Its entry of the table.
    pub fn entry(self) -> Option<&'static CodeEntry> {
        find(self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What a code means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeEntry {
    /// The code.
    pub code: Code,
    /// Its name, as a phrase.
    pub title: &'static str,
    /// Why it exists and what to do, as sentences.
    pub explanation: &'static str,
    /// What brings it about.
    pub example: Example,
}

/// What brings a code about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Example {
    /// A policy file of the user.
    Policy(&'static str),
    /// A command.
    Command(&'static str),
    /// A state of the host, described.
    Host(&'static str),
}

impl Example {
    /// The text, and the language of it for a Markdown fence.
    pub fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Policy(text) => (text, "toml"),
            Self::Command(text) => (text, "sh"),
            Self::Host(text) => (text, "text"),
        }
    }
}

/// The entry of a code, however it is written: `RF0103`, `rf0103`, `0103`, `103`.
pub fn find(code: &str) -> Option<&'static CodeEntry> {
    let code = code.trim();
    let digits = code.strip_prefix("RF").or_else(|| code.strip_prefix("rf")).unwrap_or(code);
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let wanted = format!("RF{digits:0>4}");
    CODES.iter().find(|entry| entry.code.0 == wanted)
}

/// `docs/diagnostics.md`.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Diagnostics\n\n\
         Generated from the table of codes (`crates/dialect/src/codes/table.rs`) by `cargo xtask generate`.\n\
         `ringfence explain RF0103` prints the same. An error stops the run before anything was started (exit status 125);\n\
         a warning is said once, and the run goes on.\n\n\
         | code | |\n|---|---|\n",
    );
    for entry in CODES {
        out.push_str(&format!("| [{0}](#{1}) | {2} |\n", entry.code, entry.code.0.to_ascii_lowercase(), entry.title));
    }
    for entry in CODES {
        let (text, language) = entry.example.text();
        let explanation = entry.explanation.trim();
        out.push_str(&format!(
            "\n## {}\n\n**{}.** {explanation}\n\n```{language}\n{}\n```\n",
            entry.code,
            entry.title,
            text.trim_end()
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_well_formed_sorted_and_unique() {
        for pair in CODES.windows(2) {
            assert!(pair[0].code < pair[1].code, "{} before {}", pair[0].code, pair[1].code);
        }
        for entry in CODES {
            let digits = entry.code.0.strip_prefix("RF").unwrap();
            assert!(digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()), "{}", entry.code);
            assert!(!entry.title.is_empty() && !entry.title.ends_with('.'), "{}", entry.code);
            assert!(entry.explanation.trim().ends_with('.'), "{}: sentences", entry.code);
            assert!(!entry.explanation.contains('!'), "{}", entry.code);
            assert!(!entry.example.text().0.trim().is_empty(), "{}", entry.code);
        }
    }

    #[test]
    fn a_code_is_found_however_it_is_written() {
        for written in ["RF0103", "rf0103", "0103", "103", " RF0103 "] {
            assert_eq!(find(written).unwrap().code, UNKNOWN_KEY, "{written}");
        }
        for no_code in ["", "RF", "RF9999", "run", "00103", "RF01é"] {
            assert_eq!(find(no_code), None, "{no_code}");
        }
    }

    #[test]
    fn findings_of_a_merge_have_their_entries_under_the_same_names() {
        for (code, title) in ringfence_policy::lint::CODES {
            assert_eq!(find(code).map(|entry| entry.title), Some(*title), "{code}");
        }
        let findings = CODES.iter().filter(|entry| entry.code.0.starts_with("RF03")).count();
        assert_eq!(findings, ringfence_policy::lint::CODES.len());
    }

    #[test]
    fn the_manual_has_every_code() {
        let manual = markdown();
        for entry in CODES {
            assert!(manual.contains(&format!("\n## {}\n", entry.code)));
        }
    }
}
