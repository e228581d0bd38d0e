//! The store of the packets that RED accepts: its own fifo or an inner discipline. These are two types, so
//! that the common case has no branch.

use alloc::boxed::Box;

use crate::count::Count;
use crate::discipline::{Discipline, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::time::Time;

/// The largest backlog of RED's own fifo.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(super) bytes: u64,
    pub(super) packets: u32,
}

/// Holds the packets.
pub trait Store: Send + 'static {
    /// Checks whether the store can apply these limits.
    fn check(limits: Limits) -> Result<(), ConfigError>;

    /// The backlog, bytes.
    fn bytes(&self) -> u64;

    /// The backlog.
    fn count(&self) -> Count;

    /// Enqueues a packet that the average accepted, if there is room.
    fn enqueue(&mut self, id: PacketId, limits: Limits, now: Time, pool: &mut Pool) -> Verdict;

    /// The next packet.
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId>;

    /// Whether packets are queued after a dequeue returned none.
    fn holds_back(&self) -> bool {
        false
    }

    /// The packet that the next dequeue will certainly return.
    fn first(&self) -> Option<PacketId>;

    /// Moves all packets to `into`.
    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue);

    /// Drops the newest packets that are over the limits.
    fn keep(&mut self, limits: Limits, pool: &mut Pool);

    /// The inner discipline.
    fn inner(&self) -> Option<&dyn Discipline> {
        None
    }

    /// The inner discipline, mutable.
    fn inner_mut(&mut self) -> Option<&mut Box<dyn Discipline>> {
        None
    }
}

/// RED's own fifo.
impl Store for PacketQueue {
    fn check(_limits: Limits) -> Result<(), ConfigError> {
        Ok(())
    }

    #[inline]
    fn bytes(&self) -> u64 {
        PacketQueue::bytes(self)
    }

    fn count(&self) -> Count {
        PacketQueue::count(self)
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, limits: Limits, _now: Time, pool: &mut Pool) -> Verdict {
        let bytes = PacketQueue::bytes(self) + u64::from(pool[id].length);
        if bytes > limits.bytes || self.len() >= limits.packets {
            pool.give_back(id, DropReason::QueueLimit);
            return Verdict::Dropped;
        }
        self.push_back(id, pool);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.pop_front(pool)
    }

    #[inline]
    fn first(&self) -> Option<PacketId> {
        self.front()
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.append_to(into, pool);
    }

    fn keep(&mut self, limits: Limits, pool: &mut Pool) {
        while PacketQueue::bytes(self) > limits.bytes || self.len() > limits.packets {
            let newest = self.pop_back(pool).expect("a queue over its limit is not empty");
            pool.give_back(newest, DropReason::Reconfigured);
        }
    }
}

/// An inner discipline, which has its own limits and its own drops.
impl Store for Box<dyn Discipline> {
    fn check(limits: Limits) -> Result<(), ConfigError> {
        if limits.packets == u32::MAX {
            return Ok(());
        }
        Err(ConfigError::conflict(
            "limit_packets",
            limits.packets,
            "left out where there is an inner discipline",
            "set the limits of the inner discipline instead",
        ))
    }

    fn bytes(&self) -> u64 {
        self.backlog().bytes
    }

    fn count(&self) -> Count {
        self.backlog()
    }

    fn enqueue(&mut self, id: PacketId, _limits: Limits, now: Time, pool: &mut Pool) -> Verdict {
        self.as_mut().enqueue(id, now, pool)
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.as_mut().dequeue(now, pool)
    }

    fn holds_back(&self) -> bool {
        self.backlog().packets > 0
    }

    fn first(&self) -> Option<PacketId> {
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.as_mut().drain(pool, into);
    }

    fn keep(&mut self, _limits: Limits, _pool: &mut Pool) {}

    fn inner(&self) -> Option<&dyn Discipline> {
        Some(self.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut Box<dyn Discipline>> {
        Some(self)
    }
}
