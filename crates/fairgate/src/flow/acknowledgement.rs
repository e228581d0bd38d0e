//! What a TCP packet acknowledges, and whether a later packet of its flow makes it redundant.
//!
//! TCP's acknowledgements are cumulative: a later one says all that an earlier one said. On a link that is
//! slow in one direction, a queue that drops redundant ones leaves room for others (Høiland-Jørgensen, Täht,
//! Morton 2018; RFC 3449). The rules are those of Linux's `cake_ack_filter` (sch_cake.c). They keep
//! everything that a sender could still learn from: SACK blocks, duplicates (DSACK), newer timestamps, other
//! ECN flags, options that are unknown.

/// The most blocks that a SACK option can have (RFC 2018, section 3).
const MOST_BLOCKS: usize = 4;

/// The SACK blocks of a packet: sequence numbers from the first number on up to the second one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u32, u32); MOST_BLOCKS],
    count: u8,
}

impl SackRanges {
    /// Appends a block. Returns false and does nothing if there are four.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let Some(range) = self.ranges.get_mut(usize::from(self.count)) else {
            return false;
        };
        *range = (start, end);
        self.count += 1;
        true
    }

    /// Returns the blocks in the order of the option.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }

    /// Returns the number of bytes in all blocks.
    fn bytes(&self) -> u32 {
        let bytes = self
            .as_slice()
            .iter()
            .map(|(start, end)| end.wrapping_sub(*start));
        bytes.fold(0, u32::wrapping_add)
    }

    fn cover(&self, (start, end): (u32, u32)) -> bool {
        let covers = |&(from, to): &(u32, u32)| !is_after(from, start) && !is_after(end, to);
        self.as_slice().iter().any(covers)
    }
}

/// The timestamps of a packet (RFC 7323).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the echoed timestamp.
    pub echo: u32,
}

/// The header fields of a TCP packet that a filter of acknowledgements compares. 96 bytes.
///
/// [`Dissection::acknowledgement`](super::Dissection::acknowledgement) reads it from a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The source address; an IPv4 address as in [`FlowKey`](super::FlowKey).
    pub source: [u8; 16],
    /// The destination address.
    pub destination: [u8; 16],
    /// The source port and the destination port.
    pub ports: [u16; 2],
    /// The acknowledgement number.
    pub number: u32,
    /// The timestamps, if it has any.
    pub timestamps: Option<Timestamps>,
    /// The blocks of its SACK option.
    pub sack: SackRanges,
    /// The flags ECE and CWR (RFC 3168), as they are in the header: 0x40 and 0x80.
    pub ecn_flags: u8,
    /// Whether the number is valid and the packet does not open a connection: ACK is set, SYN is not.
    pub is_valid: bool,
    /// Whether it only acknowledges: no data, no flags but ACK, ECE and CWR, and no options but SACK,
    /// timestamps and MD5 signatures.
    pub is_pure: bool,
}

impl Acknowledgement {
    /// Whether both packets are of the same direction of the same connection.
    #[inline]
    pub fn has_flow_of(&self, other: &Acknowledgement) -> bool {
        self.ports == other.ports && self.source == other.source && self.destination == other.destination
    }

    /// Whether the sender of the data learns nothing from this packet if `newer` arrives, which is of the
    /// same flow and was sent later. The flags of ECN are not compared.
    pub fn is_redundant_beside(&self, newer: &Acknowledgement) -> bool {
        let sent = newer.timestamps.unwrap_or_default();
        let is_newer = |own: Timestamps| is_after(own.value, sent.value) || is_after(own.echo, sent.echo);
        if !self.is_pure || self.timestamps.is_some_and(is_newer) || is_after(self.number, newer.number) {
            return false;
        }
        match self.sack_beside(newer) {
            Sack::More => false,
            // With the same number it is a duplicate acknowledgement, which counts for the sender.
            Sack::Same => self.number != newer.number,
            Sack::Less => true,
        }
    }

    fn sack_beside(&self, newer: &Acknowledgement) -> Sack {
        let (own, other) = (self.sack.as_slice(), newer.sack.as_slice());
        // A block below the number reports a duplicate (RFC 2883).
        let is_covered = |block: &(u32, u32)| !is_after(self.number, block.0) && newer.sack.cover(*block);
        if own.is_empty() && other.is_empty() {
            Sack::Same
        } else if own.is_empty() {
            Sack::Less
        } else if !own.iter().all(is_covered) {
            Sack::More
        } else if newer.sack.bytes() > self.sack.bytes() {
            Sack::Less
        } else {
            Sack::Same
        }
    }
}

/// Whether the SACK blocks of a packet say more than those of a newer one.
enum Sack {
    More,
    Same,
    Less,
}

/// Whether `a` is after `b` in the circle of sequence numbers.
#[inline]
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

#[cfg(test)]
#[path = "acknowledgement_tests.rs"]
mod tests;
