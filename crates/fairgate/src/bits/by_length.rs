//! Flows in lists by their number of packets: the longest flow in constant time (McKenney 1990, buffer stealing).
//!
//! ```text
//!   heads   [0][1][2][3] ... [longest] ...     one list for each length
//!               |     |          |
//!              f7    f2         f5 -> f1       doubly linked; who came to a length last stands first
//! ```
//!
//! A packet changes a flow's length by one, so a flow only ever moves to a neighbouring list, and when the list of the
//! longest runs empty the flow that left it is the longest, one shorter. Flows without packets are in no list.

/// Marks the end of a list.
const END: u32 = u32::MAX;

/// A flow's place in the list of its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    next: u32,
    previous: u32,
}

impl Neighbours {
    /// Of a flow without packets.
    pub(crate) const NONE: Neighbours = Neighbours {
        next: END,
        previous: END,
    };
}

/// An array element with [`Neighbours`].
pub(crate) trait Measured {
    /// The neighbours.
    fn neighbours(&mut self) -> &mut Neighbours;
}

/// The lists. The same array must be passed to every call.
#[derive(Debug)]
pub(crate) struct ByLength {
    heads: Vec<u32>,
    longest: u32,
}

impl ByLength {
    /// Lists for flows of up to `most_packets` packets.
    pub(crate) fn new(most_packets: u32) -> ByLength {
        ByLength {
            heads: vec![END; most_packets as usize + 1],
            longest: 0,
        }
    }

    /// Flow `index` has one packet more: now `length`.
    #[inline]
    pub(crate) fn grew<T: Measured>(&mut self, index: u32, length: u32, flows: &mut [T]) {
        if length > 1 {
            self.unlink(index, length - 1, flows);
        }
        self.link(index, length, flows);
        self.longest = self.longest.max(length);
    }

    /// Flow `index` has one packet less: now `length`.
    #[inline]
    pub(crate) fn shrank<T: Measured>(&mut self, index: u32, length: u32, flows: &mut [T]) {
        self.unlink(index, length + 1, flows);
        if length > 0 {
            self.link(index, length, flows);
        }
        if self.longest == length + 1 && self.heads[length as usize + 1] == END {
            self.longest = length;
        }
    }

    /// The longest flow and its length; among equals the one that came to this length last.
    #[inline]
    pub(crate) fn longest(&self) -> Option<(u32, u32)> {
        (self.longest > 0).then(|| (self.heads[self.longest as usize], self.longest))
    }

    /// Forgets all flows. Their neighbours are leftovers from then on.
    pub(crate) fn clear(&mut self) {
        self.heads.fill(END);
        self.longest = 0;
    }

    #[inline]
    fn link<T: Measured>(&mut self, index: u32, length: u32, flows: &mut [T]) {
        let head = &mut self.heads[length as usize];
        let next = *head;
        *head = index;
        *flows[index as usize].neighbours() = Neighbours { next, previous: END };
        if next != END {
            flows[next as usize].neighbours().previous = index;
        }
    }

    #[inline]
    fn unlink<T: Measured>(&mut self, index: u32, length: u32, flows: &mut [T]) {
        let Neighbours { next, previous } = *flows[index as usize].neighbours();
        if previous == END {
            self.heads[length as usize] = next;
        } else {
            flows[previous as usize].neighbours().next = next;
        }
        if next != END {
            flows[next as usize].neighbours().previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Measured for Neighbours {
        fn neighbours(&mut self) -> &mut Neighbours {
            self
        }
    }

    proptest! {
        /// Against a search of all flows, with the time of their last change to settle ties.
        #[test]
        fn the_longest_is_found(operations in prop::collection::vec((any::<bool>(), 0u32..6), 0..300)) {
            let mut flows = [Neighbours::NONE; 6];
            let mut lists = ByLength::new(300);
            let mut model = [(0u32, 0usize); 6];
            for (step, (grow, index)) in operations.into_iter().enumerate() {
                let (length, changed) = &mut model[index as usize];
                if grow {
                    *length += 1;
                    lists.grew(index, *length, &mut flows);
                } else if *length > 0 {
                    *length -= 1;
                    lists.shrank(index, *length, &mut flows);
                } else {
                    continue;
                }
                *changed = step;
                let expected = (0..6u32)
                    .max_by_key(|&index| model[index as usize])
                    .map(|index| (index, model[index as usize].0))
                    .filter(|&(_, length)| length > 0);
                prop_assert_eq!(lists.longest(), expected);
            }
        }
    }
}
