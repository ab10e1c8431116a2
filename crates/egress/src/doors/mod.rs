//! The doors: each makes a canonical destination of what its clients send, and asks the one decision.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod ports;
pub(crate) mod socks;
pub(crate) mod transparent;
