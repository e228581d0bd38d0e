//! What every node counts, and the contract that the counts keep.

use core::iter::Sum;
use core::ops::AddAssign;

use alloc::vec::Vec;

use crate::balance::{self, Imbalance};
use crate::packet::DropReason;

/// Packets and the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Count {
    /// One more packet.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl AddAssign for Count {
    #[inline]
    fn add_assign(&mut self, other: Count) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |mut sum, count| {
            sum += count;
            sum
        })
    }
}

/// Packets dropped, by [`DropReason`].
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

    /// Packets dropped for `reason`.
    #[inline]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred, each with its packets.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let counts = DropReason::ALL.iter().copied().zip(self.0);
        counts.filter(|(_, packets)| *packets > 0)
    }

    /// What was counted since the same counters were `before`.
    pub fn since(&self, before: &DropCounts) -> DropCounts {
        DropCounts(core::array::from_fn(|reason| self.0[reason] - before.0[reason]))
    }
}

/// The ledger of one node. Conservation: at any time between calls
/// `enqueued = dequeued + dropped + flushed + backlog`, in packets and in bytes.
///
/// The backlog follows from the other four. The conformance suite compares it with the packets really there.
/// There is no count of requeues: nobody prepends (ALTQ section 2), a driver that can't send keeps the packet itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Handed in, whatever became of them.
    pub enqueued: Count,
    /// Handed out to be sent.
    pub dequeued: Count,
    /// Dropped here or below, for any reason but a flush.
    pub dropped: Count,
    /// Taken out without being sent: by a flush, or moved to a discipline that replaced this one.
    pub flushed: Count,
    /// Packets dropped, by [`DropReason`].
    pub dropped_by_reason: DropCounts,
    /// Packets marked with congestion experienced, here or below.
    pub marked: u64,
    /// How often nothing could be sent although something was queued.
    pub overlimits: u64,
    /// The sojourn times of all packets handed out, summed, in units of [`Statistics::SOJOURN_UNIT`] ns. A packet's
    /// sojourn time here is from its arrival at the root of the tree to its departure from this node.
    pub sojourn: u64,
}

impl Statistics {
    /// Nanoseconds of a unit of [`Statistics::sojourn`]: a queue of 1,000 packets fills 64 bits in 600 years.
    pub const SOJOURN_UNIT: u64 = 1024;

    /// Mean sojourn time of the packets handed out, ns; none if there were none.
    pub fn mean_sojourn(&self) -> Option<f64> {
        let packets = self.dequeued.packets;
        (packets > 0).then(|| self.sojourn as f64 * Statistics::SOJOURN_UNIT as f64 / packets as f64)
    }

    /// What was queued when the books were read.
    pub fn backlog(&self) -> Count {
        Count {
            packets: self.enqueued.packets
                - self.dequeued.packets
                - self.dropped.packets
                - self.flushed.packets,
            bytes: self.enqueued.bytes - self.dequeued.bytes - self.dropped.bytes - self.flushed.bytes,
        }
    }

    /// Checks conservation against what is `queued`, and that reasons account for every drop. `place` says
    /// whose books these are.
    ///
    /// # Errors
    /// If the books do not add up.
    pub fn check(&self, place: &str, queued: Count) -> Result<(), Imbalance> {
        let parts = [
            ("dequeued", self.dequeued),
            ("dropped", self.dropped),
            ("flushed", self.flushed),
            ("queued", queued),
        ];
        balance::of_counts(place, ("enqueued", self.enqueued), &parts)?;
        let by_reason = self.dropped_by_reason.iter();
        let reasons: Vec<(&str, u64)> = by_reason
            .map(|(reason, packets)| (reason.name(), packets))
            .collect();
        balance::of(place, "packets", ("dropped", self.dropped.packets), &reasons)
    }

    /// What was counted since the same books said `before`.
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

    /// Packets dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped_by_reason.get(reason)
    }
}

/// Where a node counts; [`Statistics`] is how it is shown.
///
/// What every packet changes comes first. Packets and bytes lie apart: of neighbours the compiler makes one vector, and
/// putting that together takes more instructions than two additions.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Ledger {
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

impl Ledger {
    /// A packet was handed in.
    #[inline]
    pub(crate) fn enqueued(&mut self, length: u32) {
        self.packets_in += 1;
        self.bytes_in += u64::from(length);
    }

    /// A packet was handed out to be sent after `sojourn` ns.
    #[inline]
    pub(crate) fn dequeued(&mut self, length: u32, sojourn: u64) {
        self.packets_out += 1;
        self.bytes_out += u64::from(length);
        self.sojourn += sojourn / Statistics::SOJOURN_UNIT;
    }

    /// A packet was given back.
    pub(crate) fn returned(&mut self, length: u32, reason: DropReason) {
        if reason == DropReason::Flushed {
            self.flushed.add(length);
        } else {
            self.dropped.add(length);
            self.dropped_by_reason.add(reason);
        }
    }

    /// Packets were moved away.
    pub(crate) fn moved(&mut self, count: Count) {
        self.flushed.packets += count.packets;
        self.flushed.bytes += count.bytes;
    }

    /// Packets were marked.
    pub(crate) fn marked(&mut self, packets: u32) {
        self.marked += u64::from(packets);
    }

    /// Nothing could be sent.
    pub(crate) fn sent_nothing(&mut self) {
        self.overlimits += u64::from(self.backlog().packets > 0);
    }

    /// What is queued now.
    #[inline]
    pub(crate) fn backlog(&self) -> Count {
        Count {
            packets: self.packets_in - self.packets_out - self.dropped.packets - self.flushed.packets,
            bytes: self.bytes_in - self.bytes_out - self.dropped.bytes - self.flushed.bytes,
        }
    }

    /// All of it.
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

/// Jain's fairness index of what each of n got: `(sum x)^2 / (n sum x^2)`, 1 if all got the same, 1/n if one got
/// everything (Jain, Chiu and Hawe 1984). 1 if nobody got anything.
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
