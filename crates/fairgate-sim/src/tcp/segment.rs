//! What the two ends of a connection send to each other: a TCP header with the options that Linux uses, no bytes.
//!
//! Sequence numbers are 64 bits wide and don't wrap; each direction's SYN has number 0, its first byte number 1.

use fairgate::Ecn;

/// Most SACK blocks in one segment: 40 bytes of options less 12 for timestamps hold three.
pub const MAX_SACK_BLOCKS: usize = 3;

/// Header of IPv4 without options, bytes.
const IP_HEADER: u32 = 20;
/// Header of TCP without options, bytes.
const TCP_HEADER: u32 = 20;
/// Timestamps option with its two bytes of padding (RFC 7323, appendix A).
const TIMESTAMPS_OPTION: u32 = 12;
/// MSS (4), SACK permitted with timestamps (12) and window scale with padding (4).
const SYN_OPTIONS: u32 = 20;

/// A range of sequence numbers, `start <= n < end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first number in it.
    pub start: u64,
    /// The first number after it.
    pub end: u64,
}

impl Range {
    /// How many numbers it holds.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds none.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether it holds all of `other`.
    pub const fn contains(self, other: Range) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The blocks of a SACK option (RFC 2018); the first may be a duplicate's (DSACK, RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Range; MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// No option.
    pub const NONE: SackBlocks = SackBlocks {
        blocks: [Range { start: 0, end: 0 }; MAX_SACK_BLOCKS],
        count: 0,
    };

    /// Appends a block. False, and nothing done, if the option is full.
    pub fn push(&mut self, block: Range) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = block;
        self.count += 1;
        true
    }

    /// The blocks in the order of the option.
    pub fn as_slice(&self) -> &[Range] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the option with its padding, bytes.
    const fn option_bytes(&self) -> u32 {
        if self.count == 0 {
            0
        } else {
            4 + 8 * self.count as u32
        }
    }
}

/// The header's flag bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// No more data comes.
    pub const FIN: Flags = Flags(0x01);
    /// Opens a connection.
    pub const SYN: Flags = Flags(0x02);
    /// The application's write ends in this segment.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Flags = Flags(0x10);
    /// A CE mark was received (RFC 3168); with CWR on a SYN: capable of ECN.
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window has been reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Whether all flags of `other` are set.
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

/// A segment on its way: everything that the other end or a queue can see of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte, or of the SYN or FIN if there is none.
    pub seq: u64,
    /// The next number that the sender of this segment expects, if [`Flags::ACK`] is set.
    pub ack: u64,
    /// Payload, bytes.
    pub length: u32,
    /// Receive window, bytes, scaling undone.
    pub window: u32,
    /// TSval: the sender's clock, ms.
    pub timestamp: u32,
    /// TSecr: the timestamp being answered.
    pub echo: u32,
    /// Flag bits.
    pub flags: Flags,
    /// The ECN bits of the IP header. The driver copies them to the packet, and a mark back from it.
    pub ecn: Ecn,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl Segment {
    /// Length of the IPv4 packet, bytes: 1500 for a full segment of 1448. On Ethernet a scheduler counts 14 more.
    pub const fn ip_length(&self) -> u32 {
        let options = if self.flags.contains(Flags::SYN) {
            SYN_OPTIONS
        } else {
            TIMESTAMPS_OPTION + self.sack.option_bytes()
        };
        IP_HEADER + TCP_HEADER + options + self.length
    }

    /// The sequence numbers that the segment takes up: its payload, and one for SYN or FIN.
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
    fn lengths_are_those_of_linux_segments() {
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
    }

    #[test]
    fn a_fourth_block_is_refused() {
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
    fn syn_and_fin_take_a_number() {
        let fin = Segment {
            seq: 101,
            length: 5,
            flags: Flags::FIN | Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(fin.range(), Range { start: 101, end: 107 });
    }
}
