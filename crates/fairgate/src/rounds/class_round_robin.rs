//! Deficit round robin over classes with inner disciplines, for classful `drr` and `ets`.
//!
//! The active list holds the active classes. The first class sends while the length of its next packet does
//! not exceed its deficit. Then it gets its quantum and moves to the end. A class that becomes active starts
//! with one quantum; its old deficit is lost.
//!
//! A throttled class (a shaper inside) is skipped and keeps its deficit. A class is removed from the active
//! list when it is found empty. So it may lose packets without notice (CoDel inside, a flush). Invariant: a
//! class with a backlog is in the active list.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Discipline, Verdict};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::structures::{ActiveList, Linked, ListLink};
use crate::time::Time;

/// The state that each packet needs: 32 bytes.
#[derive(Debug)]
pub(super) struct RoundClass {
    pub(super) inner: Box<dyn Discipline>,
    pub(super) quantum: u32,
    /// The bytes that the class may still send in this round.
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

/// The classes and the active list.
#[derive(Debug)]
pub(super) struct ClassRoundRobin {
    pub(super) classes: Vec<RoundClass>,
    active: ActiveList,
}

impl ClassRoundRobin {
    /// Creates classes from the inner disciplines and quanta.
    pub(super) fn new(classes: impl Iterator<Item = (Box<dyn Discipline>, u32)>) -> ClassRoundRobin {
        ClassRoundRobin {
            classes: classes
                .map(|(inner, quantum)| RoundClass::new(inner, quantum))
                .collect(),
            active: ActiveList::new(),
        }
    }

    /// The number of classes in the active list.
    pub(super) fn active(&self) -> u32 {
        self.active.len()
    }

    #[inline]
    pub(super) fn enqueue(&mut self, index: usize, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let verdict = self.classes[index].inner.enqueue(id, now, pool);
        self.activate(index);
        verdict
    }

    /// Puts a class that may have a backlog into the active list.
    #[inline]
    pub(super) fn activate(&mut self, index: usize) {
        let class = &mut self.classes[index];
        if !class.link.is_in_list() && !class.inner.is_empty() {
            class.deficit = class.quantum;
            self.active.push_back(index as u32, &mut self.classes);
        }
    }

    #[inline]
    pub(super) fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        // `throttled` counts the classes skipped since the last one that has a packet to send. If it
        // reaches the number of active classes, nothing can be sent now. While one class has a packet, every
        // pass adds a quantum, so the loop ends.
        let mut throttled = 0;
        while let Some(index) = self.active.front() {
            let class = &mut self.classes[index as usize];
            if let Some(first) = class.inner.peek(now, pool) {
                let length = pool[first].length;
                if length <= class.deficit {
                    class.deficit -= length;
                    let next = class.inner.dequeue(now, pool);
                    debug_assert_eq!(
                        next,
                        Some(first),
                        "the dequeue after a peek returns the same packet"
                    );
                    if class.inner.is_empty() {
                        self.active.pop_front(&mut self.classes);
                    }
                    return next;
                }
                class.deficit = class.deficit.saturating_add(class.quantum);
                throttled = 0;
            } else if class.inner.is_empty() {
                self.active.pop_front(&mut self.classes);
                continue;
            } else {
                throttled += 1;
            }
            self.active.rotate(&mut self.classes);
            if throttled >= self.active.len() {
                return None;
            }
        }
        None
    }

    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for class in &mut self.classes {
            class.inner.drain(pool, into);
        }
        while self.active.pop_front(&mut self.classes).is_some() {}
    }

    /// The earliest watchdog of the throttled classes.
    pub(super) fn watchdog(&self) -> Option<Time> {
        let active = self.classes.iter().filter(|class| class.link.is_in_list());
        active.filter_map(|class| class.inner.watchdog()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_state_of_a_class_is_half_a_cache_line() {
        assert_eq!(core::mem::size_of::<RoundClass>(), 32);
    }
}
