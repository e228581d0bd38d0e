//! The round of active flows as a list threaded through them, from which any can be taken out: a flow whose queue management
//! runs down waits in one, and leaves it from wherever it stands when a packet comes.
//!
//! Next to [`ActiveList`](crate::structures::ActiveList) a flow also knows its predecessor. The first one's and the last one's
//! leftovers are never followed, so that taking the first out touches no other flow's line.

/// A flow's neighbours: four bytes for one of up to 65536 flows.
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

/// A chain. The same array must be passed to every call.
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

    /// How many flows are in.
    #[inline]
    pub(super) fn len(&self) -> u16 {
        self.len
    }

    /// Whether no flow is in.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a flow that is in no chain.
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

    /// Takes the first flow out. The chain isn't empty.
    #[inline]
    pub(super) fn pop_front<F: Linked>(&mut self, flows: &mut [F]) {
        debug_assert!(self.len > 0);
        self.head = flows[usize::from(self.head)].link().next;
        self.len -= 1;
    }

    /// Moves the first flow to the end of the same chain.
    #[inline]
    pub(super) fn rotate<F: Linked>(&mut self, flows: &mut [F]) {
        if self.len > 1 {
            let index = self.head;
            self.pop_front(flows);
            self.push_back(index, flows);
        }
    }

    /// Takes a flow out that is in this chain.
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
        /// Against the standard library's deque.
        #[test]
        fn a_chain_behaves_like_a_deque(operations in prop::collection::vec((0u8..6, 0u16..8), 0..200)) {
            let mut flows = [ChainLink::default(); 8];
            let mut chain = Chain::default();
            let mut model = VecDeque::new();
            for (operation, index) in operations {
                let place = model.iter().position(|known| *known == index);
                match (operation, place) {
                    (0..=2, None) => {
                        chain.push_back(index, &mut flows);
                        model.push_back(index);
                    }
                    (0 | 1, Some(place)) => {
                        chain.remove(index, &mut flows);
                        model.remove(place);
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
