//! What happened: the audit model. One event is one JSON line, written by one `write(2)`.

use crate::host_rule::Destination;
use crate::origin::Origin;
use serde::Serialize;
use std::time::SystemTime;

/// The version of the line format; raised when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// Takes events. Implementations must not block for long and must never print to standard output.
pub trait EventSink: Send + Sync {
    /// Records one event.
    fn record(&self, event: &Event);
}

/// One event with its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// When.
    pub time: SystemTime,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// An event that happens now.
    pub fn now(kind: EventKind) -> Self {
        Self { time: SystemTime::now(), kind }
    }
}

/// Through which door a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// A connection that knew of no proxy.
    Transparent,
    /// A CONNECT request.
    Connect,
    /// A plain HTTP request in absolute form.
    Http,
    /// SOCKS5.
    Socks5,
    /// A DNS query.
    Dns,
    /// A port of the host opened into the sandbox.
    HostPort,
    /// A port of the sandbox opened on the host.
    Publish,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began.
    Started {
        /// The program's name; its arguments may hold secrets and are not logged.
        program: String,
        /// The workspace.
        workspace: String,
        /// The presets in force.
        presets: Vec<String>,
        /// Layer and status of each wall.
        status: Vec<(String, String)>,
    },
    /// The walls were proved.
    Proved {
        /// How many rows of the table were tried.
        rows: usize,
        /// Microseconds that it took.
        micros: u64,
    },
    /// A destination was allowed.
    Allowed {
        /// Which door.
        door: Door,
        /// Whom.
        #[serde(serialize_with = "as_text")]
        destination: Destination,
        /// Origin of the rule.
        rule: Origin,
        /// HTTP method, for plain requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<String>,
        /// Path without its query, for plain requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The address that was dialled.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
    },
    /// A destination was refused.
    Denied {
        /// Which door.
        door: Door,
        /// Whom, canonical where it could be read, else an escaped rendering.
        destination: String,
        /// Stable reason code.
        code: String,
        /// Why, as a phrase.
        reason: String,
        /// Origin of the rule, where a rule decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<Origin>,
        /// The flag that would allow it.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// An allowed connection ended.
    Closed {
        /// Which door.
        door: Door,
        /// Whom.
        #[serde(serialize_with = "as_text")]
        destination: Destination,
        /// Bytes from the sandbox.
        sent: u64,
        /// Bytes to the sandbox.
        received: u64,
        /// Milliseconds that it lived.
        millis: u64,
        /// What went wrong, if anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The run ended.
    Exited {
        /// The status that the launcher returns.
        status: i32,
        /// The signal that ended the command, if one did.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// Milliseconds that it lived.
        millis: u64,
    },
}

fn as_text<S: serde::Serializer>(d: &Destination, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(d)
}
