//! The statistics of a node, and the conservation rule.

use alloc::vec::Vec;
use core::ops::AddAssign;

use crate::balance::{self, Imbalance};
use crate::count::Count;
use crate::packet::DropReason;

/// The number of dropped packets by [`DropReason`].
///
/// ```
/// use fairgate::{DropCounts, DropReason};
/// let mut drops = DropCounts::default();
/// drops.add(DropReason::Aqm);
/// assert_eq!(drops.get(DropReason::Aqm), 1);
/// assert_eq!(drops.iter().collect::<Vec<_>>(), [(DropReason::Aqm, 1)]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::COUNT]);

impl DropCounts {
    /// Counts one more packet dropped for `reason`.
    #[inline]
    pub fn add(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Sets the number of packets dropped for `reason`.
    pub fn set(&mut self, reason: DropReason, packets: u64) {
        self.0[reason as usize] = packets;
    }

    /// Returns the number of packets dropped for `reason`.
    #[inline]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the number of packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the reasons that occurred, each with its number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let counts = DropReason::ALL.iter().copied().zip(self.0);
        counts.filter(|(_, packets)| *packets > 0)
    }

    /// Returns what was counted since `before`, an earlier value of the same counters.
    pub fn since(&self, before: &DropCounts) -> DropCounts {
        DropCounts(core::array::from_fn(|reason| self.0[reason] - before.0[reason]))
    }
}

/// The statistics of one node. At any time between calls `enqueued = dequeued + dropped + flushed + backlog`,
/// in packets and in bytes (conservation).
///
/// The backlog is computed from the other four. The conformance suite compares it with the packets that are
/// really queued. There is no counter for requeues: no packet is ever prepended (ALTQ section 2). A driver
/// that can't send a packet keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// All enqueued packets, including those that were dropped at once.
    pub enqueued: Count,
    /// Dequeued packets.
    pub dequeued: Count,
    /// Packets dropped here or in a child, for any reason except a flush.
    pub dropped: Count,
    /// Packets removed without being sent: flushed, or moved to a discipline that replaced this one.
    pub flushed: Count,
    /// The number of dropped packets by [`DropReason`].
    pub dropped_by_reason: DropCounts,
    /// The number of packets marked with congestion experienced, here or in a child.
    pub marked: u64,
    /// How often nothing could be sent although packets were queued.
    pub overlimits: u64,
    /// The sum of the sojourn times of all dequeued packets, in units of [`Statistics::SOJOURN_UNIT`] ns. The
    /// sojourn time of a packet is the time from its arrival at the root of the tree to its departure from
    /// this node.
    pub sojourn: u64,
}

/// Adds the statistics of another node.
impl AddAssign<&Statistics> for Statistics {
    fn add_assign(&mut self, other: &Statistics) {
        self.enqueued += other.enqueued;
        self.dequeued += other.dequeued;
        self.dropped += other.dropped;
        self.flushed += other.flushed;
        for (own, other) in self.dropped_by_reason.0.iter_mut().zip(other.dropped_by_reason.0) {
            *own += other;
        }
        self.marked += other.marked;
        self.overlimits += other.overlimits;
        self.sojourn += other.sojourn;
    }
}

impl Statistics {
    /// The unit of [`Statistics::sojourn`] in nanoseconds. With this unit a queue of 1,000 packets fills 64
    /// bits in 600 years.
    pub const SOJOURN_UNIT: u64 = 1024;

    /// Returns the mean sojourn time of the dequeued packets in nanoseconds, or `None` if there were none.
    pub fn mean_sojourn(&self) -> Option<f64> {
        let packets = self.dequeued.packets;
        (packets > 0).then(|| self.sojourn as f64 * Statistics::SOJOURN_UNIT as f64 / packets as f64)
    }

    /// Returns what was queued when the statistics were read.
    pub fn backlog(&self) -> Count {
        Count {
            packets: self.enqueued.packets
                - self.dequeued.packets
                - self.dropped.packets
                - self.flushed.packets,
            bytes: self.enqueued.bytes - self.dequeued.bytes - self.dropped.bytes - self.flushed.bytes,
        }
    }

    /// Checks conservation against the packets that are `queued`, and that each drop has a reason. `name` is
    /// whose statistics these are.
    ///
    /// # Errors
    /// Returns an error if the statistics do not add up.
    pub fn check(&self, name: &str, queued: Count) -> Result<(), Imbalance> {
        let parts = [
            ("dequeued", self.dequeued),
            ("dropped", self.dropped),
            ("flushed", self.flushed),
            ("queued", queued),
        ];
        balance::of_counts(name, ("enqueued", self.enqueued), &parts)?;
        let by_reason = self.dropped_by_reason.iter();
        let reasons: Vec<(&str, u64)> = by_reason
            .map(|(reason, packets)| (reason.name(), packets))
            .collect();
        balance::of(name, "packets", ("dropped", self.dropped.packets), &reasons)
    }

