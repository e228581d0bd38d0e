//! What was recorded, and a source that sends recorded packets at their recorded times.

use std::sync::Arc;

/// A packet of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// The time since the flow's first packet, ns. It never decreases.
    pub at: u64,
    /// The payload, bytes.
    pub payload: u32,
}

/// A turn of a recorded conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedTurn {
    /// Whether the client writes, which is the destination of the flow. Otherwise its source writes.
    pub by_client: bool,
    /// The wait after the end of the turn before, ns. For the first turn it counts from the start.
    pub wait: u64,
    /// The bytes written. They are above 0.
    pub bytes: u64,
}

/// The position in a recording.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    packets: Arc<[RecordedPacket]>,
    position: usize,
}

impl Recorded {
    /// Creates a source of at least one packet.
    pub(crate) fn new(packets: Arc<[RecordedPacket]>) -> Recorded {
        assert!(
            !packets.is_empty(),
            "a recording without packets is rejected before"
        );
        Recorded { packets, position: 0 }
    }

    /// Returns the payload of the packet that is due now, and the time until the next one, ns. After the last
    /// packet that is the longest time.
    pub(crate) fn next(&mut self) -> (u32, u64) {
        let current = self.packets[self.position];
        self.position += 1;
        let wait = match self.packets.get(self.position) {
            Some(next) => next.at - current.at,
            None => u64::MAX,
        };
        (current.payload, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_at_their_times_and_once() {
        let packets = [(0, 100), (5, 200), (5, 300), (9, 1)];
        let packets: Vec<RecordedPacket> = packets
            .map(|(at, payload)| RecordedPacket { at, payload })
            .to_vec();
        let mut source = Recorded::new(packets.into());
        let sent: Vec<(u32, u64)> = (0..4).map(|_| source.next()).collect();
        assert_eq!(sent, [(100, 5), (200, 0), (300, 4), (1, u64::MAX)]);
    }
}
