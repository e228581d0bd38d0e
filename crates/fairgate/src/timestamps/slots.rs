//! Flows in a ring of 64 time slots. The earliest flow is found in constant time.
//!
//! ```text
//!   number of a slot:   ... 130   131   132   133 ...      time divided by the length of a slot
//!   position in the ring:     2     3     4     5          number modulo 64
//!   heads                     .     -    f2     -          a list for each slot, the newest entry first
//!   full                      1     0     1     0          a bit for each slot
//!   first                    f7                            the list of the first full slot
//! ```
//!
//! All entries must be within 64 slots. The caller knows the number of the first full slot, by which the ring
//! is rotated: one rotation of the word and one instruction find the next slot. The caller stores the links
//! of the lists in the flows, so the cache line of no other flow is read.
//!
//! The list of the first slot is stored apart from the others. So the next flow can be read before the
//! position is known where the previous flow is inserted. In one array a processor would have to assume that
//! both are the same.

/// Follows the last entry of a list.
pub(crate) const END: u32 = u32::MAX;

/// The number of slots of a ring.
pub(crate) const SLOTS: u32 = 64;

/// A ring of slots.
#[derive(Debug)]
pub(crate) struct Slots {
    full: u64,
    /// The list of the first full slot, or `END` if all slots are empty.
    first: u32,
    /// The lists of the slots after it, or `END` for an empty slot.
    heads: [u32; SLOTS as usize],
}

impl Slots {
    /// Returns an empty ring.
    pub(crate) const fn new() -> Slots {
        Slots {
            full: 0,
            first: END,
            heads: [END; SLOTS as usize],
        }
    }

    /// Returns the first entry of the first full slot.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Puts `entry` into slot `number` of the empty ring. This slot is now the first full one.
    #[inline]
    pub(crate) fn open(&mut self, number: u64, entry: u32) {
        debug_assert!(self.is_empty());
        self.full = 1 << position(number);
        self.first = entry;
    }

    /// Puts `entry` into slot `number` before slot `base`, which was the first full one.
    pub(crate) fn open_before(&mut self, base: u64, number: u64, entry: u32) {
        debug_assert!(self.is_full(base) && !self.is_full(number));
        self.heads[position(base)] = self.first;
        self.full |= 1 << position(number);
        self.first = entry;
    }

    /// Puts `entry` at the head of the first full slot. Returns the entry that follows it.
    #[inline]
    pub(crate) fn push_first(&mut self, entry: u32) -> u32 {
        debug_assert!(!self.is_empty());
        core::mem::replace(&mut self.first, entry)
    }

    /// Puts `entry` at the head of slot `number`, which is after the first full one. Returns the entry that
    /// follows it.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, entry: u32) -> u32 {
        let position = position(number);
        let follows = core::mem::replace(&mut self.heads[position], entry);
        self.full |= 1 << position;
        follows
    }

    /// Removes the first entry of the first full slot. `follows` follows it. If `follows` is `END`,
    /// [`close_first`](Slots::close_first) must be called next.
    #[inline]
    pub(crate) fn pop_first(&mut self, follows: u32) {
        self.first = follows;
    }

    /// Closes the first full slot, `base`, which has become empty. Returns how many slots after it the next
    /// full one is, or 64 if all are empty.
    #[inline]
    pub(crate) fn close_first(&mut self, base: u64) -> u32 {
        debug_assert!(self.is_full(base) && self.first == END);
        self.full &= !(1 << position(base));
        let ahead = self.first_after(base);
        if ahead < SLOTS {
            let position = position(base.wrapping_add(ahead.into()));
            self.first = core::mem::replace(&mut self.heads[position], END);
        }
        ahead
    }

    /// Returns the first entry of slot `number`, which must not be empty. `base` is the first full slot.
    #[cfg(test)]
    pub(crate) fn head(&self, base: u64, number: u64) -> u32 {
        if number == base {
            self.first
        } else {
            self.heads[position(number)]
        }
    }

    /// Whether slot `number` has entries.
    #[inline]
    pub(crate) fn is_full(&self, number: u64) -> bool {
        self.full >> position(number) & 1 != 0
    }

    /// Whether all slots are empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.full == 0
    }

    /// Returns how many slots after slot `base` the first full one is, or 64 if all are empty.
    #[inline]
    pub(crate) fn first_after(&self, base: u64) -> u32 {
        self.full.rotate_right(position(base) as u32).trailing_zeros()
    }

    /// Returns how many slots after slot `base` the last full one is. At least one slot must be full.
    #[inline]
    pub(crate) fn last_after(&self, base: u64) -> u32 {
        63 - self.full.rotate_right(position(base) as u32).leading_zeros()
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        *self = Slots::new();
    }
}

#[inline]
fn position(number: u64) -> usize {
    (number % u64::from(SLOTS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Compares with stacks in a sorted map. The caller knows the first full slot. It advances when the
        /// slot becomes empty, and moves back when an entry comes before it.
        #[test]
        fn the_earliest_slot_is_first_and_in_a_slot_the_last_entry(
            origin in prop_oneof![Just(1u64 << 40), Just(u64::MAX / 3), (100u32..).prop_map(u64::from)],
            operations in prop::collection::vec((0u8..10, 0u64..40), 1..300),
        ) {
            let mut slots = Slots::new();
            let mut next = vec![END; operations.len()];
            let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (entry, (operation, distance)) in operations.into_iter().enumerate() {
                let first = model.keys().next().copied();
                let last = model.keys().next_back().copied();
                match (operation, first, last) {
                    (0..6, None, _) => {
                        slots.open(origin, entry as u32);
                        model.insert(origin, vec![entry as u32]);
                    }
                    (0, Some(first), Some(last)) if distance > 0 && last - (first - distance) < 64 => {
                        slots.open_before(first, first - distance, entry as u32);
                        model.insert(first - distance, vec![entry as u32]);
                    }
                    (1..6, Some(first), _) => {
                        next[entry] = match distance {
                            0 => slots.push_first(entry as u32),
                            _ => slots.push(first + distance, entry as u32),
                        };
                        model.entry(first + distance).or_default().push(entry as u32);
                    }
                    (6.., Some(first), _) => {
                        let stack = model.get_mut(&first).unwrap();
                        let expected = stack.pop().unwrap();
                        prop_assert_eq!(slots.first(), expected);
                        let follows = next[expected as usize];
                        slots.pop_first(follows);
                        prop_assert_eq!(follows == END, stack.is_empty());
                        if follows == END {
                            model.remove(&first);
                            let ahead = slots.close_first(first);
                            let after = model.keys().next().map_or(64, |&number| number - first);
                            prop_assert_eq!(u64::from(ahead), after);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(slots.is_empty(), model.is_empty());
                let ends = (model.iter().next(), model.keys().next_back());
                if let (Some((&first, stack)), Some(&last)) = ends {
                    prop_assert_eq!(slots.first(), *stack.last().unwrap());
                    prop_assert_eq!(slots.first_after(first), 0);
                    prop_assert_eq!(u64::from(slots.last_after(first)), last - first);
                }
            }
        }
    }
}
