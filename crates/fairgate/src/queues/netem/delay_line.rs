//! The packets that are on their way, by the time at which they arrive (Linux: `tfifo`).
//!
//! Most packets arrive in the order in which they were sent. They are in a queue. A packet that overtakes the
//! last one of the queue is in a heap. Of packets with equal times, those of the queue go first.

use crate::pool::{PacketHeap, PacketId, PacketQueue, Pool};
use crate::time::Time;

/// The delay line. A packet's time is in `stamp`, which is set to 0 when the packet leaves.
#[derive(Debug)]
pub(super) struct DelayLine {
    in_order: PacketQueue,
    overtaking: PacketHeap,
    /// The latest time of all packets in the line.
    latest: Time,
}

impl DelayLine {
    pub(super) const fn new() -> DelayLine {
        DelayLine {
            in_order: PacketQueue::new(),
            overtaking: PacketHeap::new(),
            latest: Time::ZERO,
        }
    }

    /// Lets a packet arrive at `time`.
    #[inline]
    pub(super) fn push(&mut self, id: PacketId, time: Time, pool: &mut Pool) {
        self.latest = match self.len() {
            0 => time,
            _ => self.latest.max(time),
        };
        let last = self.in_order.back();
        if last.is_some_and(|last| time.nanos() < pool[last].stamp) {
            self.overtaking.push(id, time, pool);
        } else {
            pool[id].stamp = time.nanos();
            self.in_order.push_back(id, pool);
        }
    }

    /// Returns the next packet and its time.
    #[inline]
    pub(super) fn first(&self, pool: &Pool) -> Option<(PacketId, Time)> {
        let in_order = self.in_order.front();
        let in_order = in_order.map(|id| (id, Time::from_nanos(pool[id].stamp)));
        match (in_order, self.overtaking.first(pool)) {
            (Some(first), Some(overtaking)) if overtaking.1 < first.1 => Some(overtaking),
            (Some(first), _) => Some(first),
            (None, overtaking) => overtaking,
        }
    }

    /// Removes and returns the next packet.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let (first, _) = self.first(pool)?;
        if self.in_order.front() == Some(first) {
            let _ = self.in_order.pop_front(pool);
            pool[first].stamp = 0;
            return Some(first);
        }
        self.overtaking.pop(pool)
    }

    /// Returns the time of the last packet to arrive, if there is any.
    #[inline]
    pub(super) fn latest(&self) -> Option<Time> {
        (self.len() > 0).then_some(self.latest)
    }

    /// Returns the number of packets.
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.in_order.len() + self.overtaking.len()
    }

    /// Keeps the first `limit` packets. Returns the others.
    pub(super) fn truncate(&mut self, limit: u32, pool: &mut Pool) -> PacketQueue {
        let mut rest = PacketQueue::new();
        if self.len() <= limit {
            return rest;
        }
        let mut kept = DelayLine::new();
        while let Some((first, time)) = self.first(pool) {
            let _ = self.pop(pool);
            if kept.len() < limit {
                kept.push(first, time, pool);
            } else {
                rest.push_back(first, pool);
            }
        }
        *self = kept;
        rest
    }
}
