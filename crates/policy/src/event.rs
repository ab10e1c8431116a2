//! What happened: the audit model. One event is one JSON line, written by one `write(2)`.

use crate::host_rule::Destination;
use crate::origin::Origin;
use crate::time::rfc3339;
use serde::Serialize;
use std::time::SystemTime;

/// The version of the line format; raised when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// Takes events. Implementations must not block for long and must never print to standard output.
pub trait EventSink: Send + Sync {
    /// Records one event.
    fn record(&self, event: &Event);
}

/// One event with its time. As JSON: `v`, `time` (RFC 3339, UTC, milliseconds), `event`, and the fields of its kind, flat.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub time: SystemTime,
    /// What.
    pub kind: EventKind,
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            v: u32,
            time: String,
            #[serde(flatten)]
            kind: &'a EventKind,
        }
        Line { v: SCHEMA_VERSION, time: rfc3339(self.time), kind: &self.kind }.serialize(serializer)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_rule::Protocol;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn one_flat_line_with_version_and_time() {
        let destination = Destination::parse_authority("API.good.test.:443", None, Protocol::Tcp).unwrap();
        let kind = EventKind::Allowed {
            door: Door::Transparent,
            destination,
            rule: Origin::flag("--allow-host"),
            method: None,
            path: None,
            address: Some("1.1.1.1".to_owned()),
        };
        let event = Event { time: UNIX_EPOCH + Duration::from_millis(1), kind };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["v"], 1);
        assert_eq!(json["time"], "1970-01-01T00:00:00.001Z");
        assert_eq!(json["event"], "allowed");
        assert_eq!(json["door"], "transparent");
        assert_eq!(json["destination"], "api.good.test:443");
        assert!(json.get("method").is_none());
    }

    #[test]
    fn a_line_stays_a_line() {
        let kind = EventKind::Denied {
            door: Door::Connect,
            destination: "a\n{\"event\":\"allowed\"}\r\u{1b}[2J".to_owned(),
            code: "bad_host".to_owned(),
            reason: String::new(),
            rule: None,
            remedy: None,
        };
        let line = serde_json::to_string(&Event::now(kind)).unwrap();
        assert!(!line.chars().any(char::is_control), "{line}");
    }
}
