//! A hash table of flows: maps a flow's identity to one of a fixed number of positions.
//!
//! Two flows never share a position, unlike flows in hash buckets. A flow is identified by all 64 bits of its
//! keyed hash. The table is meant for disciplines that keep state only for active flows. There are never more
//! of them than packets in the buffer.
//!
//! The table uses open addressing with linear probing and is at most half full, so a search reads one or two
//! cache lines. When a flow is removed, the flows behind it move forward (Knuth, 6.4, algorithm R), so there
//! are no tombstones. An attacker who does not know the key and the salt can't direct flows to one part of
//! the table.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::flow::FlowHash;

/// A slot of the table: a flow's salted hash, which is never 0 for a flow, and its position.
type Slot = [u64; 2];

const EMPTY: Slot = [0, 0];

/// The identity of a flow in this table: its hash under the table's salt. It is never [`Identity::NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// The identity of no flow.
    pub(crate) const NONE: Identity = Identity(0);

    /// Returns bits of the identity that do not determine the slot in the table.
    #[inline]
    pub(crate) fn low_bits(self) -> u32 {
        self.0 as u32
    }
}

/// A table of flows.
#[derive(Debug)]
pub(crate) struct FlowTable {
    slots: Box<[Slot]>,
    /// The free positions. The one that was returned last is at the end.
    free: Vec<u32>,
    /// 64 minus the base-2 logarithm of the number of slots.
    shift: u32,
    salt: u64,
}

impl FlowTable {
    /// Returns an empty table. The positions 0 to `positions - 1` are free.
    pub(crate) fn new(positions: u32, salt: u64) -> FlowTable {
        let slots = (2 * positions as usize).next_power_of_two().max(2);
        FlowTable {
            slots: vec![EMPTY; slots].into(),
            free: (0..positions).rev().collect(),
            shift: 64 - slots.trailing_zeros(),
            salt,
        }
    }

    /// Returns the identity of a flow. Different hashes give different identities, except for a single pair
    /// of hashes.
    #[inline]
    pub(crate) fn identity(&self, flow: FlowHash) -> Identity {
        Identity(flow.salted(self.salt).max(1))
    }

    /// Returns the position of a flow, if it has one.
    #[inline]
    pub(crate) fn find(&self, flow: Identity) -> Option<u32> {
        let mut index = self.home(flow);
        loop {
            let [known, position] = self.slots[index];
            if known == flow.0 {
                return Some(position as u32);
            }
            if known == EMPTY[0] {
                return None;
            }
            index = self.after(index);
        }
    }

    /// Assigns a position to a flow that has none. Returns `None` if no position is free.
    #[inline]
    pub(crate) fn insert(&mut self, flow: Identity) -> Option<u32> {
        let position = self.free.pop()?;
        self.put(flow, position);
        Some(position)
    }

    /// Assigns the free position `position` to a flow that has none. This is fast for the position that was
    /// returned last, and for the lowest position that was never used.
    pub(crate) fn insert_at(&mut self, flow: Identity, position: u32) {
        let at = self.free.iter().rposition(|free| *free == position);
        self.free.remove(at.expect("the position is free"));
        self.put(flow, position);
    }

    #[inline]
    fn put(&mut self, flow: Identity, position: u32) {
        let mut index = self.home(flow);
        while self.slots[index] != EMPTY {
            debug_assert_ne!(self.slots[index][0], flow.0, "a flow has one position");
            index = self.after(index);
        }
        self.slots[index] = [flow.0, position.into()];
    }

    /// Removes a flow and frees its position. Does nothing if the flow has none, or if the identity is
    /// `NONE`.
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
            // The flow may move into the hole unless its home slot is behind the hole.
            let from_home = index.wrapping_sub(self.home(Identity(slot[0]))) & (self.slots.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.slots.len() - 1);
            if from_home >= from_hole {
                self.slots[hole] = slot;
                hole = index;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// The number of free positions.
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
    fn flows_that_differ_in_one_bit_are_distinguished() {
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
        /// Compares the table with the standard library's map. The identities are close together, so that
        /// they share runs of slots.
        #[test]
        fn a_table_behaves_like_a_map(
            positions in 1u32..9,
            operations in prop::collection::vec((0u32..3, 0u64..12), 0..300),
        ) {
            let mut table = FlowTable::new(positions, 1);
            let mut model: HashMap<u64, u32> = HashMap::new();
            let spread = 1 << (table.shift - 1);
            for (operation, number) in operations {
                // The home slots start with the last slot and wrap to the first ones.
                let spaced = number.wrapping_mul(spread).wrapping_sub(2 * spread);
                let flow = Identity(spaced.wrapping_add(number) | 1);
                prop_assert_eq!(table.find(flow), model.get(&flow.0).copied());
                if operation == 0 {
                    table.remove(flow);
                    model.remove(&flow.0);
                } else if operation == 1 {
                    let free = (0..positions).find(|position| model.values().all(|other| other != position));
                    if let (Some(position), None) = (free, table.find(flow)) {
                        table.insert_at(flow, position);
                        model.insert(flow.0, position);
                    }
                } else if table.find(flow).is_none() {
                    let position = table.insert(flow);
                    prop_assert_eq!(position.is_some(), model.len() < positions as usize);
                    if let Some(position) = position {
                        prop_assert!(position < positions && model.values().all(|other| *other != position));
                        model.insert(flow.0, position);
                    }
                }
                prop_assert_eq!(table.free(), positions - model.len() as u32);
            }
        }
    }
}
