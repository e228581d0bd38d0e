//! Flows by rising key, for keys that usually come in order: a run of entries that came in order, and a heap
//! for the others.
//!
//! ```text
//!   run    [ 3  5  5  8 ]  <- 9   not before the last one: appended to the run, in constant time
//!   heap   { 4, 6, 7 }     <- 6   before the last one: inserted into the heap
//! ```
//!
//! The first entry is the lesser of the first entries of run and heap. Among equal keys in the run, the one
//! that came first goes first. If flows have equal weights and packets are of one size, as in bulk transfers,
//! time stamps come in order and nothing is sorted. In the worst case all entries except one are in the heap,
//! and the additional cost is one comparison.

use alloc::vec::Vec;

use crate::structures::heap::{Narrow, NarrowHeap, Ordered};

/// A run and a heap. `make_room` allocates them for all flows before they are used.
#[derive(Debug)]
pub(crate) struct RunHeap {
    /// A ring buffer whose size is a power of two.
    run: Vec<Narrow>,
    /// The numbers of entries taken from the run and appended to it since the start. Their difference is its
    /// length.
    taken: u32,
    appended: u32,
    /// The last entry of the run, if it has one.
    last: Narrow,
    heap: NarrowHeap,
}

impl RunHeap {
    /// Returns an empty structure without capacity.
    pub(crate) const fn new() -> RunHeap {
        RunHeap {
            run: Vec::new(),
            taken: 0,
            appended: 0,
            last: Narrow::LEAST,
            heap: NarrowHeap::new(),
        }
    }

    /// Allocates capacity for `flows` entries. It must be empty.
    pub(crate) fn make_room(&mut self, flows: usize) {
        self.run.resize(flows.next_power_of_two(), Narrow::LEAST);
        self.heap.make_room(flows);
    }

    /// Inserts an entry. Its flow must not be in the structure.
    #[inline]
    pub(crate) fn insert(&mut self, entry: Narrow) {
        if self.run_is_empty() || !entry.is_earlier(self.last) {
            let position = self.position(self.appended);
            self.run[position] = entry;
            self.appended = self.appended.wrapping_add(1);
            self.last = entry;
        } else {
            self.heap.insert(entry);
        }
    }

    /// Returns the first entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<Narrow> {
        let of_heap = self.heap.first();
        if self.run_is_empty() {
            return of_heap;
        }
        let of_run = self.run[self.position(self.taken)];
        Some(match of_heap {
            Some(of_heap) if of_heap.is_before(of_run) => of_heap,
            _ => of_run,
        })
    }

    /// Removes and returns the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Narrow> {
        let first = self.first()?;
        if self.heap.first() == Some(first) {
            self.heap.pop();
        } else {
            self.taken = self.taken.wrapping_add(1);
        }
        Some(first)
    }

    /// Replaces the first entry. It must not be empty.
    #[inline]
    pub(crate) fn replace_first(&mut self, entry: Narrow) {
        let first = self.first();
        let is_of_heap = self.heap.first() == first;
        if !is_of_heap {
            self.taken = self.taken.wrapping_add(1);
            self.insert(entry);
        } else if self.run_is_empty() || !entry.is_earlier(self.last) {
            self.heap.pop();
            self.insert(entry);
        } else {
            self.heap.replace_first(entry);
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.taken = self.appended;
        self.heap.clear();
    }

    /// Whether it is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.run_is_empty() && self.heap.is_empty()
    }

    /// Returns the number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.appended.wrapping_sub(self.taken) as usize + self.heap.len()
    }

    #[inline]
    fn run_is_empty(&self) -> bool {
        self.taken == self.appended
    }

    #[inline]
    fn position(&self, number: u32) -> usize {
        number as usize & (self.run.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// Removes `flow` from the model if it is one of the flows with the least key.
    fn take(model: &mut BTreeSet<(u64, u32)>, flow: u32) -> bool {
        let least = model.first().map(|&(key, _)| key);
        least.is_some_and(|least| model.remove(&(least, flow)))
    }

    proptest! {
        /// Compares with an ordered set. Keys are mostly in order, and on both sides of the wrap.
        #[test]
        fn the_least_key_is_first(
            scatter in 1u64..60,
            operations in prop::collection::vec((0u8..8, 0u64..60, 0u32..40), 0..600),
        ) {
            let origin = (1u64 << 44) - 300;
            let entry = |key: u64, flow| Narrow::new(origin.wrapping_add(key), flow);
            let mut heap = RunHeap::new();
            heap.make_room(40);
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            for (step, (operation, key, flow)) in (0u64..).zip(operations) {
                let key = step + key % scatter;
                match operation {
                    0..=4 if model.iter().all(|&(_, other)| other != flow) => {
                        heap.insert(entry(key, flow));
                        model.insert((key, flow));
                    }
                    0..=5 => {
                        let first = heap.pop().map(Narrow::flow);
                        prop_assert_eq!(first.is_none(), model.is_empty());
                        if let Some(first) = first {
                            prop_assert!(take(&mut model, first), "{} before {:?}", first, model);
                        }
                    }
                    6 => if let Some(first) = heap.first().map(Narrow::flow) {
                        prop_assert!(take(&mut model, first));
                        heap.replace_first(entry(key, first));
                        model.insert((key, first));
                    },
                    _ if key % 16 == 0 => {
                        heap.clear();
                        model.clear();
                    }
                    _ => {}
                }
                let least = model.first().map(|&(key, _)| key);
                let first = heap.first().map(Narrow::flow);
                let known = model.iter().find(|&&(_, flow)| Some(flow) == first);
                prop_assert_eq!(known.map(|&(key, _)| key), least);
                prop_assert_eq!(heap.len(), model.len());
                prop_assert_eq!(heap.is_empty(), model.is_empty());
            }
        }
    }
}
