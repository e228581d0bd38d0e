//! The active list: the flows with a backlog, in the order of their turns.
//!
//! It is a first-in first-out list that is threaded through the elements of an array. The list takes two
//! words, and each flow takes one. Nothing is allocated. A flow is in at most one list; its link says whether
//! it is in one.

use crate::scheduler::Holds;

/// Marks the last flow of a list.
const END: u32 = u32::MAX;
/// Marks a flow that is in no list.
const OUTSIDE: u32 = u32::MAX - 1;

/// A flow's link in a list: the index of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListLink(u32);

impl ListLink {
    /// The link of a flow that is in no list.
    pub(crate) const OUTSIDE: ListLink = ListLink(OUTSIDE);

    /// Whether the flow is in a list.
    #[inline]
    pub(crate) fn is_in_list(self) -> bool {
        self.0 != OUTSIDE
    }

    /// The index of the flow behind it, or one that no flow has.
    #[inline]
    pub(crate) fn next(self) -> usize {
        self.0 as usize
    }
}

/// Something with a [`ListLink`].
pub(crate) trait Linked {
    /// The link.
    fn link(&mut self) -> &mut ListLink;
}

/// A flow that contains the link itself. Other flows contain it in a part of their state.
impl<T: Linked> Holds for T {
    type State = T;

    #[inline]
    fn state(&self) -> &T {
        self
    }

    #[inline]
    fn state_mut(&mut self) -> &mut T {
        self
    }
}

/// A list. All calls must pass the same array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveList {
    head: u32,
    tail: u32,
    len: u32,
}

impl ActiveList {
    /// Returns a list without flows.
    pub(crate) const fn new() -> ActiveList {
        ActiveList {
            head: END,
            tail: END,
            len: 0,
        }
    }

    /// Appends a flow that is in no list.
    #[inline]
    pub(crate) fn push_back<F: Holds<State: Linked>>(&mut self, index: u32, flows: &mut [F]) {
        let link = flows[index as usize].state_mut().link();
        debug_assert!(!link.is_in_list(), "flow {index} is in a list already");
        *link = ListLink(END);
        if self.len == 0 {
            self.head = index;
        } else {
            *flows[self.tail as usize].state_mut().link() = ListLink(index);
        }
        self.tail = index;
        self.len += 1;
    }

    /// Removes and returns the first flow.
    #[inline]
    pub(crate) fn pop_front<F: Holds<State: Linked>>(&mut self, flows: &mut [F]) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let index = self.head;
        let link = flows[index as usize].state_mut().link();
        self.head = link.0;
        *link = ListLink::OUTSIDE;
        self.len -= 1;
        Some(index)
    }

    /// Moves the first flow to the end.
    #[inline]
    pub(crate) fn rotate<F: Holds<State: Linked>>(&mut self, flows: &mut [F]) {
        if self.len > 1 {
            let index = self.head;
            let link = flows[index as usize].state_mut().link();
            self.head = link.0;
            *link = ListLink(END);
            *flows[self.tail as usize].state_mut().link() = ListLink(index);
            self.tail = index;
        }
    }

    /// Appends all flows of `other` and keeps their order.
    #[inline]
    pub(crate) fn append<F: Holds<State: Linked>>(&mut self, other: &mut ActiveList, flows: &mut [F]) {
        if self.len == 0 {
            *self = *other;
        } else if other.len > 0 {
            *flows[self.tail as usize].state_mut().link() = ListLink(other.head);
            self.tail = other.tail;
            self.len += other.len;
        }
        *other = ActiveList::new();
    }

    /// Returns the first flow.
    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        (self.len > 0).then_some(self.head)
    }

    /// The number of flows in the list.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    impl Linked for ListLink {
        fn link(&mut self) -> &mut ListLink {
            self
        }
    }

    proptest! {
        /// Compares the list with the standard library's deque.
        #[test]
        fn a_list_behaves_like_a_deque(operations in prop::collection::vec((0u8..6, 0u32..8), 0..200)) {
            let mut flows = [ListLink::OUTSIDE; 8];
            let mut round = ActiveList::new();
            let mut model = VecDeque::new();
            let mut other = ActiveList::new();
            let mut other_model = VecDeque::new();
            for (operation, index) in operations {
                match operation {
                    0 | 1 if !flows[index as usize].is_in_list() => {
                        round.push_back(index, &mut flows);
                        model.push_back(index);
                    }
                    2 => prop_assert_eq!(round.pop_front(&mut flows), model.pop_front()),
                    3 => {
                        round.rotate(&mut flows);
                        if !model.is_empty() {
                            model.rotate_left(1);
                        }
                    }
                    4 if !flows[index as usize].is_in_list() => {
                        other.push_back(index, &mut flows);
                        other_model.push_back(index);
                    }
                    5 => {
                        round.append(&mut other, &mut flows);
                        model.append(&mut other_model);
                    }
                    _ => {}
                }
                prop_assert_eq!(round.front(), model.front().copied());
                prop_assert_eq!(round.len() as usize, model.len());
                for (index, link) in flows.iter().enumerate() {
                    let index = index as u32;
                    let is_listed = model.contains(&index) || other_model.contains(&index);
                    prop_assert_eq!(link.is_in_list(), is_listed);
                }
            }
        }
    }
}
