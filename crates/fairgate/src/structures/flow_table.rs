//! Flows by their identity: which of a fixed number of places a flow has, if it has one.
//!
//! Unlike hashing into buckets, no two flows share a place: a flow is known by all 64 bits of its keyed hash. For
//! disciplines that keep state only for flows that are active, of which there are never more than packets in the buffer.
//!
//! Open addressing with linear probing, at most half full, so that a search takes one or two cache lines; a flow that
//! leaves pulls those behind it forward (Knuth, 6.4, algorithm R), so that nothing is ever left to clean up. Who does
//! not know the key and the salt can't aim flows at one spot.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::flow::FlowHash;

/// A slot: a flow's salted hash, never 0 where there is one, and its place.
type Slot = [u64; 2];

const EMPTY: Slot = [0, 0];

/// The identity under which a flow is known here: its hash under the table's salt. Never [`Identity::NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// Of no flow.
    pub(crate) const NONE: Identity = Identity(0);

    /// Bits that the place in the table does not follow from.
    #[inline]
    pub(crate) fn low_bits(self) -> u32 {
        self.0 as u32
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct FlowTable {
    slots: Box<[Slot]>,
    /// Places that no flow has, the one given back last on top.
    free: Vec<u32>,
    /// 64 less the logarithm of the number of slots.
    shift: u32,
    salt: u64,
}

impl FlowTable {
    /// No flow has any of the places 0 to `places - 1`.
    pub(crate) fn new(places: u32, salt: u64) -> FlowTable {
        let slots = (2 * places as usize).next_power_of_two().max(2);
        FlowTable {
            slots: vec![EMPTY; slots].into(),
            free: (0..places).rev().collect(),
            shift: 64 - slots.trailing_zeros(),
            salt,
        }
    }

    /// The identity of a flow. One to one but for a single pair of hashes of all.
    #[inline]
    pub(crate) fn identity(&self, flow: FlowHash) -> Identity {
        Identity(flow.salted(self.salt).max(1))
    }

    /// The place that a flow has.
    #[inline]
    pub(crate) fn find(&self, flow: Identity) -> Option<u32> {
        let mut index = self.home(flow);
        loop {
            let [known, place] = self.slots[index];
            if known == flow.0 {
                return Some(place as u32);
            }
            if known == EMPTY[0] {
                return None;
            }
            index = self.after(index);
        }
    }

    /// Gives a flow that has none a place; `None` if all are taken.
    #[inline]
    pub(crate) fn insert(&mut self, flow: Identity) -> Option<u32> {
        let place = self.free.pop()?;
        self.put(flow, place);
        Some(place)
    }

    /// Gives a flow that has no place the free place `place`. Quick if it is the one that was given back last, or the lowest of
    /// those that never were.
    pub(crate) fn insert_at(&mut self, flow: Identity, place: u32) {
        let at = self.free.iter().rposition(|free| *free == place);
        self.free.remove(at.expect("the place is free"));
        self.put(flow, place);
    }

    #[inline]
    fn put(&mut self, flow: Identity, place: u32) {
        let mut index = self.home(flow);
        while self.slots[index] != EMPTY {
            debug_assert_ne!(self.slots[index][0], flow.0, "a flow has one place");
            index = self.after(index);
        }
        self.slots[index] = [flow.0, place.into()];
    }

    /// Takes its place from a flow. Nothing happens if it has none, or if it is none.
    #[inline]
    pub(crate) fn remove(&mut self, flow: Identity) {
        if flow != Identity::NONE {
            self.take_out(flow);
        }
    }

    #[inline(never)]
    fn take_out(&mut self, flow: Identity) {
        let mut hole = self.home(flow);
        while self.slots[hole][0] != flow.0 {
            if self.slots[hole] == EMPTY {
                return;
            }
            hole = self.after(hole);
        }
        self.free.push(self.slots[hole][1] as u32);
        let mut index = hole;
        loop {
            index = self.after(index);
            let slot = self.slots[index];
            if slot == EMPTY {
                break;
            }
            // It may move into the hole unless its home lies behind that.
            let from_home = index.wrapping_sub(self.home(Identity(slot[0]))) & (self.slots.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.slots.len() - 1);
            if from_home >= from_hole {
                self.slots[hole] = slot;
                hole = index;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// How many places no flow has.
    #[cfg(test)]
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    #[inline]
    fn home(&self, flow: Identity) -> usize {
        (flow.0 >> self.shift) as usize
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        (index + 1) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn flows_that_differ_in_one_bit_are_told_apart() {
        let mut table = FlowTable::new(65, 7);
        for bit in 0..65 {
            let hash = 1u64.checked_shl(bit).unwrap_or(0);
            let flow = table.identity(FlowHash::from_raw(hash));
            assert_eq!(table.find(flow), None, "bit {bit}");
            assert!(table.insert(flow).is_some());
        }
        assert_eq!(table.free(), 0);
    }

    proptest! {
        /// Against the standard library's map; identities close together, so that they meet in one run of slots.
        #[test]
        fn a_table_behaves_like_a_map(
            places in 1u32..9,
            operations in prop::collection::vec((0u32..3, 0u64..12), 0..300),
        ) {
            let mut table = FlowTable::new(places, 1);
            let mut model: HashMap<u64, u32> = HashMap::new();
            let spread = 1 << (table.shift - 1);
            for (operation, number) in operations {
                // Homes from the last slot on, and round to the first ones.
                let flow = Identity(number.wrapping_mul(spread).wrapping_sub(2 * spread).wrapping_add(number) | 1);
                prop_assert_eq!(table.find(flow), model.get(&flow.0).copied());
                if operation == 0 {
                    table.remove(flow);
                    model.remove(&flow.0);
                } else if operation == 1 {
                    let free = (0..places).find(|place| model.values().all(|other| other != place));
                    if let (Some(place), None) = (free, table.find(flow)) {
                        table.insert_at(flow, place);
                        model.insert(flow.0, place);
                    }
                } else if table.find(flow).is_none() {
                    let place = table.insert(flow);
                    prop_assert_eq!(place.is_some(), model.len() < places as usize);
                    if let Some(place) = place {
                        prop_assert!(place < places && model.values().all(|other| *other != place));
                        model.insert(flow.0, place);
                    }
                }
                prop_assert_eq!(table.free(), places - model.len() as u32);
            }
        }
    }
}
