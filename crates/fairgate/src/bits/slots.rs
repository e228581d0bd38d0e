//! Flows in a ring of 64 slots of time: the earliest in constant time.
//!
//! ```text
//!   number of a slot:   ... 130   131   132   133 ...      time divided by the length of a slot
//!   place in the ring:        2     3     4     5          number modulo 64
//!   heads                    f7     -    f2     -          a list for each, who came last stands first
//!   full                      1     0     1     0          one bit for each
//! ```
//!
//! All that are in must lie within 64 slots. The base from which slots are searched is the caller's, and turns the ring:
//! one rotation of the word and one instruction find the first full slot. The lists are threaded through the flows
//! by the caller, so that the line of no other flow is touched.

/// Follows the last of a list.
pub(crate) const END: u32 = u32::MAX;

/// Slots of a ring.
pub(crate) const SLOTS: u32 = 64;

/// The ring.
#[derive(Debug)]
pub(crate) struct Slots {
    full: u64,
    /// `END` where a slot is empty.
    heads: [u32; SLOTS as usize],
}

impl Slots {
    /// An empty ring.
    pub(crate) const fn new() -> Slots {
        Slots {
            full: 0,
            heads: [END; SLOTS as usize],
        }
    }

    /// Puts `entry` first into slot `number`; returns what follows it there.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, entry: u32) -> u32 {
        let place = place(number);
        let follows = std::mem::replace(&mut self.heads[place], entry);
        self.full |= 1 << place;
        follows
    }

    /// The first entry of slot `number`, which isn't empty.
    #[inline]
    pub(crate) fn head(&self, number: u64) -> u32 {
        debug_assert!(self.is_full(number), "slot {number} is empty");
        self.heads[place(number)]
    }

    /// Takes the first entry of slot `number` out, which `follows` follows.
    #[inline]
    pub(crate) fn pop(&mut self, number: u64, follows: u32) {
        let place = place(number);
        self.heads[place] = follows;
        // Mostly others are left. A branch, so that the word doesn't wait for whoever was first.
        if follows == END {
            self.full &= !(1 << place);
        }
    }

    /// Whether there is anything in slot `number`.
    #[inline]
    pub(crate) fn is_full(&self, number: u64) -> bool {
        self.full >> place(number) & 1 != 0
    }

    /// Whether there is nothing in any slot.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.full == 0
    }

    /// How many slots after slot `base` the first full one comes; 64 if all are empty.
    #[inline]
    pub(crate) fn first_after(&self, base: u64) -> u32 {
        self.full.rotate_right(place(base) as u32).trailing_zeros()
    }

    /// How many slots after slot `base` the last full one comes. Not all may be empty.
    #[inline]
    pub(crate) fn last_after(&self, base: u64) -> u32 {
        63 - self.full.rotate_right(place(base) as u32).leading_zeros()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.full = 0;
        self.heads.fill(END);
    }
}

#[inline]
fn place(number: u64) -> usize {
    (number % u64::from(SLOTS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against stacks in a sorted map, the base moving on with the first full slot.
        #[test]
        fn the_earliest_comes_first_and_of_a_slot_the_last_in(
            origin in prop_oneof![Just(0u64), Just(u64::MAX / 3), any::<u32>().prop_map(u64::from)],
            operations in prop::collection::vec((prop::bool::weighted(0.6), 0u64..64), 1..300),
        ) {
            let mut slots = Slots::new();
            let mut next = vec![END; operations.len()];
            let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            let mut base = origin;
            for (entry, (push, ahead)) in operations.into_iter().enumerate() {
                if push {
                    next[entry] = slots.push(base + ahead, entry as u32);
                    model.entry(base + ahead).or_default().push(entry as u32);
                } else if let Some((&number, stack)) = model.iter_mut().next() {
                    let expected = stack.pop().unwrap();
                    prop_assert_eq!(slots.head(number), expected);
                    slots.pop(number, next[expected as usize]);
                    model.retain(|_, stack| !stack.is_empty());
                }
                prop_assert_eq!(slots.is_empty(), model.is_empty());
                if let (Some(first), Some(last)) = (model.keys().next(), model.keys().next_back()) {
                    prop_assert_eq!(u64::from(slots.first_after(base)), first - base);
                    prop_assert_eq!(u64::from(slots.last_after(base)), last - base);
                    base = *first;
                } else {
                    prop_assert_eq!(slots.first_after(base), 64);
                }
            }
        }
    }
}
