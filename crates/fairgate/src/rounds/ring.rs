//! The round of active flows as a ring of flow numbers.
//!
//! Next to [`Round`](super::Round), the list threaded through the flows: a turn reads and writes places that lie side by side, not
//! the lines of two flows, and a flow's state need not hold a link. It costs four bytes for each flow there is. Whether a
//! flow is in the ring is for the owner to know.

use alloc::vec::Vec;

/// The ring. Room for all flows is made at construction.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// As many as a power of two.
    places: Vec<u32>,
    /// Where the first flow is; counts on and is taken modulo the number of places.
    head: u32,
    len: u32,
}

impl Ring {
    /// An empty ring without room.
    pub(crate) const fn new() -> Ring {
        Ring {
            places: Vec::new(),
            head: 0,
            len: 0,
        }
    }

    /// Makes room for `flows` flows, allocating. The ring is empty.
    pub(crate) fn make_room(&mut self, flows: usize) {
        debug_assert_eq!(self.len, 0);
        self.places.resize(flows.next_power_of_two(), 0);
    }

    #[inline]
    fn place(&mut self, number: u32) -> &mut u32 {
        let mask = self.places.len() - 1;
        &mut self.places[number as usize & mask]
    }

    /// Appends a flow.
    #[inline]
    pub(crate) fn push_back(&mut self, flow: u32) {
        debug_assert!(
            (self.len as usize) < self.places.len(),
            "room was made for all flows"
        );
        *self.place(self.head.wrapping_add(self.len)) = flow;
        self.len += 1;
    }

    /// The first flow.
    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        let mask = self.places.len().wrapping_sub(1);
        (self.len > 0).then(|| self.places[self.head as usize & mask])
    }

    /// What is in the place of the flow so many after the first: a leftover if there are fewer.
    #[inline]
    pub(crate) fn ahead(&self, places: u32) -> u32 {
        let mask = self.places.len().wrapping_sub(1);
        let place = self.head.wrapping_add(places) as usize & mask;
        self.places.get(place).copied().unwrap_or(u32::MAX)
    }

    /// Takes the first flow out. The ring isn't empty.
    #[inline]
    pub(crate) fn pop_front(&mut self) {
        debug_assert!(self.len > 0);
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
    }

    /// Moves `flow`, the first, to the end.
    #[inline]
    pub(crate) fn rotate(&mut self, flow: u32) {
        debug_assert_eq!(self.front(), Some(flow));
        // Where there are as many flows as places it is the same place.
        *self.place(self.head.wrapping_add(self.len)) = flow;
        self.head = self.head.wrapping_add(1);
    }

    /// Takes all out.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        /// Against the standard library's deque, from any start: also where the counter wraps.
        #[test]
        fn a_ring_behaves_like_a_deque(
            flows in 1usize..9,
            head in any::<u32>(),
            operations in prop::collection::vec((0u8..8, 0u32..9), 0..200),
        ) {
            let mut ring = Ring::new();
            ring.make_room(flows);
            ring.head = head;
            let mut model = VecDeque::new();
            for (operation, flow) in operations {
                match operation {
                    0..4 if model.len() < flows => {
                        ring.push_back(flow);
                        model.push_back(flow);
                    }
                    4 | 5 if !model.is_empty() => {
                        ring.pop_front();
                        model.pop_front();
                    }
                    6 if !model.is_empty() => {
                        ring.rotate(model[0]);
                        model.rotate_left(1);
                    }
                    7 if flow == 0 => {
                        ring.clear();
                        model.clear();
                    }
                    _ => {}
                }
                prop_assert_eq!(ring.front(), model.front().copied());
            }
        }
    }
}
