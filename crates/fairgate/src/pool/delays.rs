//! A log of the sojourn times of packets at the nodes of a tree, for percentiles by class.
//!
//! A histogram in each node would cost a cache line of its own for each node and packet, and memory for each
//! class that has nothing to send. The log costs 8 bytes for each node that a packet leaves: one cache line
//! for eight of them, whatever the number of classes. The driver takes the log from time to time, and counts
//! it on another thread.

use alloc::vec::Vec;

use super::{PacketId, Pool};
use crate::stats::Statistics;

/// The number by which a pool knows a node. A node gets it with the first packet that leaves it while sojourn
/// times or places are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(u32);

impl NodeNumber {
    /// The node has no number yet.
    pub const NONE: NodeNumber = NodeNumber(0);

    /// Returns the number, for a program that writes it down.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Returns the number that was written down.
    pub const fn from_raw(raw: u32) -> NodeNumber {
        NodeNumber(raw)
    }
}

/// The sojourn time of a packet that has left a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The node.
    pub node: NodeNumber,
    /// The time in units of [`Statistics::SOJOURN_UNIT`] ns, or `u32::MAX` if it is longer (73 minutes).
    pub units: u32,
}

const _: () = assert!(size_of::<Delay>() == 8);

/// What a driver takes out of its pool.
#[derive(Debug, Default)]
pub struct TakenDelays {
    /// The sojourn times in the order in which they ended.
    pub delays: Vec<Delay>,
    /// The number of sojourn times for which the log had no room.
    pub missed: u64,
}

/// The log of a pool. It is kept if it has room for an entry.
#[derive(Debug, Default)]
pub(super) struct DelayLog {
    /// The number of entries for which there is room.
    room: usize,
    entries: Vec<Delay>,
    missed: u64,
}

impl Pool {
    /// Keeps a log of sojourn times in `empty` from now on, up to its capacity. If that is 0, keeps none.
    /// Returns the log so far. This does not allocate.
    pub fn keep_delays(&mut self, mut empty: Vec<Delay>) -> TakenDelays {
        empty.clear();
        let log = &mut self.delays;
        log.room = empty.capacity();
        let taken = TakenDelays {
            delays: core::mem::replace(&mut log.entries, empty),
            missed: core::mem::take(&mut log.missed),
        };
        self.look_at_observers();
        taken
    }

    /// Returns the number of sojourn times in the log.
    #[inline]
    pub fn delays_kept(&self) -> usize {
        self.delays.entries.len()
    }

    /// Returns whether a log is kept.
    #[inline]
    pub fn keeps_delays(&self) -> bool {
        self.delays.room > 0
    }

    /// Returns whether nodes tell what leaves them.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.is_observed
    }

    pub(super) fn look_at_observers(&mut self) {
        self.is_observed = self.keeps_delays() || self.keeps_places();
    }

    /// Notes that a packet has left `node` after `sojourn` ns, and returns it.
    #[inline(never)]
    pub(crate) fn note_departure(
        &mut self,
        node: &mut NodeNumber,
        id: PacketId,
        sojourn: u64,
    ) -> Option<PacketId> {
        self.note_place(node, id);
        if self.keeps_delays() {
            let node = self.number(node);
            let log = &mut self.delays;
            if log.entries.len() == log.room {
                log.missed += 1;
                return Some(id);
            }
            let units = u32::try_from(sojourn / Statistics::SOJOURN_UNIT).unwrap_or(u32::MAX);
            log.entries.push(Delay { node, units });
        }
        Some(id)
    }

    /// Returns the number of a node. A node without a number gets one.
    #[inline]
    pub(super) fn number(&mut self, node: &mut NodeNumber) -> NodeNumber {
        if *node == NodeNumber::NONE {
            self.last_number += 1;
            *node = NodeNumber(self.last_number);
        }
        *node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Discipline, Inspect};
    use crate::packet::Packet;
    use crate::queues::fifo::{self, Fifo};
    use crate::time::Time;

    #[test]
    fn a_full_log_counts_what_it_misses_and_allocates_nothing() {
        let mut pool = Pool::with_capacity(8);
        let mut fifo = Fifo::node(fifo::Config::default()).unwrap();
        let mut pass = |pool: &mut Pool, micros: u64| {
            let id = pool.insert(Packet::of_length(100)).unwrap();
            fifo.enqueue(id, Time::ZERO, pool);
            assert_eq!(fifo.dequeue(Time::from_micros(micros), pool), Some(id));
            pool.release(id);
        };
        pass(&mut pool, 1_000);
        assert!(!pool.keeps_delays() && pool.delays_kept() == 0);
        let room = Vec::with_capacity(3);
        let capacity = room.capacity();
        assert_eq!(pool.keep_delays(room).delays, []);
        for micros in 0..5_000 {
            pass(&mut pool, micros);
        }
        assert_eq!(pool.delays_kept(), capacity);
        let taken = pool.keep_delays(Vec::new());
        assert_eq!(taken.missed, 5_000 - capacity as u64);
        assert_eq!(taken.delays.capacity(), capacity);
        let of_fifo = |&Delay { node, units }: &Delay| (node, units);
        let expected = (0..capacity as u64).map(|micros| (NodeNumber(1), (micros * 1_000 / 1_024) as u32));
        assert!(taken.delays.iter().map(of_fifo).eq(expected));
        pass(&mut pool, 1_000_000);
        assert!(!pool.keeps_delays() && pool.delays_kept() == 0);
        assert_eq!(fifo.number(), NodeNumber(1));
    }
}
