//! sys
pub mod files;
pub mod host;
