//! Flows in a ring of 64 slots of time: the earliest in constant time.
//!
//! ```text
//!   number of a slot:   ... 130   131   132   133 ...      time divided by the length of a slot
//!   place in the ring:        2     3     4     5          number modulo 64
//!   heads                     .     -    f2     -          a list for each, who came last stands first
//!   full                      1     0     1     0          one bit for each
//!   first                    f7                            the list of the first full slot
//! ```
//!
//! All that are in must lie within 64 slots. The number of the first full slot is the caller's, and turns the ring: one
//! rotation of the word and one instruction find the next. The lists are threaded through the flows by the caller, so that
//! the line of no other flow is touched.
//!
//! The first slot's list is kept apart from those of the others. So the flow that is next can be read without waiting for the
//! place to be known that the flow before it is put into; in one array a processor would have to take the two for the same.

/// Follows the last of a list.
pub(crate) const END: u32 = u32::MAX;

/// Slots of a ring.
pub(crate) const SLOTS: u32 = 64;

/// The ring.
#[derive(Debug)]
pub(crate) struct Slots {
    full: u64,
    /// The list of the first full slot; `END` where all are empty.
    first: u32,
    /// The lists of those behind it; `END` where a slot is empty.
    heads: [u32; SLOTS as usize],
}

impl Slots {
    /// An empty ring.
    pub(crate) const fn new() -> Slots {
        Slots {
            full: 0,
            first: END,
            heads: [END; SLOTS as usize],
        }
    }

    /// The first entry of the first full slot.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Puts `entry` into the empty ring, into slot `number`, which is the first full one from now on.
    #[inline]
    pub(crate) fn open(&mut self, number: u64, entry: u32) {
        debug_assert!(self.is_empty());
        self.full = 1 << place(number);
        self.first = entry;
    }

    /// The same before slot `base`, which was the first full one.
    pub(crate) fn open_before(&mut self, base: u64, number: u64, entry: u32) {
        debug_assert!(self.is_full(base) && !self.is_full(number));
        self.heads[place(base)] = self.first;
        self.full |= 1 << place(number);
        self.first = entry;
    }

    /// Puts `entry` first into the first full slot; returns what follows it there.
    #[inline]
    pub(crate) fn push_first(&mut self, entry: u32) -> u32 {
        debug_assert!(!self.is_empty());
        core::mem::replace(&mut self.first, entry)
    }

    /// Puts `entry` first into slot `number`, behind the first full one; returns what follows it there.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, entry: u32) -> u32 {
        let place = place(number);
        let follows = core::mem::replace(&mut self.heads[place], entry);
        self.full |= 1 << place;
        follows
    }

    /// Takes the first entry of the first full slot out, which `follows` follows. If that is `END`,
    /// [`close_first`](Slots::close_first) has to follow too.
    #[inline]
    pub(crate) fn pop_first(&mut self, follows: u32) {
        self.first = follows;
    }

    /// The first full slot, `base`, has run empty. Returns how many slots after it the next full one comes; 64 if all are
    /// empty.
    #[inline]
    pub(crate) fn close_first(&mut self, base: u64) -> u32 {
        debug_assert!(self.is_full(base) && self.first == END);
        self.full &= !(1 << place(base));
        let ahead = self.first_after(base);
        if ahead < SLOTS {
            let place = place(base.wrapping_add(ahead.into()));
            self.first = core::mem::replace(&mut self.heads[place], END);
        }
        ahead
    }

    /// The first entry of slot `number`, which isn't empty, `base` being the first full one.
    #[cfg(test)]
    pub(crate) fn head(&self, base: u64, number: u64) -> u32 {
        if number == base {
            self.first
        } else {
            self.heads[place(number)]
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
        *self = Slots::new();
    }
}

#[inline]
fn place(number: u64) -> usize {
    (number % u64::from(SLOTS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Against stacks in a sorted map. The first full slot is where the caller says: it moves on when it runs empty,
        /// and back when an entry comes before it.
        #[test]
        fn the_earliest_comes_first_and_of_a_slot_the_last_in(
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
                if let (Some((&first, stack)), Some(&last)) = (model.iter().next(), model.keys().next_back()) {
                    prop_assert_eq!(slots.first(), *stack.last().unwrap());
                    prop_assert_eq!(slots.first_after(first), 0);
                    prop_assert_eq!(u64::from(slots.last_after(first)), last - first);
                }
            }
        }
    }
}
