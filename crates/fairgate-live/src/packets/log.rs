//! Records of packets in a buffer.
//!
//! ```text
//!   arrived  ended  node  length  captured  outcome  marked  padding  bytes of the frame, padded to 8
//!      8       8     4      4        2         1       1        4            up to 128
//! ```
//!
//! A record costs the forwarding thread one copy of two or three cache lines. The numbers are in the byte
//! order of the machine, because they do not leave it.

use fairgate::{DropReason, NodeNumber, Slot, Time};

/// The most bytes of a frame that are noted: Ethernet with two tags, IPv6, and TCP with all its options.
pub(super) const SNAP: usize = 128;

/// The length of what precedes the bytes of the frame.
const HEADER: usize = 32;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has left its tree.
    Sent,
    /// Its tree has dropped it.
    Dropped(DropReason),
}

impl Outcome {
    fn number(self) -> u8 {
        match self {
            Outcome::Sent => 0,
            Outcome::Dropped(reason) => reason as u8 + 1,
        }
    }

    fn of_number(number: u8) -> Outcome {
        match number {
            0 => Outcome::Sent,
            reason => Outcome::Dropped(DropReason::ALL[usize::from(reason) - 1]),
        }
    }
}

/// The records of a direction. None are kept if there is no room.
#[derive(Debug, Default)]
pub(crate) struct Log {
    bytes: Vec<u8>,
    missed: u64,
}

/// The records that were taken out of a log.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) bytes: Vec<u8>,
    /// How many there was no room for.
    pub(super) missed: u64,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'b> {
    /// When the packet came to its tree.
    pub(super) arrived: Time,
    /// When it left it, or was dropped.
    pub(super) ended: Time,
    /// The queue that it was in.
    pub(super) node: NodeNumber,
    /// The length of the frame, bytes.
    pub(super) length: u32,
    pub(super) outcome: Outcome,
    /// Whether the tree marked it with congestion experienced.
    pub(super) is_marked: bool,
    /// The first bytes of the frame, as it arrived.
    pub(super) bytes: &'b [u8],
}

impl Log {
    /// Writes into `empty` from now on, up to its capacity. Returns the records so far.
    pub(super) fn exchange(&mut self, mut empty: Vec<u8>) -> Taken {
        empty.clear();
        Taken {
            bytes: std::mem::replace(&mut self.bytes, empty),
            missed: std::mem::take(&mut self.missed),
        }
    }

    /// Returns whether records are kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Returns the number of bytes in all records.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Notes what became of a packet at `ended`. `frame` is the frame as it arrived.
    #[inline(never)]
    pub(crate) fn note(
        &mut self,
        packet: &Slot,
        node: NodeNumber,
        outcome: Outcome,
        ended: Time,
        frame: &[u8],
    ) {
        let captured = &frame[..frame.len().min(SNAP)];
        if self.bytes.len() + HEADER + SNAP > self.bytes.capacity() {
            self.missed += 1;
            return;
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&packet.enqueued_at.nanos().to_ne_bytes());
        header[8..16].copy_from_slice(&ended.nanos().to_ne_bytes());
        header[16..20].copy_from_slice(&node.raw().to_ne_bytes());
        header[20..24].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
        header[24..26].copy_from_slice(&(captured.len() as u16).to_ne_bytes());
        header[26] = outcome.number();
        header[27] = packet.is_marked().into();
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(captured);
        let padded = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(padded, 0);
    }
}

/// Returns the records in a buffer, in the order in which they were written.
pub(super) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("it has 8 bytes"));
        let half = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("it has 4 bytes"));
        let captured = usize::from(u16::from_ne_bytes([header[24], header[25]]));
        bytes = &rest[captured.next_multiple_of(8)..];
        Some(Record {
            arrived: Time::from_nanos(word(0)),
            ended: Time::from_nanos(word(8)),
            node: NodeNumber::from_raw(half(16)),
            length: half(20),
            outcome: Outcome::of_number(header[26]),
            is_marked: header[27] != 0,
            bytes: &rest[..captured],
        })
    })
}

impl Record<'_> {
    /// Returns how long the packet was in its tree, ns.
    pub(super) fn sojourn(&self) -> u64 {
        self.ended.nanos_since(self.arrived)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fairgate::{Link, Packet};
    use fairgate_config::Spec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns a slot of a packet that arrived at this time.
    pub(in crate::packets) fn slot(arrived: Time) -> Slot {
        let tree = Spec::inline("fifo").unwrap().build(1).unwrap();
        let mut link: Link<()> = Link::new(tree, 1);
        link.enqueue(Packet::of_length(100), (), arrived).unwrap();
        link.dequeue(arrived).packet().unwrap().slot
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            packets in vec(
                (any::<u32>(), any::<u32>(), 0..DropReason::ALL.len(), vec(any::<u8>(), 0..300)),
                0..40,
            ),
            room in 0usize..6_000,
        ) {
            let mut log = Log::default();
            prop_assert!(!log.is_kept());
            log.exchange(Vec::with_capacity(room));
            let capacity = log.bytes.capacity();
            let mut expected = Vec::new();
            let mut missed = 0;
            for (arrived, ended, outcome, frame) in &packets {
                let slot = slot(Time::from_nanos((*arrived).into()));
                let outcome = Outcome::of_number(*outcome as u8);
                let ended = Time::from_nanos((*ended).into());
                let node = NodeNumber::from_raw(*arrived);
                let before = log.len();
                log.note(&slot, node, outcome, ended, frame);
                if log.len() == before {
                    missed += 1;
                    continue;
                }
                expected.push(Record {
                    arrived: slot.enqueued_at,
                    ended,
                    node,
                    length: frame.len() as u32,
                    outcome,
                    is_marked: false,
                    bytes: &frame[..frame.len().min(SNAP)],
                });
            }
            prop_assert_eq!(log.bytes.capacity(), capacity);
            let taken = log.exchange(Vec::new());
            prop_assert_eq!(records(&taken.bytes).collect::<Vec<_>>(), expected);
            prop_assert_eq!(taken.missed, missed);
        }
    }
}
