//! Flows by rising key, any of which can get another key: [`Heap`](super::Heap) with the places of all flows.
//!
//! Keys are wrapping times, compared as there; among equal keys the lower flow number goes first.

use alloc::vec::Vec;

use super::heap::{Entry, Ordered};

/// Children of an entry.
const ARITY: usize = 4;

/// The place of a flow that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// The heap. Room for all flows is made at construction.
#[derive(Debug, Default)]
pub(crate) struct IndexedHeap {
    entries: Vec<Entry>,
    /// Where each flow's entry is.
    places: Vec<u32>,
}

impl IndexedHeap {
    /// An empty heap for no flow.
    pub(crate) const fn new() -> IndexedHeap {
        IndexedHeap {
            entries: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Room for one flow more, allocating.
    pub(crate) fn add_flow(&mut self) {
        self.places.push(ABSENT);
        self.entries.reserve(self.places.len() - self.entries.len());
    }

    /// The flow with the least key.
    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// A flow's key, if it is in.
    #[cfg(test)]
    pub(crate) fn key(&self, flow: u32) -> Option<u64> {
        let place = self.places[flow as usize];
        (place != ABSENT).then(|| self.entries[place as usize].key)
    }

    /// Puts a flow in that isn't in.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, flow: u32) {
        debug_assert_eq!(self.places[flow as usize], ABSENT, "each flow is in once");
        let place = self.entries.len();
        self.entries.push(Entry { key, flow });
        self.rise(place);
    }

    /// Gives a flow that is in another key.
    #[inline]
    pub(crate) fn rekey(&mut self, flow: u32, key: u64) {
        let place = self.places[flow as usize] as usize;
        let entry = Entry { key, flow };
        let is_earlier = entry.is_before(self.entries[place]);
        self.entries[place] = entry;
        if is_earlier {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    /// Takes the first flow out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let last = self.entries.pop()?;
        let first = match self.entries.first_mut() {
            Some(first) => core::mem::replace(first, last),
            None => last,
        };
        self.places[first.flow as usize] = ABSENT;
        if !self.entries.is_empty() {
            self.sink(0);
        }
        Some(first)
    }

    /// Takes a flow out that is in.
    pub(crate) fn remove(&mut self, flow: u32) {
        let place = self.places[flow as usize] as usize;
        let last = self.entries.pop().expect("the flow is in");
        self.places[flow as usize] = ABSENT;
        if place < self.entries.len() {
            self.places[last.flow as usize] = place as u32;
            self.rekey(last.flow, last.key);
        }
    }

    /// The flows that are in, in no order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.flow)
    }

    /// Takes all flows out.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places.fill(ABSENT);
    }

    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        self.entries[place] = entry;
        self.places[entry.flow as usize] = place as u32;
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !entry.is_before(self.entries[parent]) {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let children = ARITY * place + 1;
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
            self.put(place, self.entries[least]);
            place = least;
        }
        self.put(place, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a search of all flows, with keys on both sides of the wrap.
        #[test]
        fn the_least_key_is_first_whatever_changes(operations in prop::collection::vec((0u8..6, 0u64..50, 0u32..20), 0..300)) {
            let origin = u64::MAX - 25;
            let mut heap = IndexedHeap::new();
            (0..20).for_each(|_| heap.add_flow());
            let mut model = [None; 20];
            for (operation, key, flow) in operations {
                let place = &mut model[flow as usize];
                match (operation, &place) {
                    (0..=2, None) => {
                        heap.push(origin.wrapping_add(key), flow);
                        *place = Some(key);
                    }
                    (0..=3, Some(_)) => {
                        heap.rekey(flow, origin.wrapping_add(key));
                        *place = Some(key);
                    }
                    (4, Some(_)) => {
                        heap.remove(flow);
                        *place = None;
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
