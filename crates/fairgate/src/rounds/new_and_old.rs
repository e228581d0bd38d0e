//! The lists of new and of old flows (RFC 8290, section 4.2), in which flows take turns.
//!
//! ```text
//!   becomes active -> new:  [ 7 4 ]        these go first, with one quantum each
//!   had its turn   -> old:  [ 2 9 5 ]      then these, round robin
//! ```
//!
//! A new flow that becomes empty goes to the end of the old list if that list is not empty. Otherwise a flow
//! that becomes new again and again would starve the old flows.

use alloc::vec::Vec;

use crate::discipline::Variable;
use crate::structures::{ActiveList, Linked};

/// The two lists. Every call must pass the same array.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewAndOld {
    new: ActiveList,
    old: ActiveList,
}

impl NewAndOld {
    /// Lists without flows.
    pub(super) const fn new() -> NewAndOld {
        NewAndOld {
            new: ActiveList::new(),
            old: ActiveList::new(),
        }
    }

    /// Appends a flow that becomes active and is in neither list.
    #[inline]
    pub(super) fn join<F: Linked>(&mut self, index: u32, flows: &mut [F]) {
        self.new.push_back(index, flows);
    }

    /// Appends a flow that was throttled. It had packets, so it is not new.
    #[inline]
    pub(super) fn rejoin<F: Linked>(&mut self, index: u32, flows: &mut [F]) {
        self.old.push_back(index, flows);
    }

    /// The flow that has the turn.
    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        self.serving().front()
    }

    /// Ends the first flow's turn: it moves to the end of the old list.
    #[inline]
    pub(super) fn end_turn<F: Linked>(&mut self, flows: &mut [F]) {
        if let Some(index) = self.leave(flows) {
            self.old.push_back(index, flows);
        }
    }

    /// Handles that the first flow became empty.
    #[inline]
    pub(super) fn ran_empty<F: Linked>(&mut self, flows: &mut [F]) {
        if self.new.len() > 0 && self.old.len() > 0 {
            self.end_turn(flows);
        } else {
            let _ = self.leave(flows);
        }
    }

    /// Removes the first flow.
    #[inline]
    pub(super) fn leave<F: Linked>(&mut self, flows: &mut [F]) -> Option<u32> {
        match self.new.len() {
            0 => self.old.pop_front(flows),
            _ => self.new.pop_front(flows),
        }
    }

    /// Removes all flows, and returns them by ascending index.
    pub(super) fn take_all<F: Linked>(&mut self, flows: &mut [F]) -> Vec<u32> {
        let mut all: Vec<u32> = core::iter::from_fn(|| self.leave(flows)).collect();
        all.sort_unstable();
        all
    }

    #[inline]
    fn serving(&self) -> &ActiveList {
        if self.new.len() > 0 { &self.new } else { &self.old }
    }

    /// Visits the variables under the names of Linux's statistics.
    pub(super) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("new_flows_len", Variable::Integer(self.new.len().into()));
        visit("old_flows_len", Variable::Integer(self.old.len().into()));
    }
}
