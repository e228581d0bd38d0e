//! The limits of a queue under AQM, in packets, bytes or both.

use crate::packet::DropReason;
use crate::pool::{PacketQueue, Pool};
use crate::registry::{Bound, Lens, Longest, Parameter, Unit};

use super::POSITIVE;

/// The largest backlog. A packet fits if `packets < limit` and `bytes + length <= limit`, as in `fifo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    packets: u32,
    bytes: u64,
}

impl Limits {
    /// No limit in bytes is `None`.
    pub(super) fn new(packets: u32, bytes: Option<u32>) -> Limits {
        Limits {
            packets,
            bytes: bytes.map_or(u64::MAX, u64::from),
        }
    }

    /// Whether a packet fits into the queue.
    #[inline]
    pub(super) fn allow(&self, queue: &PacketQueue, length: u32) -> bool {
        queue.len() < self.packets && queue.bytes() + u64::from(length) <= self.bytes
    }

    /// Whether so much is queued as a third of a limit.
    pub(super) fn a_third_is_reached(&self, queue: &PacketQueue) -> bool {
        queue.len() >= self.packets / 3 || queue.bytes() >= self.bytes / 3
    }

    /// Drops the oldest packets until the rest is within the limits, as Linux does after a change.
    pub(super) fn enforce(&self, queue: &mut PacketQueue, pool: &mut Pool) {
        while queue.len() > self.packets || queue.bytes() > self.bytes {
            let oldest = queue
                .pop_front(pool)
                .expect("a queue over its limits is not empty");
            pool.give_back(oldest, DropReason::Reconfigured);
        }
    }
}

pub(super) const fn limit_in_packets<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "The largest backlog in packets.";
    Parameter::new("limit", Unit::Count("packets"), POSITIVE, doc, field)
}

pub(super) const fn limit_in_bytes<S>(longest: Bound<S>, field: Lens<S>) -> Parameter<S> {
    let doc = "The largest backlog in bytes.";
    Parameter::bounding(
        longest,
        Parameter::new("limit_bytes", Unit::Bytes, POSITIVE, doc, field),
    )
}

/// Returns the longest packet that a limit in bytes allows.
pub(super) fn longest(bytes: Option<u32>) -> Option<Longest> {
    bytes.map(|bytes| Longest::Length(bytes.into()))
}
