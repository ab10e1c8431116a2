//! Addresses that stand for names.
//!
//! A program that asks for a name gets an address of ours, whatever the name is: nothing is asked of a real resolver
//! before a connection was allowed, so a name cannot carry data out, and a refused name is refused in a way that the
//! program prints, instead of "could not resolve host". A connection to such an address is a connection to the name.

use ringfence_policy::HostName;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// How many names have an address at one time.
pub(crate) const NAMES_MAX: usize = 65_536;
/// An address keeps its meaning at least so long after it was last used.
const KEEP: Duration = Duration::from_secs(600);
/// New names: so many at once, then so many a second. With these numbers no more than [`NAMES_MAX`] names can be new
/// within [`KEEP`] (4,096 + 100 x 600 = 64,096), so there is always an address that may be given a new meaning.
const NEW_BURST: u32 = 4_096;
const NEW_PER_SECOND: u32 = 100;
/// The first addresses of a pool stay unused: they look like a network's own address.
const FIRST: u32 = 256;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    burst: f64,
    per_second: f64,
    last: Instant,
}

impl Bucket {
    pub(crate) fn new(burst: u32, per_second: f64, now: Instant) -> Self {
        Self { tokens: f64::from(burst), burst: f64::from(burst), per_second, last: now }
    }

    /// Takes one token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = now;
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

/// Two ranges of addresses, one for each family, numbered alike.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    /// First address of the IPv4 range, of which 65,792 are used.
    pub v4: Ipv4Addr,
    /// First address of the IPv6 range, a /96.
    pub v6: Ipv6Addr,
    /// How many IPv4 addresses belong to the range.
    pub v4_size: u32,
}

impl Default for Pool {
    /// 198.18.0.0/15, which is never routed (RFC 2544), and a unique local /96 (RFC 4193).
    fn default() -> Self {
        Self {
            v4: Ipv4Addr::new(198, 18, 0, 0),
            v6: Ipv6Addr::new(0xfd00, 0x65, 0xfa4e, 0, 0, 0, 0, 0),
            v4_size: 1 << 17,
        }
    }
}

impl Pool {
    fn addresses(&self, slot: u32) -> Addresses {
        let v4 = Ipv4Addr::from(u32::from(self.v4).wrapping_add(FIRST + slot));
        let v6 = Ipv6Addr::from(u128::from(self.v6).wrapping_add(u128::from(FIRST + slot)));
        Addresses { v4, v6 }
    }

    /// The number of an address in the pool; `Err`: in the range, but never given out; `None`: not in the range.
    fn slot(&self, address: IpAddr) -> Option<Result<u32, ()>> {
        let offset = match address {
            IpAddr::V4(v4) => u32::from(v4).checked_sub(u32::from(self.v4)).filter(|o| *o < self.v4_size)?,
            IpAddr::V6(v6) => u32::try_from(u128::from(v6).checked_sub(u128::from(self.v6))?).ok()?,
        };
        Some(offset.checked_sub(FIRST).ok_or(()))
    }
}

/// The two addresses of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// For this name.
    Name(HostName),
    /// It belongs to the pool, but for no name.
    Nothing,
    /// It is an address like any other.
    Itself,
}

/// Too many new names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many new names in a short time")]
pub(crate) struct TooManyNames;

#[derive(Debug)]
struct Slot {
    name: HostName,
    used: Instant,
}

/// Names and their addresses.
#[derive(Debug)]
pub(crate) struct Names {
    pool: Pool,
    by_name: HashMap<HostName, u32>,
    slots: Vec<Slot>,
    /// Numbers in the order in which they may be given a new meaning, roughly the oldest first.
    order: VecDeque<u32>,
    fresh: Bucket,
    max: usize,
}

impl Names {
    pub(crate) fn new(pool: Pool, now: Instant) -> Self {
        let fresh = Bucket::new(NEW_BURST, f64::from(NEW_PER_SECOND), now);
        Self { pool, by_name: HashMap::new(), slots: Vec::new(), order: VecDeque::new(), fresh, max: NAMES_MAX }
    }

    /// The addresses that stand for a name: always the same ones while the name is in use.
    ///
    /// # Errors
    /// Too many names are new.
    pub(crate) fn addresses(&mut self, name: &HostName, now: Instant) -> Result<Addresses, TooManyNames> {
        if let Some(number) = self.by_name.get(name).copied() {
            if let Some(slot) = usize::try_from(number).ok().and_then(|at| self.slots.get_mut(at)) {
                slot.used = now;
            }
            return Ok(self.pool.addresses(number));
        }
        if !self.fresh.take(now) {
            return Err(TooManyNames);
        }
        let number = self.free(name, now).ok_or(TooManyNames)?;
        self.by_name.insert(name.clone(), number);
        self.order.push_back(number);
        Ok(self.pool.addresses(number))
    }

