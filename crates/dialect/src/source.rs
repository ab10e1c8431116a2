//! Text with places in it, and what is said about them. Rendering is the command line's; everything that it needs is
//! here: the text, its name, and byte ranges.

use crate::codes::Code;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that was parsed: a policy file, a preset, or a flag as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    name: String,
    text: String,
    /// Byte offsets at which lines start.
    lines: Vec<usize>,
}

impl SourceText {
    /// Takes a text under the name by which people know it: `ringfence.toml`, `preset rust`, `command line`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        Self { name: name.into(), text, lines }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }

    /// Line and column (in characters) of a byte offset, both from 1.
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let line = self.line(offset);
        let start = self.lines.iter().rev().find(|start| **start <= offset).copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or("");
        (line, u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// A line by its number, from 1, without its end; empty where there is none.
    pub fn row(&self, line: u32) -> &str {
        let index = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(start) = self.lines.get(index) else { return "" };
        let end = self.lines.get(index.saturating_add(1)).copied().unwrap_or(self.text.len());
        self.text.get(*start..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// The line of a byte offset.
    pub(crate) fn line_text(&self, offset: usize) -> &str {
        self.row(self.line(offset))
    }

    /// The text of a range; empty where the range is not one of whole characters.
    pub fn slice(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or("")
    }

    /// The nearest range of whole characters inside the text, so that a renderer never meets another.
    fn clamp(&self, span: Range<usize>) -> Range<usize> {
        let floor = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at = at.saturating_sub(1);
            }
            at
        };
        let start = floor(span.start);
        start..floor(span.end).max(start)
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is run.
    Error,
    /// It is said, and the run goes on.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A place and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The text.
    pub source: Arc<SourceText>,
    /// Bytes of it; whole characters inside the text.
    pub span: Range<usize>,
    /// A few words that stand behind the caret; may be empty.
    pub text: String,
}

impl Label {
    /// A label; a range that does not fit the text is moved into it.
    pub fn new(source: &Arc<SourceText>, span: Range<usize>, text: impl Into<String>) -> Self {
        Self { span: source.clamp(span), source: Arc::clone(source), text: text.into() }
    }

    /// Line of its first byte, from 1.
    pub fn line(&self) -> u32 {
        self.source.line(self.span.start)
    }
}

/// One problem of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a phrase.
    pub message: String,
    /// Where; the first is the place itself, others explain it.
    pub labels: Vec<Label>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), labels: Vec::new(), hint: None }
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, label: Label) -> Self {
        self.labels.push(label);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Where it is explained.
    pub fn doc(&self) -> String {
        self.code.doc()
    }

    /// The order in which problems of one text are told: from its beginning to its end.
    pub(crate) fn sort(problems: &mut [Self]) {
        problems.sort_by_key(|p| (p.labels.first().map_or(0, |label| label.span.start), p.code));
    }
}

/// One line: `error[RF0103]: unknown key ... (ringfence.toml:7:1)`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        if let Some(label) = self.labels.first() {
            let (line, column) = label.source.position(label.span.start);
            write!(f, " ({}:{line}:{column})", label.source.name())?;
        }
        Ok(())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (line, column) = self.source.position(self.span.start);
        let (end_line, end_column) = self.source.position(self.span.end);
        let mut out = serializer.serialize_struct("Label", 8)?;
        out.serialize_field("source", self.source.name())?;
        out.serialize_field("line", &line)?;
        out.serialize_field("column", &column)?;
        out.serialize_field("end_line", &end_line)?;
        out.serialize_field("end_column", &end_column)?;
        out.serialize_field("start", &self.span.start)?;
        out.serialize_field("end", &self.span.end)?;
        out.serialize_field("text", &self.text)?;
        out.end()
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Diagnostic", 6)?;
        out.serialize_field("code", self.code.as_text())?;
        out.serialize_field("severity", &self.severity)?;
        out.serialize_field("message", &self.message)?;
        out.serialize_field("labels", &self.labels)?;
        out.serialize_field("hint", &self.hint)?;
        out.serialize_field("doc", &self.doc())?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = SourceText::new("f", "ab\nçd\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (1, 3), "the line break belongs to its line");
        assert_eq!(source.position(3), (2, 1));
        assert_eq!(source.position(5), (2, 2), "a character of two bytes is one column");
        assert_eq!(source.position(7), (3, 1));
        assert_eq!(source.position(99), (3, 1), "behind the end is the end");
        assert_eq!(SourceText::new("f", "").position(0), (1, 1));
        assert_eq!((source.row(1), source.row(2), source.row(3), source.row(4)), ("ab", "çd", "", ""));
        assert_eq!(SourceText::new("f", "a\r\nb").row(1), "a");
    }

    #[test]
    fn a_label_never_cuts_a_character_or_leaves_the_text() {
        let source = Arc::new(SourceText::new("f", "aç"));
        assert_eq!(Label::new(&source, 2..99, "").span, 1..3);
        #[allow(clippy::reversed_empty_ranges, reason = "the case under test")]
        let reversed = Label::new(&source, 3..1, "");
        assert_eq!(reversed.span, 3..3);
    }
}
