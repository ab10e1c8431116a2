//! What was refused in a run, each distinct refusal once, with its count.

use ringfence_policy::event::{Door, EventKind};
use ringfence_policy::{Event, EventSink};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};

/// More distinct refusals than anybody reads; a program that scans must not fill our memory.
const MOST: usize = 200;

/// One distinct refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// What was tried: `connect`, `resolve`, `publish`.
    pub action: &'static str,
    /// On what.
    pub target: String,
    /// Stable reason code.
    pub code: String,
    /// Why, as a phrase.
    pub reason: String,
    /// The flag that would allow it.
    pub remedy: Option<String>,
    /// How often.
    pub count: u64,
}

/// Collects refusals. Cloning shares the collection.
#[derive(Debug, Clone, Default)]
pub struct Denials {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    distinct: Vec<Denial>,
    /// Refusals beyond [`MOST`] distinct ones.
    more: u64,
}

impl Denials {
    /// The distinct refusals so far, in the order in which they first happened.
    pub fn distinct(&self) -> Vec<Denial> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).distinct.clone()
    }

    /// How many refusals are not in [`Denials::distinct`] because there were too many.
    pub fn more(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).more
    }
}

impl EventSink for Denials {
    fn record(&self, event: &Event) {
        let EventKind::Denied { door, destination, code, reason, remedy, .. } = &event.kind else { return };
        let action = action(*door);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |d: &&mut Denial| d.action == action && d.target == *destination && d.code == *code;
        if let Some(denial) = seen.distinct.iter_mut().find(same) {
            denial.count += 1;
        } else if seen.distinct.len() < MOST {
            seen.distinct.push(Denial {
                action,
                target: destination.clone(),
                code: code.clone(),
                reason: reason.clone(),
                remedy: remedy.clone(),
                count: 1,
            });
        } else {
            seen.more += 1;
        }
    }
}

/// What a program does at a door.
pub fn action(door: Door) -> &'static str {
    match door {
        Door::Transparent | Door::Connect | Door::Http | Door::Socks5 | Door::HostPort => "connect",
        Door::Dns => "resolve",
        Door::Publish => "publish",
    }
}

/// Hands each event to several takers.
pub(crate) struct Fanout {
    sinks: Vec<Arc<dyn EventSink>>,
    /// Destinations of our own attempts, each of which is one refusal that nobody inside brought about.
    own: Mutex<Vec<String>>,
}

impl Fanout {
    /// To these, in order; without the traces of our own attempts.
    pub(crate) fn new(sinks: Vec<Arc<dyn EventSink>>, own: Vec<String>) -> Self {
        Self { sinks, own: Mutex::new(own) }
    }

    fn is_own(&self, event: &Event) -> bool {
        let EventKind::Denied { destination, .. } = &event.kind else { return false };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match own.iter().position(|trace| trace == destination) {
            Some(at) => {
                own.swap_remove(at);
                true
            }
            None => false,
        }
    }
}

impl EventSink for Fanout {
    fn record(&self, event: &Event) {
        if !self.is_own(event) {
            self.sinks.iter().for_each(|sink| sink.record(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(destination: &str, door: Door) -> Event {
        Event::now(EventKind::Denied {
            door,
            destination: destination.to_owned(),
            code: "no_rule".to_owned(),
            reason: "no rule allows it".to_owned(),
            rule: None,
            remedy: Some(format!("--allow-host {destination}")),
        })
    }

    #[test]
    fn the_same_refusal_is_counted_and_not_repeated() {
        let denials = Denials::default();
        for _ in 0..3 {
            denials.record(&denied("a.test:443", Door::Connect));
        }
        denials.record(&denied("a.test:443", Door::Transparent));
        denials.record(&denied("a.test", Door::Dns));
        let seen: Vec<_> = denials.distinct().into_iter().map(|d| (d.action, d.target, d.count)).collect();
        assert_eq!(seen, [("connect", "a.test:443".to_owned(), 4), ("resolve", "a.test".to_owned(), 1)]);
    }

    #[test]
    fn a_scan_does_not_fill_memory() {
        let denials = Denials::default();
        for port in 0..1000 {
            denials.record(&denied(&format!("10.0.0.1:{port}"), Door::Transparent));
        }
        assert_eq!(denials.distinct().len(), MOST);
        assert_eq!(denials.more(), 800);
    }

    #[test]
    fn the_trace_of_the_proof_is_no_refusal_but_only_once() {
        let denials = Denials::default();
        let fanout = Fanout::new(vec![Arc::new(denials.clone())], vec!["198.19.255.254:80".to_owned()]);
        for _ in 0..3 {
            fanout.record(&denied("198.19.255.254:80", Door::Transparent));
        }
        assert_eq!(denials.distinct()[0].count, 2);
    }
}
