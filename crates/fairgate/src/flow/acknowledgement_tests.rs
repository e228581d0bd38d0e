use alloc::collections::BTreeSet;

use etherparse::{Ipv4Header, Ipv6Header, PacketBuilder, TcpHeader};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::flow::{LinkType, dissect};

/// A TCP packet as the test describes it. Sequence numbers and timestamps are small; `base` is added to them.
#[derive(Clone, Debug)]
struct Described {
    number: u32,
    timestamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    payload: bool,
    /// SYN, FIN, PSH, CWR, ECE.
    flags: [bool; 5],
    unknown_option: bool,
}

fn described() -> impl Strategy<Value = Described> {
    let rarely = || prop::bool::weighted(0.1);
    (
        0u32..12,
        prop::option::weighted(0.7, (0u32..5, 0u32..5)),
        vec(
            (0u32..24, 1u32..8).prop_map(|(start, length)| (start, start + length)),
            0..3,
        ),
        rarely(),
        [rarely(), rarely(), rarely(), rarely(), rarely()],
        rarely(),
    )
        .prop_map(
            |(number, timestamps, sack, payload, flags, unknown_option)| Described {
                number,
                timestamps,
                sack,
                payload,
                flags,
                unknown_option,
            },
        )
}

impl Described {
    fn tcp(&self, base: u32) -> TcpHeader {
        let [syn, fin, psh, cwr, ece] = self.flags;
        let mut options = Vec::new();
        if let Some((value, echo)) = self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(base.wrapping_add(value).to_be_bytes());
            options.extend(base.wrapping_add(echo).to_be_bytes());
        }
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (start, end) in &self.sack {
                options.extend(base.wrapping_add(*start).to_be_bytes());
                options.extend(base.wrapping_add(*end).to_be_bytes());
            }
        }
        if self.unknown_option {
            options.extend([254, 4, 0, 0]);
        }
        let mut header = TcpHeader {
            acknowledgment_number: base.wrapping_add(self.number),
            syn,
            fin,
            psh,
            cwr,
            ece,
            ack: true,
            ..TcpHeader::new(1, 2, 3, 4)
        };
        header.set_options_raw(&options).expect("at most 40 bytes");
        header
    }

    /// The packet over IPv4, IPv6, or IPv6 in IPv4, behind Ethernet.
    fn frame(&self, base: u32, kind: u8) -> Vec<u8> {
        let payload: &[u8] = if self.payload { &[7; 9] } else { &[] };
        let mut frame = Vec::new();
        let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
        if kind == 0 {
            let builder = link
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .tcp_header(self.tcp(base));
            builder.write(&mut frame, payload).unwrap();
            // Ethernet pads short frames.
            frame.resize(frame.len().max(60), 0);
            return frame;
        }
        let mut inner = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp_header(self.tcp(base));
        builder.write(&mut inner, payload).unwrap();
        if kind == 1 {
            frame.extend([2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 0x86, 0xdd]);
        } else {
            frame.extend([2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 0x08, 0x00]);
            let outer = Ipv4Header::new(inner.len() as u16, 64, 41.into(), [9; 4], [8; 4]).unwrap();
            outer.write(&mut frame).unwrap();
        }
        frame.extend(inner);
        frame
    }

    fn read(&self, base: u32, kind: u8) -> Acknowledgement {
        let frame = self.frame(base, kind);
        let read = dissect(&frame, LinkType::Ethernet).acknowledgement(&frame);
        read.expect("a TCP packet")
    }

    /// The numbers of all blocks.
    fn blocks(&self) -> BTreeSet<u32> {
        self.sack.iter().flat_map(|(start, end)| *start..*end).collect()
    }

    /// What the rules say, in sets of numbers that do not wrap.
    fn is_redundant_beside(&self, newer: &Described, has_base: bool) -> bool {
        let [syn, fin, psh, ..] = self.flags;
        if syn || fin || psh || self.payload || self.unknown_option || self.number > newer.number {
            return false;
        }
        match (self.timestamps, newer.timestamps) {
            (Some(own), Some(other)) if own.0 > other.0 || own.1 > other.1 => return false,
            // Absent timestamps count as 0, as in Linux. With a base of 2^31 all are before it.
            (Some(own), None) if !has_base && own != (0, 0) => return false,
            _ => {}
        }
        let is_within_one = |block: &(u32, u32)| newer.sack.iter().any(|b| b.0 <= block.0 && block.1 <= b.1);
        let has_duplicate = self.sack.iter().any(|block| block.0 < self.number);
        if has_duplicate || !self.sack.iter().all(is_within_one) {
            return false;
        }
        let sizes = [self, newer].map(|packet| packet.sack.iter().map(|b| b.1 - b.0).sum::<u32>());
        let says_less = sizes[1] > sizes[0];
        debug_assert!(self.blocks().is_subset(&newer.blocks()));
        says_less || self.number < newer.number
    }
}

