//! A heap of flows by rising key in which the key of any flow can change. It is a [`Heap`](super::Heap) that
//! also stores the position of each flow.
//!
//! Keys are wrapping times and are compared as in [`Heap`](super::Heap). If keys are equal, the lower flow
//! number goes first.

use alloc::vec::Vec;

use super::heap::{Entry, Ordered};

/// The number of children of an entry.
const ARITY: usize = 4;

/// The position of a flow that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// A heap with the positions of its flows. `add_flow` allocates the capacity.
#[derive(Debug, Default)]
pub(crate) struct IndexedHeap {
    entries: Vec<Entry>,
    /// The position of each flow's entry.
    positions: Vec<u32>,
}

impl IndexedHeap {
    /// Returns an empty heap without capacity.
    pub(crate) const fn new() -> IndexedHeap {
        IndexedHeap {
            entries: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Allocates capacity for one more flow.
    pub(crate) fn add_flow(&mut self) {
        self.positions.push(ABSENT);
        self.entries.reserve(self.positions.len() - self.entries.len());
    }

    /// Returns the flow with the least key.
    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// Returns a flow's key, if the flow is in the heap.
    #[cfg(test)]
    pub(crate) fn key(&self, flow: u32) -> Option<u64> {
        let position = self.positions[flow as usize];
        (position != ABSENT).then(|| self.entries[position as usize].key)
    }

    /// Inserts a flow that is not in the heap.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, flow: u32) {
        debug_assert_eq!(self.positions[flow as usize], ABSENT, "a flow is inserted once");
        let position = self.entries.len();
        self.entries.push(Entry { key, flow });
        self.rise(position);
    }

    /// Changes the key of a flow that is in the heap.
    #[inline]
    pub(crate) fn rekey(&mut self, flow: u32, key: u64) {
        let position = self.positions[flow as usize] as usize;
        let entry = Entry { key, flow };
        let is_earlier = entry.is_before(self.entries[position]);
        self.entries[position] = entry;
        if is_earlier {
            self.rise(position);
        } else {
            self.sink(position);
        }
    }

    /// Removes and returns the first flow.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let last = self.entries.pop()?;
        let first = match self.entries.first_mut() {
            Some(first) => core::mem::replace(first, last),
            None => last,
        };
        self.positions[first.flow as usize] = ABSENT;
        if !self.entries.is_empty() {
            self.sink(0);
        }
        Some(first)
    }

    /// Removes a flow that is in the heap.
    pub(crate) fn remove(&mut self, flow: u32) {
        let position = self.positions[flow as usize] as usize;
        let last = self.entries.pop().expect("the flow is in the heap");
        self.positions[flow as usize] = ABSENT;
        if position < self.entries.len() {
            self.positions[last.flow as usize] = position as u32;
            self.rekey(last.flow, last.key);
        }
    }

    /// Returns the flows in the heap, in no particular order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.flow)
    }

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.positions.fill(ABSENT);
    }

    #[inline]
    fn put(&mut self, position: usize, entry: Entry) {
        self.entries[position] = entry;
        self.positions[entry.flow as usize] = position as u32;
    }

    fn rise(&mut self, mut position: usize) {
        let entry = self.entries[position];
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if !entry.is_before(self.entries[parent]) {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize) {
        let entry = self.entries[position];
        loop {
            let children = ARITY * position + 1;
            let end = (children + ARITY).min(self.entries.len());
            let Some(mut least) = (children < end).then_some(children) else {
                break;
            };
            for child in children + 1..end {
                if self.entries[child].is_before(self.entries[least]) {
                    least = child;
                }
            }
            if !self.entries[least].is_before(entry) {
                break;
            }
            self.put(position, self.entries[least]);
            position = least;
        }
        self.put(position, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the heap with a search of all flows, with keys on both sides of the wrap.
        #[test]
        fn the_least_key_is_first_after_every_operation(
            operations in prop::collection::vec((0u8..6, 0u64..50, 0u32..20), 0..300),
        ) {
            let origin = u64::MAX - 25;
            let mut heap = IndexedHeap::new();
            (0..20).for_each(|_| heap.add_flow());
            let mut model = [None; 20];
            for (operation, key, flow) in operations {
                let position = &mut model[flow as usize];
                match (operation, &position) {
                    (0..=2, None) => {
                        heap.push(origin.wrapping_add(key), flow);
                        *position = Some(key);
                    }
                    (0..=3, Some(_)) => {
                        heap.rekey(flow, origin.wrapping_add(key));
                        *position = Some(key);
                    }
                    (4, Some(_)) => {
                        heap.remove(flow);
                        *position = None;
                    }
                    _ => {
                        if let Some(entry) = heap.pop() {
                            model[entry.flow as usize] = None;
                        }
                    }
                }
                let least = (0..20u32).filter_map(|flow| model[flow as usize].map(|key| (key, flow))).min();
                let first = heap.first().map(|entry| (entry.key.wrapping_sub(origin), entry.flow));
                prop_assert_eq!(first, least);
                prop_assert_eq!(heap.flows().count(), model.iter().flatten().count());
                for (flow, key) in (0..).zip(model) {
                    prop_assert_eq!(heap.key(flow), key.map(|key| origin.wrapping_add(key)));
                }
            }
        }
    }
}
