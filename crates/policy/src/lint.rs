//! Judgements on a finished policy: what is allowed but dangerous.
