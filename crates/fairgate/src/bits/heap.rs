//! Flows by rising key: a heap of four children, in which keys are wrapping times.
//!
//! Four children of 16 bytes are one cache line, and the tree is half as high as with two. Keys are compared by their
//! wrapping difference, so all that are in the heap at a time must lie within 2^63 of one another. Among equal keys
//! the lower flow number goes first.

/// Children of an entry.
const ARITY: usize = 4;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: u64,
    /// The flow.
    pub(crate) flow: u32,
}

impl Entry {
    #[inline]
    fn is_before(self, other: Entry) -> bool {
        match self.key.wrapping_sub(other.key) as i64 {
            0 => self.flow < other.flow,
            difference => difference < 0,
        }
    }
}

/// The heap. Room for as many entries as there are flows is made at construction.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    /// An empty heap without room.
    pub(crate) const fn new() -> Heap {
        Heap { entries: Vec::new() }
    }

    /// Makes room for `flows` entries, allocating.
    pub(crate) fn make_room(&mut self, flows: usize) {
        self.entries.reserve(flows.saturating_sub(self.entries.len()));
    }

    /// Puts a flow in that isn't in.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, flow: u32) {
        debug_assert!(
            self.entries.len() < self.entries.capacity(),
            "room was made for all flows"
        );
        self.entries.push(Entry { key, flow });
        self.rise(self.entries.len() - 1);
    }

    /// The flow with the least key.
    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// Takes the first flow out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let last = self.entries.pop()?;
        let Some(first) = self.entries.first_mut() else {
            return Some(last);
        };
        let first = std::mem::replace(first, last);
        self.sink();
        Some(first)
    }

    /// Gives the first flow another key. The heap isn't empty.
    #[inline]
    pub(crate) fn rekey_first(&mut self, key: u64) {
        self.entries[0].key = key;
        self.sink();
    }

    /// Puts a flow that isn't in into the place of the first, which goes out. The heap isn't empty.
    #[inline]
    pub(crate) fn replace_first(&mut self, key: u64, flow: u32) {
        self.entries[0] = Entry { key, flow };
        self.sink();
    }

    /// Takes all flows out.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Whether no flow is in.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many flows are in.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !entry.is_before(self.entries[parent]) {
                break;
            }
            self.entries[place] = self.entries[parent];
            place = parent;
        }
        self.entries[place] = entry;
    }

    fn sink(&mut self) {
        let entry = self.entries[0];
        let mut place = 0;
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
            self.entries[place] = self.entries[least];
            place = least;
        }
        self.entries[place] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against an ordered set, with keys on both sides of the wrap.
        #[test]
        fn the_least_key_is_first(operations in prop::collection::vec((0u8..4, 0u64..50, 0u32..20), 0..300)) {
            let origin = u64::MAX - 25;
            let mut heap = Heap::new();
            heap.make_room(20);
            let mut model = BTreeSet::new();
            for (operation, key, flow) in operations {
                match operation {
                    0 | 1 if model.iter().all(|&(_, other)| other != flow) => {
                        heap.push(origin.wrapping_add(key), flow);
                        model.insert((key, flow));
                    }
                    2 => {
                        let popped = heap.pop().map(|entry| (entry.key.wrapping_sub(origin), entry.flow));
                        prop_assert_eq!(popped, model.pop_first());
                    }
                    3 => if let Some((least, flow)) = model.pop_first() {
                        heap.rekey_first(origin.wrapping_add(least + key));
                        model.insert((least + key, flow));
                    },
                    _ => {}
                }
                let first = heap.first().map(|entry| (entry.key.wrapping_sub(origin), entry.flow));
                prop_assert_eq!(first, model.first().copied());
                prop_assert_eq!(heap.len(), model.len());
            }
        }
    }
}
