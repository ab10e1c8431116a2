//! The components of a path pattern, as a machine that reads one name after another.

use crate::name_glob::NameGlob;

/// One component of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// `**`: any number of names, none included.
    AnyDepth,
    /// Anything else: one name.
    Name(NameGlob),
}

/// The components, in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Parts(Vec<Part>);

/// Positions in a pattern that the names so far may have led to, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u64);

/// Patterns have at most this many components, so that a state fits into 64 bits.
const MAX_PARTS: usize = 60;

impl Parts {
    /// Puts components together. Two `**` in a row mean the same as one.
    pub(crate) fn new(mut parts: Vec<Part>) -> Result<Self, &'static str> {
        parts.dedup_by(|later, first| *later == Part::AnyDepth && *first == Part::AnyDepth);
        if parts.len() > MAX_PARTS { Err("it has more than 60 components") } else { Ok(Self(parts)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first component that stands for one name.
    pub(crate) fn first_name(&self) -> Option<&NameGlob> {
        self.0.iter().find_map(|part| match part {
            Part::Name(glob) => Some(glob),
            Part::AnyDepth => None,
        })
    }

    /// Before the first name.
    pub(crate) fn start(&self) -> State {
        self.closure(1)
    }

    /// After one more name.
    pub(crate) fn step(&self, now: State, name: &[u8]) -> State {
        let mut next = 0;
        for (i, part) in self.0.iter().enumerate() {
            if now.0 & (1 << i) != 0 {
                match part {
                    Part::AnyDepth => next |= 1 << i,
                    Part::Name(glob) if glob.matches(name) => next |= 1 << (i + 1),
                    Part::Name(_) => {}
                }
            }
        }
        self.closure(next)
    }

    /// Whether the names so far are matched.
    pub(crate) fn accepts(&self, now: State) -> bool {
        now.0 & (1 << self.0.len()) != 0
    }

    /// Whether more names may lead to a match.
    pub(crate) fn can_go_on(&self, now: State) -> bool {
        now.0 & ((1 << self.0.len()) - 1) != 0
    }

    /// Adds the positions behind each `**`, which may match no name at all.
    fn closure(&self, mut states: u64) -> State {
        for (i, part) in self.0.iter().enumerate() {
            if states & (1 << i) != 0 && *part == Part::AnyDepth {
                states |= 1 << (i + 1);
            }
        }
        State(states)
    }
}
