//! Policy files, with the places of what they say.
//!
//! ```text
//! native::parse(text, name, &context) -> Result<Parsed, Vec<Diagnostic>>      a policy file
//! command_line::parse(&flags, &context) -> Result<Parsed, Vec<Diagnostic>>    the flags of a run
//! presets::load(&wanted, &context) -> Result<Loaded, Vec<Diagnostic>>         what is built in
//! ```
//!
//! A source becomes a [`ringfence_policy::Fragment`], whose every rule carries its file and line, or a list of all its
//! problems at once, each with a code, the bytes it is about, and what to do. Nothing is half-read: a source with one
//! error gives no rule.
//!
//! This crate never reads a file, prints, or decides what is allowed.

pub mod codes;
pub mod command_line;
mod context;
pub mod native;
pub mod presets;
#[cfg(feature = "schema")]
pub mod schema;
pub mod source;
mod suggest;
mod value;

pub use context::{HOST_SETS, ParseContext, Parsed, SetAnswer, Trust};
pub use native::fuzz_native;
pub use source::{Diagnostic, Label, Severity, SourceText};