proptest! {
    /// Headers are written and read again, and compared by other arithmetic.
    #[test]
    fn redundancy_follows_the_rules(
        older in described(),
        newer in described(),
        has_base in any::<bool>(),
        kind in 0u8..3,
    ) {
        // Timestamps of 2^31 + small are before 0, and sequence numbers pass 2^31.
        let base = if has_base { 0x8000_0001 } else { 0 };
        let (read, other) = (older.read(base, kind), newer.read(base, kind));
        prop_assert!(read.has_flow_of(&other));
        prop_assert_eq!(read.is_redundant_beside(&other), older.is_redundant_beside(&newer, has_base));
        prop_assert_eq!(other.is_valid, !newer.flags[0]);
        let ecn_flags = u8::from(older.flags[3]) << 7 | u8::from(older.flags[4]) << 6;
        prop_assert_eq!(read.ecn_flags, ecn_flags);
    }

    /// The answer does not depend on where the numbers begin, wherever they wrap.
    #[test]
    fn numbers_may_wrap(older in described(), newer in described(), base in any::<u32>()) {
        // Absent timestamps count as 0, which does not move along.
        prop_assume!(older.timestamps.is_none() || newer.timestamps.is_some());
        let at = |base| older.read(base, 0).is_redundant_beside(&newer.read(base, 0));
        prop_assert_eq!(at(base), at(0));
    }

    /// No bytes make the reader fail, and a packet that is cut off has no acknowledgement or the same one.
    #[test]
    fn frames_that_are_cut_off_are_not_read_further(
        packet in described(),
        kind in 0u8..3,
        kept in 0usize..140,
        damage in vec((0usize..140, any::<u8>()), 0..4),
    ) {
        let whole = packet.frame(0, kind);
        let cut = &whole[..kept.min(whole.len())];
        let read = dissect(cut, LinkType::Ethernet).acknowledgement(cut);
        prop_assert!(read.is_none() || read == Some(packet.read(0, kind)));
        let mut damaged = whole;
        for (place, byte) in damage {
            if let Some(old) = damaged.get_mut(place) {
                *old = byte;
            }
        }
        let _ = dissect(&damaged, LinkType::Ethernet).acknowledgement(&damaged);
    }
}

fn plain(number: u32) -> Described {
    Described {
        number,
        timestamps: None,
        sack: Vec::new(),
        payload: false,
        flags: [false; 5],
        unknown_option: false,
    }
}

#[test]
fn other_packets_acknowledge_nothing() {
    let mut frame = Vec::new();
    let udp = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1, 2);
    udp.write(&mut frame, &[0; 40]).unwrap();
    let read = |frame: &[u8]| dissect(frame, LinkType::Ethernet).acknowledgement(frame);
    assert_eq!(read(&frame), None);
    let mut fragment = plain(1).frame(0, 0);
    assert!(read(&fragment).is_some());
    // "More fragments".
    fragment[20] = 0x20;
    assert_eq!(read(&fragment), None);
    let extension = Ipv6Header {
        payload_length: 28,
        next_header: 60.into(),
        ..Ipv6Header::default()
    };
    let mut extended = vec![2; 12];
    extended.extend([0x86, 0xdd]);
    extension.write(&mut extended).unwrap();
    extended.extend([6, 0, 0, 0, 0, 0, 0, 0]);
    plain(1).tcp(0).write(&mut extended).unwrap();
    assert_eq!(read(&extended), None, "TCP behind an extension header");
}

#[test]
fn flows_are_told_apart() {
    let one = plain(1).read(0, 0);
    for change in [
        |other: &mut Acknowledgement| other.ports[0] += 1,
        |other: &mut Acknowledgement| other.ports[1] += 1,
        |other: &mut Acknowledgement| other.source[15] ^= 1,
        |other: &mut Acknowledgement| other.destination[15] ^= 1,
    ] {
        let mut other = one;
        change(&mut other);
        assert!(!one.has_flow_of(&other));
    }
}

#[test]
fn a_fifth_block_is_rejected() {
    let mut sack = SackRanges::default();
    for start in 0..4 {
        assert!(sack.push(start, start + 1));
    }
    assert!(!sack.push(9, 10));
    assert_eq!(sack.as_slice().len(), 4);
}

#[test]
fn the_size_is_as_documented() {
    assert!(
        size_of::<Acknowledgement>() <= 96,
        "{}",
        size_of::<Acknowledgement>()
    );
}