    /// Returns what was counted since `before`, which are earlier statistics of the same node.
    pub fn since(&self, before: &Statistics) -> Statistics {
        let less = |now: Count, then: Count| Count {
            packets: now.packets - then.packets,
            bytes: now.bytes - then.bytes,
        };
        Statistics {
            enqueued: less(self.enqueued, before.enqueued),
            dequeued: less(self.dequeued, before.dequeued),
            dropped: less(self.dropped, before.dropped),
            flushed: less(self.flushed, before.flushed),
            dropped_by_reason: self.dropped_by_reason.since(&before.dropped_by_reason),
            marked: self.marked - before.marked,
            overlimits: self.overlimits - before.overlimits,
            sojourn: self.sojourn - before.sojourn,
        }
    }

    /// Returns the number of packets dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped_by_reason.get(reason)
    }
}

/// The counters of a node. [`Statistics`] is the form that users see.
///
/// The counters that change with every packet are first. Packets and bytes are not next to each other: the
/// compiler would combine two neighbours to a vector, and that takes more instructions than two additions.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Counters {
    packets_in: u64,
    packets_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    sojourn: u64,
    dropped: Count,
    flushed: Count,
    dropped_by_reason: DropCounts,
    marked: u64,
    overlimits: u64,
}

impl Counters {
    /// Counts an enqueued packet.
    #[inline]
    pub(crate) fn enqueued(&mut self, length: u32) {
        self.packets_in += 1;
        self.bytes_in += u64::from(length);
    }

    /// Counts a packet that was dequeued after `sojourn` ns.
    #[inline]
    pub(crate) fn dequeued(&mut self, length: u32, sojourn: u64) {
        self.packets_out += 1;
        self.bytes_out += u64::from(length);
        self.sojourn += sojourn / Statistics::SOJOURN_UNIT;
    }

    /// Counts a packet that was given back.
    pub(crate) fn returned(&mut self, length: u32, reason: DropReason) {
        if reason == DropReason::Flushed {
            self.flushed.add(length);
        } else {
            self.dropped.add(length);
            self.dropped_by_reason.add(reason);
        }
    }

    /// Counts packets that were moved to another discipline.
    pub(crate) fn moved(&mut self, count: Count) {
        self.flushed.packets += count.packets;
        self.flushed.bytes += count.bytes;
    }

    /// Counts packets that came in together, within a class.
    pub(crate) fn got(&mut self, count: Count) {
        self.packets_in += count.packets;
        self.bytes_in += count.bytes;
    }

    /// Goes on from the statistics of another node.
    pub(crate) fn continue_from(&mut self, statistics: &Statistics) {
        *self = Counters {
            packets_in: statistics.enqueued.packets,
            packets_out: statistics.dequeued.packets,
            bytes_in: statistics.enqueued.bytes,
            bytes_out: statistics.dequeued.bytes,
            sojourn: statistics.sojourn,
            dropped: statistics.dropped,
            flushed: statistics.flushed,
            dropped_by_reason: statistics.dropped_by_reason,
            marked: statistics.marked,
            overlimits: statistics.overlimits,
        };
    }

    /// Counts marked packets.
    pub(crate) fn marked(&mut self, packets: u32) {
        self.marked += u64::from(packets);
    }

    /// Counts a dequeue that returned nothing.
    pub(crate) fn sent_nothing(&mut self) {
        self.overlimits += u64::from(!self.is_empty());
    }

    /// Returns the current backlog.
    #[inline]
    pub(crate) fn backlog(&self) -> Count {
        Count {
            packets: self.packets_in - self.packets_out - self.dropped.packets - self.flushed.packets,
            bytes: self.bytes_in - self.bytes_out - self.dropped.bytes - self.flushed.bytes,
        }
    }

    /// Returns whether the backlog is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.packets_in - self.packets_out == self.dropped.packets + self.flushed.packets
    }

    /// Returns the counters as statistics.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            enqueued: Count {
                packets: self.packets_in,
                bytes: self.bytes_in,
            },
            dequeued: Count {
                packets: self.packets_out,
                bytes: self.bytes_out,
            },
            dropped: self.dropped,
            flushed: self.flushed,
            dropped_by_reason: self.dropped_by_reason,
            marked: self.marked,
            overlimits: self.overlimits,
            sojourn: self.sojourn,
        }
    }
}

/// Returns Jain's fairness index of n shares: `(sum x)^2 / (n sum x^2)` (Jain, Chiu and Hawe 1984). It is 1
/// if all shares are equal, and 1/n if one has everything. It is also 1 if all shares are 0.
///
/// ```
/// assert_eq!(fairgate::jain_index([5.0, 5.0, 5.0]), 1.0);
/// assert_eq!(fairgate::jain_index([5.0, 0.0, 0.0, 0.0]), 0.25);
/// ```
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (count * squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_of_known_shares() {
        assert_eq!(jain_index([0.0, 0.0]), 1.0);
        assert!((jain_index([1.0, 2.0, 3.0]) - 36.0 / (3.0 * 14.0)).abs() < 1e-12);
    }
}
