//! New flows before old ones: the two lists of RFC 8290, section 4.2, in which flows take turns.
//!
//! ```text
//!   becomes active -> new:  [ 7 4 ]        go first, each with a quantum to send
//!   had its turn   -> old:  [ 2 9 5 ]      then these, round robin
//! ```
//!
//! A flow that runs empty while new goes through the old list once if others wait there, lest it keep them from their turn by
//! coming back each time.

use crate::discipline::Variable;
use crate::structures::{ActiveList, Linked};

/// The two lists. The same array must be passed to every call.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewAndOld {
    new: ActiveList,
    old: ActiveList,
}

impl NewAndOld {
    /// Without flows.
    pub(super) const fn new() -> NewAndOld {
        NewAndOld {
            new: ActiveList::new(),
            old: ActiveList::new(),
        }
    }

    /// Appends a flow that is in neither list and becomes active.
    #[inline]
    pub(super) fn join<F: Linked>(&mut self, index: u32, flows: &mut [F]) {
        self.new.push_back(index, flows);
    }

    /// Appends one that was away for its own time, not for want of packets: it is not new.
    #[inline]
    pub(super) fn rejoin<F: Linked>(&mut self, index: u32, flows: &mut [F]) {
        self.old.push_back(index, flows);
    }

    /// The flow whose turn it is.
    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        self.serving().front()
    }

    /// Ends the first flow's turn: it goes to the end of the old list.
    #[inline]
    pub(super) fn end_turn<F: Linked>(&mut self, flows: &mut [F]) {
        if let Some(index) = self.leave(flows) {
            self.old.push_back(index, flows);
        }
    }

    /// The first flow has run empty.
    #[inline]
    pub(super) fn ran_empty<F: Linked>(&mut self, flows: &mut [F]) {
        if self.new.len() > 0 && self.old.len() > 0 {
            self.end_turn(flows);
        } else {
            let _ = self.leave(flows);
        }
    }

    /// Takes the first flow out.
    #[inline]
    pub(super) fn leave<F: Linked>(&mut self, flows: &mut [F]) -> Option<u32> {
        match self.new.len() {
            0 => self.old.pop_front(flows),
            _ => self.new.pop_front(flows),
        }
    }

    #[inline]
    fn serving(&self) -> &ActiveList {
        if self.new.len() > 0 { &self.new } else { &self.old }
    }

    /// Under the names of Linux's statistics.
    pub(super) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("new_flows_len", Variable::Integer(self.new.len().into()));
        visit("old_flows_len", Variable::Integer(self.old.len().into()));
    }
}
