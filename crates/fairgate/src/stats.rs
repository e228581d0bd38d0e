//! What every node counts, and the contract that the counts keep.

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
    pub dropped_by_reason: [u64; DropReason::COUNT],
    /// Packets marked with congestion experienced, here or below.
    pub marked: u64,
    /// How often nothing could be sent although something was queued.
    pub overlimits: u64,
}

impl Statistics {
    /// What is queued now.
    #[inline]
    pub fn backlog(&self) -> Count {
        Count {
            packets: self.enqueued.packets
                - self.dequeued.packets
                - self.dropped.packets
                - self.flushed.packets,
            bytes: self.enqueued.bytes - self.dequeued.bytes - self.dropped.bytes - self.flushed.bytes,
        }
    }

    /// Packets dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped_by_reason[reason as usize]
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
