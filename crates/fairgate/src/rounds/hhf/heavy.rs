//! The table of heavy flows: a hash with chains over entries that are allocated at the start.
//!
//! An entry whose flow has been silent for long is expired. It is removed when its chain is searched, except
//! that the last entry of a chain stays, to be used again. This is as in Linux's sch_hhf.c, where the chains
//! are allocated one by one.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::filter::COUNTERS;
use crate::time::Time;

/// No entry.
const NONE: u16 = u16::MAX;

/// The most entries.
pub(super) const MOST: u32 = 2048;

/// A heavy flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    next: u16,
    seen: Time,
    /// The number of its last packet among those of the heavy flows.
    last: u64,
    /// The packets of light flows before which none of its packets may leave.
    after: u64,
}

/// The time and what has left, by which entries are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    /// How long a flow may be silent, ns.
    pub(super) timeout: u64,
    /// How many packets of heavy flows have left.
    pub(super) left: u64,
}

impl Moment {
    /// Whether the flow has been silent for longer than the timeout, and has no packets.
    fn is_past(&self, entry: &Entry) -> bool {
        self.now.nanos_since(entry.seen) > self.timeout && entry.last <= self.left
    }
}

/// A heavy flow that was found or added.
pub(super) struct EntryNumber(u16);

/// The table.
#[derive(Debug)]
pub(super) struct Heavy {
    chains: Box<[u16]>,
    entries: Box<[Entry]>,
    /// The first entry that is in no chain.
    free: u16,
    /// Entries in chains.
    pub(super) current: u32,
}

impl Heavy {
    pub(super) fn new() -> Heavy {
        let entry = |index: u32| Entry {
            hash: 0,
            next: if index + 1 < MOST { index as u16 + 1 } else { NONE },
            seen: Time::ZERO,
            last: 0,
            after: 0,
        };
        Heavy {
            chains: vec![NONE; COUNTERS].into(),
            entries: (0..MOST).map(entry).collect::<Vec<_>>().into(),
            free: 0,
            current: 0,
        }
    }

    fn chain(hash: u32) -> usize {
        hash as usize % COUNTERS
    }

    /// Finds a flow. Removes expired entries on the way.
    pub(super) fn find(&mut self, hash: u32, moment: &Moment) -> Option<EntryNumber> {
        let chain = Heavy::chain(hash);
        let (mut before, mut index) = (NONE, self.chains[chain]);
        while index != NONE {
            let entry = &self.entries[usize::from(index)];
            let next = entry.next;
            if moment.is_past(entry) {
                if next == NONE {
                    return None;
                }
                match before {
                    NONE => self.chains[chain] = next,
                    _ => self.entries[usize::from(before)].next = next,
                }
                self.entries[usize::from(index)].next = self.free;
                self.free = index;
                self.current -= 1;
            } else if entry.hash == hash {
                return Some(EntryNumber(index));
            } else {
                before = index;
            }
            index = next;
        }
        None
    }

    /// Adds a flow that is not in the table. `None` if there are `most` entries.
    pub(super) fn add(&mut self, hash: u32, after: u64, most: u32, moment: &Moment) -> Option<EntryNumber> {
        let chain = Heavy::chain(hash);
        let (mut last, mut index) = (NONE, self.chains[chain]);
        while index != NONE && !moment.is_past(&self.entries[usize::from(index)]) {
            last = index;
            index = self.entries[usize::from(index)].next;
        }
        if index == NONE {
            if self.current >= most || self.free == NONE {
                return None;
            }
            index = self.free;
            self.free = self.entries[usize::from(index)].next;
            self.entries[usize::from(index)].next = NONE;
            self.current += 1;
            match last {
                NONE => self.chains[chain] = index,
                _ => self.entries[usize::from(last)].next = index,
            }
        }
        let entry = &mut self.entries[usize::from(index)];
        (entry.hash, entry.after) = (hash, after);
        Some(EntryNumber(index))
    }

    /// Notes packet `number` of a flow. Returns the packets of light flows after which it may leave.
    pub(super) fn sent(&mut self, place: EntryNumber, number: u64, now: Time) -> u64 {
        let entry = &mut self.entries[usize::from(place.0)];
        (entry.seen, entry.last) = (now, number);
        entry.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a map from hashes to the time of the last packet.
        #[test]
        fn the_table_finds_flows_until_they_expire(
            operations in prop::collection::vec((0u32..6, 0u32..3, 0u64..60), 0..300),
            most in 1u32..12,
        ) {
            let mut heavy = Heavy::new();
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now = 0;
            for (chain, flow, pause) in operations {
                now += pause;
                let hash = chain | flow << 20;
                let moment = Moment { now: Time::from_nanos(now), timeout: 100, left: u64::MAX };
                let is_known = model.get(&hash).is_some_and(|seen| now - seen <= 100);
                let found = heavy.find(hash, &moment);
                prop_assert_eq!(found.is_some(), is_known);
                let live = model.values().filter(|seen| now - **seen <= 100).count() as u32;
                let place = match found {
                    Some(place) => Some(place),
                    None => heavy.add(hash, 0, most, &moment),
                };
                // Expired entries may take room, but live ones never exceed it.
                prop_assert!(place.is_some() || live >= most || heavy.current >= most);
                prop_assert!(is_known || place.is_none() || live < most);
                if let Some(place) = place {
                    heavy.sent(place, 0, moment.now);
                    model.insert(hash, now);
                }
                prop_assert!(heavy.current <= most.max(live + 1));
            }
        }
    }

    #[test]
    fn a_flow_with_packets_does_not_expire() {
        let mut heavy = Heavy::new();
        let at = |now: u64, left: u64| Moment {
            now: Time::from_nanos(now),
            timeout: 10,
            left,
        };
        let place = heavy.add(7, 0, 5, &at(0, 0)).unwrap();
        heavy.sent(place, 3, Time::ZERO);
        assert!(heavy.find(7, &at(1000, 2)).is_some());
        assert!(heavy.find(7, &at(1000, 3)).is_none());
    }
}
