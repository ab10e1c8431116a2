//! The meaning of single values, wherever they are written: a file, a preset or a flag. Each function takes the text
//! and gives the value, or a [`Fault`] to which the caller adds the place.

pub(crate) mod env;
pub(crate) mod host;
pub(crate) mod path;
pub(crate) mod scalar;

use crate::codes::Code;
use crate::source::{Diagnostic, Label};

/// What is wrong with a value, without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// Stands behind the caret.
    pub(crate) label: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), label: String::new(), hint: None }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(self, mut label: Label) -> Diagnostic {
        label.text = self.label;
        let diagnostic = Diagnostic::error(self.code, self.message).at(label);
        match self.hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }
    }
}

/// Text from a policy as it is shown in a message: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            let escaped: Box<dyn Iterator<Item = char>> =
                if c.is_control() { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) };
            escaped
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}