    /// What an address stands for.
    pub(crate) fn meaning(&mut self, address: IpAddr, now: Instant) -> Meaning {
        match self.pool.slot(address) {
            None => Meaning::Itself,
            Some(Err(())) => Meaning::Nothing,
            Some(Ok(number)) => match usize::try_from(number).ok().and_then(|at| self.slots.get_mut(at)) {
                Some(slot) => {
                    slot.used = now;
                    Meaning::Name(slot.name.clone())
                }
                None => Meaning::Nothing,
            },
        }
    }

    /// A number for a new name: a new one, or one whose name was not used for [`KEEP`].
    fn free(&mut self, name: &HostName, now: Instant) -> Option<u32> {
        if self.slots.len() < self.max {
            let number = u32::try_from(self.slots.len()).ok()?;
            self.slots.push(Slot { name: name.clone(), used: now });
            return Some(number);
        }
        for _ in 0..self.order.len() {
            let number = self.order.pop_front()?;
            let slot = usize::try_from(number).ok().and_then(|at| self.slots.get_mut(at))?;
            if now.saturating_duration_since(slot.used) < KEEP {
                self.order.push_back(number);
                continue;
            }
            self.by_name.remove(&slot.name);
            *slot = Slot { name: name.clone(), used: now };
            return Some(number);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn stable_and_both_ways() {
        let now = Instant::now();
        let mut names = Names::new(Pool::default(), now);
        let a = names.addresses(&name("a.test"), now).unwrap();
        let b = names.addresses(&name("b.test"), now).unwrap();
        assert_ne!(a, b);
        assert_eq!(names.addresses(&name("A.TEST."), now).unwrap(), a);
        assert_eq!(a.v4, Ipv4Addr::new(198, 18, 1, 0));
        assert_eq!(a.v6, "fd00:65:fa4e::100".parse::<Ipv6Addr>().unwrap());
        assert_eq!(names.meaning(a.v4.into(), now), Meaning::Name(name("a.test")));
        assert_eq!(names.meaning(b.v6.into(), now), Meaning::Name(name("b.test")));
        for unmapped in
            ["198.18.0.0", "198.18.0.255", "198.18.9.9", "198.19.255.255", "fd00:65:fa4e::1", "fd00:65:fa4e::ffff:ffff"]
        {
            assert_eq!(names.meaning(unmapped.parse().unwrap(), now), Meaning::Nothing, "{unmapped}");
        }
        for other in ["198.17.255.255", "198.20.0.0", "10.0.0.1", "fd00:65:fa4e::1:0:0", "fd00:65:fa4d::100", "::"] {
            assert_eq!(names.meaning(other.parse().unwrap(), now), Meaning::Itself, "{other}");
        }
    }

    #[test]
    fn an_address_keeps_its_meaning_for_ten_minutes() {
        let start = Instant::now();
        let mut names = Names::new(Pool::default(), start);
        names.max = 2;
        let a = names.addresses(&name("a.test"), start).unwrap();
        names.addresses(&name("b.test"), start).unwrap();
        assert_eq!(names.addresses(&name("c.test"), start + KEEP / 2), Err(TooManyNames));
        // Using an address renews it.
        names.meaning(a.v4.into(), start + KEEP / 2);
        let c = names.addresses(&name("c.test"), start + KEEP).unwrap();
        assert_ne!(c, a);
        assert_eq!(names.meaning(c.v4.into(), start + KEEP), Meaning::Name(name("c.test")));
        assert_eq!(names.meaning(a.v4.into(), start + KEEP), Meaning::Name(name("a.test")));
        assert_eq!(names.by_name.len(), 2);
    }

    #[test]
    fn new_names_are_limited() {
        let start = Instant::now();
        let mut names = Names::new(Pool::default(), start);
        let mut taken = 0;
        for i in 0..6000 {
            if names.addresses(&name(&format!("n{i}.test")), start).is_ok() {
                taken += 1;
            }
        }
        assert_eq!(taken, NEW_BURST);
        assert!(names.addresses(&name("n0.test"), start).is_ok(), "a known name is not new");
        assert!(names.addresses(&name("later.test"), start + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn a_full_pool_has_always_room_after_ten_minutes() {
        let worst = u64::from(NEW_BURST) + u64::from(NEW_PER_SECOND) * KEEP.as_secs();
        assert!(worst < u64::try_from(NAMES_MAX).unwrap());
    }
}
