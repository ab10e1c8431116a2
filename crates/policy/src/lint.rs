//! Judgements on a finished policy: what is allowed but dangerous.

/// Every code of a [`Finding`](crate::Finding), and what it means.
pub const CODES: &[(&str, &str)] = &[];
