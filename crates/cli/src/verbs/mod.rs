//! One file per verb.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod home;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod options;
pub(crate) mod preset;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod trust;
pub(crate) mod why;
