//! The order in which segments of one super-packet are neighbours, so that they can be joined again.
//!
//! Flows take turns in a fair queue, so their segments leave one at a time. There is a list for each
//! super-packet, found by a small hash table. The time is in proportion to the number of frames, whatever
//! the number of flows.

use arrayvec::ArrayVec;

use crate::sys::batch::BATCH;

/// The places of the table: twice as many as there can be lists.
const PLACES: usize = 2 * BATCH;
/// The end of a list.
const END: u16 = u16::MAX;

const _: () = assert!(PLACES.is_power_of_two() && BATCH <= END as usize);

/// A list of positions with the same key.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    /// The stretch that it belongs to. Lists of other stretches count as none.
    stretch: u32,
    key: u32,
    last: u16,
}

/// Finds the order. The memory is allocated once.
#[derive(Debug)]
pub(crate) struct Gatherer {
    lists: Box<[List; PLACES]>,
    /// The number of the current stretch. A frame without a key ends a stretch.
    stretch: u32,
    /// The first position of each list, in the order of their first positions.
    heads: ArrayVec<u16, BATCH>,
    /// The position behind each one in its list.
    next: [u16; BATCH],
    order: ArrayVec<u16, BATCH>,
}

impl Gatherer {
    pub(crate) fn new() -> Gatherer {
        Gatherer {
            lists: Box::new([List::default(); PLACES]),
            stretch: 0,
            heads: ArrayVec::new(),
            next: [END; BATCH],
            order: ArrayVec::new(),
        }
    }

    /// Returns the positions of all frames, of which there are at most [`BATCH`], in an order in which those
    /// with equal keys follow the first of them. A frame without a key stays in its place, and nothing moves
    /// past it. `None` if nothing has to move.
    pub(crate) fn order(&mut self, keys: impl Iterator<Item = Option<u32>>) -> Option<&[u16]> {
        self.begin_stretch();
        self.heads.clear();
        let mut moves = false;
        for (position, key) in (0..).zip(keys) {
            self.next[usize::from(position)] = END;
            let Some(key) = key else {
                self.heads.push(position);
                self.begin_stretch();
                continue;
            };
            match self.append(key, position) {
                None => self.heads.push(position),
                Some(before) => moves |= before + 1 != position,
            }
        }
        if !moves {
            return None;
        }
        self.order.clear();
        for head in &self.heads {
            let mut at = *head;
            while at != END {
                self.order.push(at);
                at = self.next[usize::from(at)];
            }
        }
        Some(&self.order)
    }

    fn begin_stretch(&mut self) {
        self.stretch = self.stretch.wrapping_add(1);
        if self.stretch == 0 {
            // Lists of 2^32 stretches ago must not count as new ones.
            *self.lists = [List::default(); PLACES];
            self.stretch = 1;
        }
    }

    /// Appends a position to the list of `key`. Returns the one before it, if the list is not new.
    #[inline]
    fn append(&mut self, key: u32, position: u16) -> Option<u16> {
        // Super-packets have consecutive numbers, so these spread well.
        let mut place = key as usize % PLACES;
        loop {
            let list = &mut self.lists[place];
            if list.stretch != self.stretch {
                *list = List {
                    stretch: self.stretch,
                    key,
                    last: position,
                };
                return None;
            }
            if list.key == key {
                let before = std::mem::replace(&mut list.last, position);
                self.next[usize::from(before)] = position;
                return Some(before);
            }
            place = (place + 1) % PLACES;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Every position is there once. Frames keep their order within a key, and frames without a key keep
        /// their place. Between two of these, equal keys are neighbours, and keys are in the order of their
        /// first frames. An earlier use changes nothing, and neither do keys that share a place of the table.
        #[test]
        fn gathered_frames_keep_their_order(
            keys in proptest::collection::vec(
                prop_oneof![1 => Just(None), 5 => (0u32..4).prop_map(Some), 5 => (0u32..99).prop_map(Some)],
                0..=BATCH,
            ),
            apart in prop_oneof![Just(1), Just(PLACES as u32), Just(7)],
            before in proptest::option::of(u32::MAX - 3..=u32::MAX),
        ) {
            let spread = |key: &Option<u32>| key.map(|key| key.wrapping_mul(apart));
            let keys: Vec<Option<u32>> = keys.iter().map(spread).collect();
            let mut gatherer = Gatherer::new();
            gatherer.order(keys.iter().rev().copied());
            if let Some(before) = before {
                gatherer.stretch = before;
            }
            let unchanged: Vec<u16> = (0..keys.len() as u16).collect();
            let order = gatherer.order(keys.iter().copied()).map(<[u16]>::to_vec);
            prop_assert_ne!(order.as_ref(), Some(&unchanged));
            let order = order.unwrap_or(unchanged.clone());
            let mut sorted = order.clone();
            sorted.sort();
            prop_assert_eq!(sorted, unchanged);
            let key = |position: &u16| keys[usize::from(*position)];
            for (place, position) in order.iter().enumerate() {
                if key(position).is_none() {
                    prop_assert_eq!(usize::from(*position), place);
                }
            }
            for stretch in order.split(|position| key(position).is_none()) {
                let mut runs: Vec<&[u16]> = stretch.chunk_by(|a, b| key(a) == key(b)).collect();
                let distinct: BTreeSet<_> = stretch.iter().map(key).collect();
                prop_assert_eq!(runs.len(), distinct.len());
                prop_assert!(runs.iter().all(|run| run.is_sorted()));
                let firsts = runs.iter_mut().map(|run| run[0]);
                prop_assert!(firsts.is_sorted());
            }
        }
    }
}
