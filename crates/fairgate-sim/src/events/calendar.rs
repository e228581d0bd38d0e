//! The events of the near future: a calendar queue (Brown 1988) whose days are slots of a ring. To insert an
//! event, and to take the next one, costs the same however many wait.
//!
//! ```text
//!   slots   [ . | a b | . | c | . | . | d | ... ]     by time: a slot is 2^shift ns long
//!   bits      0    1    0   1   0   0   1              which slots have events
//! ```
//!
//! The events of a slot are a sorted list. The calendar refuses an event that is further away than its slots
//! reach, or that would come behind many others in its slot. The caller keeps those elsewhere, and takes what
//! is first of both. So no event is ever moved from one to the other.
//!
//! The width of a slot follows the mean time between events, so that most slots have one event or none. Wider
//! slots make lists, narrower ones reach less far.

use super::{NOTHING, TIME_SHIFT};

/// The number of slots.
const SLOTS: usize = 2048;

/// How many events of a slot are passed to find the place of a new one. Bursts have thousands at one time.
const MOST_STEPS: u32 = 8;

/// The end of a list.
const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    entry: u128,
    next: u32,
}

/// A queue of events as they are packed, below [`NOTHING`].
#[derive(Debug)]
pub(super) struct Calendar {
    /// The least entry.
    least: u128,
    /// The base-2 logarithm of the width of a slot, ns.
    shift: u32,
    /// The first node that is not in use.
    free: u32,
    nodes: Vec<Node>,
    /// A bit for each slot that has events.
    occupied: [u64; SLOTS / 64],
    /// The first node of each slot.
    heads: Box<[u32; SLOTS]>,
}

impl Calendar {
    /// Creates an empty calendar. Its slots have a width of a microsecond until [`adapt`](Calendar::adapt).
    pub(super) fn new() -> Calendar {
        Calendar {
            least: NOTHING,
            shift: 10,
            free: END,
            nodes: Vec::new(),
            occupied: [0; SLOTS / 64],
            heads: Box::new([END; SLOTS]),
        }
    }

    /// Inserts an entry whose time is `now`, ns, or later. Returns false if it is refused.
    #[inline]
    pub(super) fn insert(&mut self, entry: u128, now: u64) -> bool {
        let slot = time_of(entry) >> self.shift;
        // All entries are at `now` or later, so that two slots with entries are never the same place.
        if slot - (now >> self.shift) >= SLOTS as u64 {
            return false;
        }
        let slot = slot as usize % SLOTS;
        let first = self.heads[slot];
        let Some(head) = self.nodes.get(first as usize) else {
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.heads[slot] = self.node(entry, END);
            self.least = self.least.min(entry);
            return true;
        };
        if entry < head.entry {
            self.heads[slot] = self.node(entry, first);
            self.least = self.least.min(entry);
            return true;
        }
        self.insert_behind(first, entry)
    }

    /// Inserts an entry into the list behind this node, which comes before it.
    #[inline(never)]
    fn insert_behind(&mut self, mut before: u32, entry: u128) -> bool {
        for _ in 0..MOST_STEPS {
            let next = self.nodes[before as usize].next;
            if self
                .nodes
                .get(next as usize)
                .is_none_or(|next| entry < next.entry)
            {
                self.nodes[before as usize].next = self.node(entry, next);
                return true;
            }
            before = next;
        }
        false
    }

