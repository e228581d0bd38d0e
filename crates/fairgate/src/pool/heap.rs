//! A heap of packets by time, linked through their slots.
//!
//! It is a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986): a push takes constant time, a pop
//! O(log n) amortised, and nothing is allocated. The packets of a heap are in no queue, so the links of their
//! slots are free: `previous` is a packet's first child, `next` its next sibling, `stamp` its time in
//! nanoseconds, and `next_length` its number. Of packets with equal times the one that was pushed first comes
//! first.

use super::{PacketId, Pool};
use crate::time::Time;

/// No packet.
const NONE: u32 = u32::MAX;

/// The heap. All calls must pass the same pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketHeap {
    root: u32,
    packets: u32,
    /// The number of the next packet. It wraps.
    numbers: u32,
}

impl PacketHeap {
    pub(crate) const fn new() -> PacketHeap {
        PacketHeap {
            root: NONE,
            packets: 0,
            numbers: 0,
        }
    }

    /// Inserts a packet that is in no queue.
    #[inline]
    pub(crate) fn push(&mut self, id: PacketId, time: Time, pool: &mut Pool) {
        let slot = &mut pool[id];
        slot.stamp = time.nanos();
        slot.next_length = self.numbers;
        slot.previous = NONE;
        slot.next = NONE;
        self.numbers = self.numbers.wrapping_add(1);
        self.packets += 1;
        self.root = match self.root {
            NONE => id.0,
            root => meld(root, id.0, pool),
        };
    }

    /// Returns the first packet and its time.
    #[inline]
    pub(crate) fn first(&self, pool: &Pool) -> Option<(PacketId, Time)> {
        (self.root != NONE).then(|| {
            let id = PacketId(self.root);
            (id, Time::from_nanos(pool[id].stamp))
        })
    }

    /// Removes and returns the first packet. Its `stamp` is set to 0.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let (id, _) = self.first(pool)?;
        self.packets -= 1;
        let slot = &mut pool[id];
        slot.stamp = 0;
        let children = slot.previous;
        self.root = meld_all(children, pool);
        Some(id)
    }

    /// Returns the number of packets.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.packets
    }
}

/// Joins two heaps. Returns the root of both. Its `next` is unchanged.
#[inline]
fn meld(one: u32, other: u32, pool: &mut Pool) -> u32 {
    let (first, second) = match is_before(other, one, pool) {
        true => (other, one),
        false => (one, other),
    };
    let children = core::mem::replace(&mut pool[PacketId(first)].previous, second);
    pool[PacketId(second)].next = children;
    first
}

#[inline]
fn is_before(one: u32, other: u32, pool: &Pool) -> bool {
    let (one, other) = (&pool[PacketId(one)], &pool[PacketId(other)]);
    let is_older = (one.next_length.wrapping_sub(other.next_length) as i32) < 0;
    one.stamp < other.stamp || one.stamp == other.stamp && is_older
}

/// Joins a list of heaps, linked by `next`: first in pairs, then one after the other from the last to the
/// first. Returns the root of all.
fn meld_all(mut list: u32, pool: &mut Pool) -> u32 {
    let mut pairs = NONE;
    while list != NONE {
        let one = list;
        let other = pool[PacketId(one)].next;
        let root = match other {
            NONE => {
                list = NONE;
                one
            }
            _ => {
                list = pool[PacketId(other)].next;
                meld(one, other, pool)
            }
        };
        pool[PacketId(root)].next = pairs;
        pairs = root;
    }
    let mut root = NONE;
    while pairs != NONE {
        let pair = pairs;
        pairs = core::mem::replace(&mut pool[PacketId(pair)].next, NONE);
        root = match root {
            NONE => pair,
            root => meld(root, pair, pool),
        };
    }
    if root != NONE {
        pool[PacketId(root)].next = NONE;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        /// Compares the heap with an ordered set. Many times are equal.
        #[test]
        fn packets_leave_by_time_and_then_in_order(
            operations in prop::collection::vec((any::<bool>(), 0u64..30), 0..400),
        ) {
            let mut pool = Pool::with_capacity(400);
            let mut heap = PacketHeap::new();
            heap.numbers = u32::MAX - 50;
            let mut model = BTreeSet::new();
            for (number, (is_push, time)) in operations.into_iter().enumerate() {
                if is_push {
                    let packet = Packet { cookie: number as u64, ..Packet::of_length(1) };
                    let id = pool.insert(packet).expect("400 slots");
                    heap.push(id, Time::from_nanos(time), &mut pool);
                    model.insert((time, number as u64));
                } else {
                    let popped = heap.pop(&mut pool).map(|id| {
                        assert_eq!(pool[id].stamp, 0);
                        pool.release(id).cookie
                    });
                    prop_assert_eq!(popped, model.pop_first().map(|(_, number)| number));
                }
                prop_assert_eq!(heap.len() as usize, model.len());
                let first = heap.first(&pool).map(|(id, time)| (time.nanos(), pool[id].cookie));
                prop_assert_eq!(first, model.first().copied());
            }
        }
    }
}
