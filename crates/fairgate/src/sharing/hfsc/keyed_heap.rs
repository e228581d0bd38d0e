//! Numbers by ascending key of any ordered type. Any number can get another key, or be removed. For keys that
//! do not fit the 64 bits of [`IndexedHeap`](crate::structures::IndexedHeap).

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The children of an entry.
const ARITY: usize = 4;

/// The position of a number that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// The heap. Memory for all numbers is allocated at construction.
#[derive(Debug)]
pub(crate) struct KeyedHeap<K> {
    entries: Vec<(K, u32)>,
    /// The position of each number's entry.
    positions: Box<[u32]>,
}

impl<K: Copy + Ord> KeyedHeap<K> {
    /// Creates an empty heap for numbers below `size`.
    pub(crate) fn new(size: usize) -> KeyedHeap<K> {
        KeyedHeap {
            entries: Vec::with_capacity(size),
            positions: vec![ABSENT; size].into_boxed_slice(),
        }
    }

    /// Returns the smallest key and its number.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Inserts a number, or changes its key.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, key: K) {
        let position = self.positions[number as usize];
        if position == ABSENT {
            self.entries.push((key, number));
            self.rise(self.entries.len() - 1, (key, number));
        } else {
            self.settle(position as usize, (key, number));
        }
    }

    /// Removes a number, if it is in the heap.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let position = core::mem::replace(&mut self.positions[number as usize], ABSENT);
        if position == ABSENT {
            return;
        }
        let last = self.entries.pop().expect("a number with a position has an entry");
        if (position as usize) < self.entries.len() {
            self.settle(position as usize, last);
        }
    }

    /// Moves an entry to its position. The search starts at `position`, whose entry is overwritten.
    #[inline]
    fn settle(&mut self, position: usize, entry: (K, u32)) {
        let is_early = position > 0 && entry.0 < self.entries[(position - 1) / ARITY].0;
        if is_early {
            self.rise(position, entry);
        } else {
            self.sink(position, entry);
        }
    }

    #[inline]
    fn put(&mut self, position: usize, entry: (K, u32)) {
        self.entries[position] = entry;
        self.positions[entry.1 as usize] = position as u32;
    }

    fn rise(&mut self, mut position: usize, entry: (K, u32)) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if entry.0 >= self.entries[parent].0 {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize, entry: (K, u32)) {
        loop {
            let children = ARITY * position + 1;
            let end = (children + ARITY).min(self.entries.len());
            let Some(least) = (children..end).min_by_key(|&child| self.entries[child].0) else {
                break;
            };
            if self.entries[least].0 >= entry.0 {
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
        #[test]
        fn the_smallest_key_is_first(
            operations in prop::collection::vec((0u8..4, 0u64..50, 0u32..20), 0..300),
        ) {
            let mut heap = KeyedHeap::new(20);
            let mut model = [None; 20];
            for (step, (operation, key, number)) in operations.into_iter().enumerate() {
                match operation {
                    0..=2 => {
                        heap.set(number, (key, step));
                        model[number as usize] = Some((key, step));
                    }
                    _ => {
                        heap.remove(number);
                        model[number as usize] = None;
                    }
                }
                let keys = (0..20u32).filter_map(|number| Some((model[number as usize]?, number)));
                let least = keys.min();
                prop_assert_eq!(heap.first(), least);
            }
        }
    }
}
