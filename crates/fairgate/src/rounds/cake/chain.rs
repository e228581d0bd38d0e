//! A doubly linked list of active flows, from which any flow can be removed. A flow whose queue management
//! decays waits in such a list, and leaves it from any position when a packet arrives.
//!
//! Unlike in [`ActiveList`](crate::structures::ActiveList) a flow also knows its predecessor. The outer links
//! of the first and the last flow are stale and are never followed. So a removal of the first flow touches no
//! other flow's cache line.

/// A flow's neighbours: four bytes, because there are at most 65536 flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChainLink {
    next: u16,
    previous: u16,
}

/// Something with a [`ChainLink`].
pub(super) trait Linked {
    /// The link.
    fn link(&mut self) -> &mut ChainLink;
}

/// A list. Every call must pass the same array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    head: u16,
    tail: u16,
    len: u16,
}

impl Chain {
    /// The first flow.
    #[inline]
    pub(super) fn front(&self) -> Option<u16> {
        (self.len > 0).then_some(self.head)
    }

    /// The number of flows in the list.
    #[inline]
    pub(super) fn len(&self) -> u16 {
        self.len
    }

    /// Whether the list is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a flow that is in no list.
    #[inline]
    pub(super) fn push_back<F: Linked>(&mut self, index: u16, flows: &mut [F]) {
        if self.len == 0 {
            self.head = index;
        } else {
            flows[usize::from(self.tail)].link().next = index;
            flows[usize::from(index)].link().previous = self.tail;
        }
        self.tail = index;
        self.len += 1;
    }

    /// Removes the first flow. The list must not be empty.
    #[inline]
    pub(super) fn pop_front<F: Linked>(&mut self, flows: &mut [F]) {
        debug_assert!(self.len > 0);
        self.head = flows[usize::from(self.head)].link().next;
        self.len -= 1;
    }

    /// Moves the first flow to the end of the list.
    #[inline]
    pub(super) fn rotate<F: Linked>(&mut self, flows: &mut [F]) {
        if self.len > 1 {
            let index = self.head;
            self.pop_front(flows);
            self.push_back(index, flows);
        }
    }

    /// Removes a flow that is in this list.
    #[inline]
    pub(super) fn remove<F: Linked>(&mut self, index: u16, flows: &mut [F]) {
        if index == self.head {
            return self.pop_front(flows);
        }
        let ChainLink { next, previous } = *flows[usize::from(index)].link();
        flows[usize::from(previous)].link().next = next;
        if index == self.tail {
            self.tail = previous;
        } else {
            flows[usize::from(next)].link().previous = previous;
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    impl Linked for ChainLink {
        fn link(&mut self) -> &mut ChainLink {
            self
        }
    }

    proptest! {
        /// Compares with the standard library's deque.
        #[test]
        fn a_chain_behaves_like_a_deque(operations in prop::collection::vec((0u8..6, 0u16..8), 0..200)) {
            let mut flows = [ChainLink::default(); 8];
            let mut chain = Chain::default();
            let mut model = VecDeque::new();
            for (operation, index) in operations {
                let position = model.iter().position(|known| *known == index);
                match (operation, position) {
                    (0..=2, None) => {
                        chain.push_back(index, &mut flows);
                        model.push_back(index);
                    }
                    (0 | 1, Some(position)) => {
                        chain.remove(index, &mut flows);
                        model.remove(position);
                    }
                    (3, _) if !model.is_empty() => {
                        chain.pop_front(&mut flows);
                        model.pop_front();
                    }
                    (4, _) => {
                        chain.rotate(&mut flows);
                        model.rotate_left(usize::from(!model.is_empty()));
                    }
                    _ => {}
                }
                prop_assert_eq!(chain.front(), model.front().copied());
                prop_assert_eq!(usize::from(chain.len()), model.len());
                prop_assert_eq!(chain.is_empty(), model.is_empty());
            }
            let mut left = Vec::new();
            while let Some(first) = chain.front() {
                left.push(first);
                chain.pop_front(&mut flows);
            }
            prop_assert_eq!(left, Vec::from(model));
        }
    }
}