    /// Returns a node that is not in use, with these contents.
    #[inline(always)]
    fn node(&mut self, entry: u128, next: u32) -> u32 {
        let index = self.free;
        match self.nodes.get_mut(index as usize) {
            Some(node) => {
                self.free = node.next;
                *node = Node { entry, next };
                index
            }
            None => self.new_node(entry, next),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_node(&mut self, entry: u128, next: u32) -> u32 {
        self.nodes.push(Node { entry, next });
        self.nodes.len() as u32 - 1
    }

    /// Returns the least entry, or [`NOTHING`].
    #[inline]
    pub(super) fn least(&self) -> u128 {
        self.least
    }

    /// Removes the least entry. There must be one.
    #[inline]
    pub(super) fn take(&mut self) {
        let slot = (time_of(self.least) >> self.shift) as usize % SLOTS;
        let first = self.heads[slot];
        let node = &mut self.nodes[first as usize];
        let next = node.next;
        node.next = self.free;
        self.free = first;
        self.heads[slot] = next;
        self.least = match self.nodes.get(next as usize) {
            Some(next) => next.entry,
            None => {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
                self.least_from(slot)
            }
        };
    }

    /// Returns the first entry of the first slot with entries, from `slot` on and around the ring.
    #[inline(always)]
    fn least_from(&self, slot: usize) -> u128 {
        let word = slot / 64;
        let ahead = self.occupied[word] >> (slot % 64) << (slot % 64);
        if ahead != 0 {
            return self.first_of(word, ahead);
        }
        self.least_behind(word)
    }

    #[inline(never)]
    fn least_behind(&self, word: usize) -> u128 {
        // The last one is that of the slot again, with what is before the slot.
        let words = (1..=self.occupied.len()).map(|step| (word + step) % self.occupied.len());
        let found = words
            .map(|word| (word, self.occupied[word]))
            .find(|(_, bits)| *bits != 0);
        found.map_or(NOTHING, |(word, bits)| self.first_of(word, bits))
    }

    #[inline(always)]
    fn first_of(&self, word: usize, bits: u64) -> u128 {
        let head = self.heads[(word * 64 + bits.trailing_zeros() as usize) % SLOTS];
        self.nodes[head as usize].entry
    }

    /// Makes slots half as wide as the mean time between events, `gap` ns, within a factor of two or so.
    /// Gives what is refused then to `refused`.
    pub(super) fn adapt(&mut self, gap: u64, now: u64, refused: impl FnMut(u128)) {
        let shift = (gap / 2).max(1).ilog2();
        if shift.abs_diff(self.shift) > 1 {
            self.set_shift(shift, now, refused);
        }
    }

    #[cold]
    fn set_shift(&mut self, shift: u32, now: u64, mut refused: impl FnMut(u128)) {
        let mut entries = Vec::new();
        while self.least != NOTHING {
            entries.push(self.least);
            self.take();
        }
        self.shift = shift;
        // The latest first, so that each is the head of its slot.
        for entry in entries.into_iter().rev() {
            if !self.insert(entry, now) {
                refused(entry);
            }
        }
    }
}

/// Returns the time of an entry, ns.
#[inline(always)]
fn time_of(entry: u128) -> u64 {
    (entry >> TIME_SHIFT) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn entry(time: u64, ticket: u32) -> u128 {
        u128::from(time) << TIME_SHIFT | u128::from(ticket)
    }

    proptest! {
        /// Compares with a sorted set, over several turns of the ring and with slots of any width.
        #[test]
        fn the_least_entry_comes_first(
            steps in prop::collection::vec((0u32..24, 0usize..3, prop::option::of(0u64..1 << 20)), 1..400),
        ) {
            let mut calendar = Calendar::new();
            let mut model = BTreeSet::new();
            let mut now = 0;
            for (ticket, (bits, removals, gap)) in (0..).zip(steps) {
                let new = entry(now + ((u64::from(ticket) * 0x9e37_79b9) & ((1 << bits) - 1)), ticket);
                if calendar.insert(new, now) {
                    model.insert(new);
                }
                if let Some(gap) = gap.filter(|gap| gap % 8 == 0) {
                    calendar.adapt(gap, now, |entry| assert!(model.remove(&entry)));
                }
                for _ in 0..removals {
                    prop_assert_eq!(calendar.least(), model.first().copied().unwrap_or(NOTHING));
                    if let Some(first) = model.pop_first() {
                        now = time_of(first);
                        calendar.take();
                    }
                }
            }
            while let Some(first) = model.pop_first() {
                prop_assert_eq!(calendar.least(), first);
                calendar.take();
            }
            prop_assert_eq!(calendar.least(), NOTHING);
        }
    }

    #[test]
    fn it_refuses_what_is_far_away_and_what_makes_a_slot_long() {
        let mut calendar = Calendar::new();
        let reach = (SLOTS as u64) << 10;
        assert!(calendar.insert(entry(reach - 1, 0), 0));
        assert!(!calendar.insert(entry(reach, 1), 0));
        assert!(calendar.insert(entry(reach, 1), 1 << 10));
        let same: Vec<bool> = (0..20)
            .map(|ticket| calendar.insert(entry(5000, ticket), 1 << 10))
            .collect();
        assert_eq!(
            same.iter().filter(|is_taken| **is_taken).count(),
            1 + MOST_STEPS as usize
        );
    }
}
