//! Numbers by rising key of any ordered kind, any of which can get another key or leave: for keys that
//! [`IndexedHeap`](super::IndexedHeap)'s, of 64 bits, are too narrow for.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Children of an entry.
const ARITY: usize = 4;

/// The place of a number that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// The heap. Room for all numbers is made at construction.
#[derive(Debug)]
pub(crate) struct KeyedHeap<K> {
    entries: Vec<(K, u32)>,
    /// Where each number's entry is.
    places: Box<[u32]>,
}

impl<K: Copy + Ord> KeyedHeap<K> {
    /// An empty heap for numbers below `size`.
    pub(crate) fn new(size: usize) -> KeyedHeap<K> {
        KeyedHeap {
            entries: Vec::with_capacity(size),
            places: vec![ABSENT; size].into_boxed_slice(),
        }
    }

    /// The least key, and whose it is.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Puts a number in, or gives it another key.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, key: K) {
        let place = self.places[number as usize];
        if place == ABSENT {
            self.entries.push((key, number));
            self.rise(self.entries.len() - 1, (key, number));
        } else {
            self.settle(place as usize, (key, number));
        }
    }

    /// Takes a number out, if it is in.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let place = core::mem::replace(&mut self.places[number as usize], ABSENT);
        if place == ABSENT {
            return;
        }
        let last = self.entries.pop().expect("the number is in");
        if (place as usize) < self.entries.len() {
            self.settle(place as usize, last);
        }
    }

    /// Puts an entry where it belongs, beginning at `place`, whose own is overwritten.
    #[inline]
    fn settle(&mut self, place: usize, entry: (K, u32)) {
        let is_early = place > 0 && entry.0 < self.entries[(place - 1) / ARITY].0;
        if is_early {
            self.rise(place, entry);
        } else {
            self.sink(place, entry);
        }
    }

    #[inline]
    fn put(&mut self, place: usize, entry: (K, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }

    fn rise(&mut self, mut place: usize, entry: (K, u32)) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if entry.0 >= self.entries[parent].0 {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize, entry: (K, u32)) {
        loop {
            let children = ARITY * place + 1;
            let end = (children + ARITY).min(self.entries.len());
            let Some(least) = (children..end).min_by_key(|&child| self.entries[child].0) else {
                break;
            };
            if self.entries[least].0 >= entry.0 {
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
        #[test]
        fn the_least_key_is_first(operations in prop::collection::vec((0u8..4, 0u64..50, 0u32..20), 0..300)) {
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
                let least = (0..20u32).filter_map(|number| model[number as usize].map(|key| (key, number))).min();
                prop_assert_eq!(heap.first(), least);
            }
        }
    }
}
