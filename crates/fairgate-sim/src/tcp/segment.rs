//! Segments between the two ends of a connection: a TCP header with the options that Linux uses, without
//! payload bytes.
//!
//! Sequence numbers have 64 bits and never wrap. In each direction the SYN has number 0 and the first byte
//! number 1.

use fairgate::Ecn;

use super::accurate_ecn::AccurateEcn;

/// The maximum number of SACK blocks in a segment: 40 bytes of options minus 12 for timestamps hold three.
pub const MAX_SACK_BLOCKS: usize = 3;

/// The length of an IPv4 header without options, bytes.
const IP_HEADER: u32 = 20;
/// The length of a TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
/// The length of the timestamps option with its two bytes of padding (RFC 7323, appendix A).
const TIMESTAMPS_OPTION: u32 = 12;
/// The length of a SYN's options: MSS (4), SACK permitted with timestamps (12) and window scale with padding
/// (4).
const SYN_OPTIONS: u32 = 20;

/// A range of sequence numbers, `start <= n < end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first number in the range.
    pub start: u64,
    /// The first number after the range.
    pub end: u64,
}

impl Range {
    /// Returns the count of numbers in the range.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Returns whether the range is empty.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns whether the range contains all of `other`.
    pub const fn contains(self, other: Range) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The blocks of a SACK option (RFC 2018). The first one may report a duplicate (DSACK, RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Range; MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// The segment has no SACK option.
    pub const NONE: SackBlocks = SackBlocks {
        blocks: [Range { start: 0, end: 0 }; MAX_SACK_BLOCKS],
        count: 0,
    };

    /// Appends a block. If the option is full, returns false and does nothing.
    pub fn push(&mut self, block: Range) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *slot = block;
        self.count += 1;
        true
    }

    /// Returns the blocks in the order of the option.
    pub fn as_slice(&self) -> &[Range] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Returns whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the length of the option with its padding, bytes.
    const fn option_bytes(&self) -> u32 {
        if self.count == 0 {
            0
        } else {
            4 + 8 * self.count as u32
        }
    }
}

/// The flag bits of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Opens a connection.
    pub const SYN: Flags = Flags(0x02);
    /// A write of the application ends in this segment.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Flags = Flags(0x10);
    /// A CE mark was received (RFC 3168). On a SYN, together with CWR: the sender supports ECN.
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window has been reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Returns the byte of a TCP header with these flags.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// A segment in transit, with everything that the other end or a queue can see.
///
/// Its alignment makes it two lines of the cache in an array, and never three.
#[repr(align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The number of the first byte, or of the SYN or FIN if there is no payload.
    pub seq: u64,
    /// If [`Flags::ACK`] is set: the next number that the sender of this segment expects.
    pub ack: u64,
    /// The length of the payload, bytes.
    pub length: u32,
    /// The receive window, bytes, not scaled.
    pub window: u32,
    /// TSval: the sender's clock, ms.
    pub timestamp: u32,
    /// TSecr: the echoed timestamp.
    pub echo: u32,
    /// The number of the connection among those of its flow. It stands for the ports.
    pub connection: u16,
    /// The flag bits.
    pub flags: Flags,
    /// The ECN bits of the IP header. The driver copies them to the packet, and copies a mark back.
    pub ecn: Ecn,
    /// The selective acknowledgements.
    pub sack: SackBlocks,
    /// The counts of marked packets and bytes, if the congestion control needs them.
    pub accurate_ecn: AccurateEcn,
}

impl Segment {
    /// Returns the length of the IPv4 packet, bytes: 1500 for a full segment of 1448. On Ethernet, schedulers
    /// count 14 more.
    pub const fn ip_length(&self) -> u32 {
        let options = if self.flags.contains(Flags::SYN) {
            SYN_OPTIONS
        } else {
            TIMESTAMPS_OPTION + self.sack.option_bytes() + self.accurate_ecn.option_bytes()
        };
        IP_HEADER + TCP_HEADER + options + self.length
    }

    /// Returns the sequence numbers of the segment: its payload, and one for SYN or FIN.
    pub const fn range(&self) -> Range {
        let control = (self.flags.contains(Flags::SYN) || self.flags.contains(Flags::FIN)) as u64;
        Range {
            start: self.seq,
            end: self.seq + self.length as u64 + control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_equal_those_of_linux_segments() {
        let full = Segment {
            length: 1448,
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(full.ip_length(), 1500);
        let syn = Segment {
            flags: Flags::SYN,
            ..Segment::default()
        };
        assert_eq!(syn.ip_length(), 60);
        let mut ack = Segment {
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(ack.ip_length(), 52);
        assert!(ack.sack.push(Range { start: 1, end: 2 }));
        assert_eq!(ack.ip_length(), 64);
        ack.accurate_ecn = AccurateEcn::new(1, 1448, true);
        assert_eq!(ack.ip_length(), 72);
    }

    #[test]
    fn a_segment_has_no_room_for_more_without_growing() {
        // A segment is copied for each packet in the network.
        assert!(size_of::<Segment>() <= 96, "{}", size_of::<Segment>());
    }

    #[test]
    fn a_fourth_block_is_rejected() {
        let mut sack = SackBlocks::NONE;
        for start in 0..3 {
            assert!(sack.push(Range {
                start,
                end: start + 1
            }));
        }
        assert!(!sack.push(Range { start: 9, end: 10 }));
        assert_eq!(sack.as_slice().len(), 3);
    }

    #[test]
    fn syn_and_fin_use_a_sequence_number() {
        let fin = Segment {
            seq: 101,
            length: 5,
            flags: Flags::FIN | Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(fin.range(), Range { start: 101, end: 107 });
    }
}
