//! Lists of flows by their number of packets. The longest flow is found in constant time (McKenney 1990,
//! buffer stealing).
//!
//! ```text
//!   heads   [least][least + 1] ... [longest] ...     one list for each length
//!              |        |              |
//!             f7       f2             f5 -> f1       doubly linked; who came to a length last stands first
//!             f7       f2             f5 -> f1       doubly linked; the flow that came last is first
//!
//! A packet changes a flow's length by one, so a flow only moves to a neighbouring list. When the list of the
//! longest flows becomes empty, the flow that left it is the longest. It is one packet shorter.
//!
//! The longest flow is needed when the limit on all flows together is exceeded. Then at least one of the
//! `flows` flows has more than `limit / flows` packets. Shorter flows can't be the longest and are in no
//! list. So a short queue costs one comparison per packet.

use alloc::vec::Vec;

/// Marks the end of a list.
const END: u32 = u32::MAX;

/// A flow's neighbours in the list of its length.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    next: u32,
    previous: u32,
}

/// The lists.
#[derive(Debug)]
pub(crate) struct ByLength {
    /// The first flow of each length, starting with `least`.
    heads: Vec<u32>,
    /// The neighbours of each flow. They are valid only for flows of at least `least` packets. They are
    /// stored apart from the flows, because the flows' cache lines are hot.
    neighbours: Vec<Neighbours>,
    /// Flows shorter than this are in no list. It is at least 1.
    least: u32,
    /// The length of the longest flow, or 0 if all flows are shorter than `least`.
    longest: u32,
}

impl ByLength {
    /// Returns lists for `flows` flows of up to `most_packets` packets each. The longest flow can be found
    /// whenever there are more than `limit` packets in all.
    pub(crate) fn new(flows: u32, most_packets: u32, limit: u32) -> ByLength {
        let least = limit / flows + 1;
        ByLength {
            heads: vec![END; (most_packets + 1).saturating_sub(least) as usize],
            neighbours: vec![
                Neighbours {
                    next: END,
                    previous: END
                };
                flows as usize
            ],
            least,
            longest: 0,
        }
    }

    /// The shortest length at which a flow is in a list.
    #[inline]
    pub(crate) fn least(&self) -> u32 {
        self.least
    }

    /// Reports that flow `index` has one packet more, and now `length` packets.
    #[inline]
    pub(crate) fn grew(&mut self, index: u32, length: u32) {
        if length >= self.least {
            self.move_up(index, length);
        }
    }

    /// Reports that flow `index` has one packet less, and now `length` packets.
    #[inline]
    pub(crate) fn shrank(&mut self, index: u32, length: u32) {
        if length + 1 >= self.least {
            self.move_down(index, length);
        }
    }

    /// Returns the longest flow and its length. Of equal flows it returns the one that reached this length
    /// last. Returns `None` if all flows are so short that the limit is not exceeded.
    #[inline]
    pub(crate) fn longest(&mut self) -> Option<(u32, u32)> {
        (self.longest > 0).then(|| (*self.head(self.longest), self.longest))
    }

    /// Removes all flows. Their stored neighbours are no longer valid.
    pub(crate) fn clear(&mut self) {
        self.heads.fill(END);
        self.longest = 0;
    }

    #[cold]
    #[inline(never)]
    fn move_up(&mut self, index: u32, length: u32) {
        if length > self.least {
            self.unlink(index, length - 1);
        }
        self.link(index, length);
        self.longest = self.longest.max(length);
    }

    #[cold]
    #[inline(never)]
    fn move_down(&mut self, index: u32, length: u32) {
        self.unlink(index, length + 1);
        let is_listed = length >= self.least;
        if is_listed {
            self.link(index, length);
        }
        if self.longest == length + 1 && *self.head(length + 1) == END {
            self.longest = if is_listed { length } else { 0 };
        }
    }

    #[inline]
    fn head(&mut self, length: u32) -> &mut u32 {
        &mut self.heads[(length - self.least) as usize]
    }

    #[inline]
    fn link(&mut self, index: u32, length: u32) {
        let next = core::mem::replace(self.head(length), index);
        self.neighbours[index as usize] = Neighbours { next, previous: END };
        if next != END {
            self.neighbours[next as usize].previous = index;
        }
    }

    #[inline]
    fn unlink(&mut self, index: u32, length: u32) {
        let Neighbours { next, previous } = self.neighbours[index as usize];
        if previous == END {
            *self.head(length) = next;
        } else {
            self.neighbours[previous as usize].next = next;
        }
        if next != END {
            self.neighbours[next as usize].previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the result with a search of all flows. Ties are decided by the time of the last change.
        #[test]
        fn the_longest_is_found_whenever_the_limit_is_exceeded(
            limit in 0u32..60,
            operations in prop::collection::vec((0u8..3, 0u32..6), 0..300),
        ) {
            let mut lists = ByLength::new(6, 300, limit);
            let mut model = [(0u32, 0usize); 6];
            for (step, (grow, index)) in operations.into_iter().enumerate() {
                let (length, changed) = &mut model[index as usize];
                if grow > 0 {
                    *length += 1;
                    lists.grew(index, *length);
                } else if *length > 0 {
                    *length -= 1;
                    lists.shrank(index, *length);
                } else {
                    continue;
                }
                *changed = step;
                let expected = (0..6u32)
                    .max_by_key(|&index| model[index as usize])
                    .map(|index| (index, model[index as usize].0))
                    .filter(|&(_, length)| length > limit / 6);
                prop_assert_eq!(lists.longest(), expected);
                let packets: u32 = model.iter().map(|(length, _)| length).sum();
                prop_assert!(packets <= limit || lists.longest().is_some());
            }
        }
    }
}
