//! Which IPv4 identifications segments get.

use proptest::prelude::*;

use super::finish_after;
use super::tunnels::super_packet;
use super::wire::{Stack, Transport, Version, Wrap};
use crate::offload::Identifications;

const FORBIDDEN: u8 = 0x40;
const ALLOWED: u8 = 0;

/// The number of segments of a super-packet.
const COUNT: u16 = 4;

/// Returns the identifications of the outer and inner headers of the segments of an IPv4-in-IPv4 packet.
fn identifications(
    known: &mut Identifications,
    outer: (u8, u16),
    inner: (u8, u16),
    port: u16,
) -> [Vec<u16>; 2] {
    let stack = Stack {
        tags: 0,
        wraps: vec![Wrap::Ip(Version::V4)],
        version: Version::V4,
        transport: Transport::Tcp,
        seed: 1,
        ip_options: false,
        constant: false,
    };
    let (mut frame, offload) = super_packet(&stack, &[1; 1000 * COUNT as usize], 1000, 0);
    for (at, (flags, identification)) in [(14, outer), (34, inner)] {
        frame[at + 4..at + 6].copy_from_slice(&u16::to_be_bytes(identification));
        frame[at + 6] = flags;
    }
    frame[54..56].copy_from_slice(&port.to_be_bytes());
    let frames = finish_after(&frame, offload, known).unwrap();
    let read = |at: usize| {
        let identification = |frame: &Vec<u8>| u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
        frames.iter().map(identification).collect()
    };
    [read(14), read(34)]
}

#[test]
fn every_header_counts_independently() {
    let known = &mut Identifications::default();
    let [outer, inner] = identifications(known, (ALLOWED, 65534), (FORBIDDEN, 7), 1);
    assert_eq!(outer, [65534, 65535, 0, 1]);
    assert_eq!(inner, [7, 8, 9, 10]);
}

#[test]
fn zero_stays_zero_where_fragments_are_forbidden() {
    let known = &mut Identifications::default();
    let [outer, inner] = identifications(known, (FORBIDDEN, 0), (FORBIDDEN, 9), 1);
    assert_eq!((outer, inner), (vec![0; 4], vec![9, 10, 11, 12]));
    let [outer, inner] = identifications(known, (ALLOWED, 0), (FORBIDDEN, 0), 1);
    // A packet that may be fragmented needs a different identification each time.
    assert_eq!((outer, inner), (vec![0, 1, 2, 3], vec![0; 4]));
}

#[test]
fn a_constant_is_recognised_from_the_second_super_packet_on() {
    let known = &mut Identifications::default();
    let mut next = |inner, port| identifications(known, (ALLOWED, 1), inner, port)[1].clone();
    assert_eq!(next((FORBIDDEN, 77), 1), [77, 78, 79, 80]);
    // Another connection between the same hosts.
    assert_eq!(next((FORBIDDEN, 77), 2), [77, 78, 79, 80]);
    assert_eq!(next((FORBIDDEN, 77), 1), [77; 4]);
    assert_eq!(next((FORBIDDEN, 77), 1), [77; 4]);
    assert_eq!(next((FORBIDDEN, 78), 1), [78, 79, 80, 81]);
    assert_eq!(next((ALLOWED, 78), 1), [78, 79, 80, 81]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A host that counts has used other identifications before its next super-packet.
    #[test]
    fn a_counted_identification_is_never_taken_for_a_constant(
        first in 1u16..,
        gaps in proptest::collection::vec((0u16..1000, 0u16..4), 1..30),
    ) {
        let known = &mut Identifications::default();
        let mut identification = first;
        for (gap, port) in gaps {
            // Zero is a special case; see above.
            prop_assume!(identification != 0);
            let [_, inner] = identifications(known, (ALLOWED, 1), (FORBIDDEN, identification), port);
            let counted: Vec<u16> = (0..COUNT).map(|index| identification.wrapping_add(index)).collect();
            prop_assert_eq!(inner, counted);
            identification = identification.wrapping_add(COUNT + gap);
        }
    }
}
