//! The round of classes that have inner disciplines: what classful `drr` and `ets` have in common.
//!
//! Active classes stand in a round. The class at its head sends while its next packet's length does not exceed its
//! deficit; else it is given its quantum and goes to the tail. A class that becomes active starts with one quantum,
//! whatever was left from before.
//!
//! A class that withholds its packets (a shaper inside) is passed over and keeps its deficit. A class is taken out
//! of the round when it is found empty, so that it may lose packets on its own account (CoDel inside, a flush) without
//! telling. Invariant: a class with a backlog is in the round.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Discipline, Verdict};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::structures::{ActiveList, Linked, ListLink};
use crate::time::Time;

/// What is looked at for each packet: 32 bytes.
pub(super) struct RoundClass {
    pub(super) inner: Box<dyn Discipline>,
    pub(super) quantum: u32,
    /// Bytes that it may still send in this round.
    deficit: u32,
    link: ListLink,
}

impl RoundClass {
    pub(super) fn new(inner: Box<dyn Discipline>, quantum: u32) -> RoundClass {
        RoundClass {
            inner,
            quantum,
            deficit: 0,
            link: ListLink::OUTSIDE,
        }
    }
}

impl Linked for RoundClass {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// Classes and the round of those that are active.
pub(super) struct ClassRound {
    pub(super) classes: Vec<RoundClass>,
    round: ActiveList,
}

impl ClassRound {
    /// With each class's inner discipline and quantum.
    pub(super) fn new(classes: impl Iterator<Item = (Box<dyn Discipline>, u32)>) -> ClassRound {
        ClassRound {
            classes: classes
                .map(|(inner, quantum)| RoundClass::new(inner, quantum))
                .collect(),
            round: ActiveList::new(),
        }
    }

    /// How many classes are in the round.
    pub(super) fn active(&self) -> u32 {
        self.round.len()
    }

    #[inline]
    pub(super) fn enqueue(&mut self, place: usize, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let verdict = self.classes[place].inner.enqueue(id, now, pool);
        self.activate(place);
        verdict
    }

    /// Brings a class that may have a backlog into the round.
    #[inline]
    pub(super) fn activate(&mut self, place: usize) {
        let class = &mut self.classes[place];
        if !class.link.is_in_list() && class.inner.backlog().packets > 0 {
            class.deficit = class.quantum;
            self.round.push_back(place as u32, &mut self.classes);
        }
    }

    #[inline]
    pub(super) fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        // Classes passed over since the last one that has a packet to send: once it is all of them, nothing can be
        // sent now. As long as one has a packet, every pass adds a quantum, so the loop ends.
        let mut withholding = 0;
        while let Some(place) = self.round.front() {
            let class = &mut self.classes[place as usize];
            if let Some(first) = class.inner.peek(now, pool) {
                let length = pool[first].length;
                if length <= class.deficit {
                    class.deficit -= length;
                    let next = class.inner.dequeue(now, pool);
                    debug_assert_eq!(next, Some(first), "a peek shows what the next dequeue returns");
                    if class.inner.backlog().packets == 0 {
                        self.round.pop_front(&mut self.classes);
                    }
                    return next;
                }
                class.deficit = class.deficit.saturating_add(class.quantum);
                withholding = 0;
            } else if class.inner.backlog().packets == 0 {
                self.round.pop_front(&mut self.classes);
                continue;
            } else {
                withholding += 1;
            }
            self.round.rotate(&mut self.classes);
            if withholding >= self.round.len() {
                return None;
            }
        }
        None
    }

    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for class in &mut self.classes {
            class.inner.drain(pool, into);
        }
        while self.round.pop_front(&mut self.classes).is_some() {}
    }

    /// When the first of the classes that withhold can be asked again.
    pub(super) fn watchdog(&self) -> Option<Time> {
        let active = self.classes.iter().filter(|class| class.link.is_in_list());
        active.filter_map(|class| class.inner.watchdog()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_state_of_a_class_is_half_a_cache_line() {
        assert_eq!(core::mem::size_of::<RoundClass>(), 32);
    }
}
