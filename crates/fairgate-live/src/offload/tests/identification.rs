//! Which IPv4 identifications segments get.

use super::finish;
use super::tunnels::super_packet;
use super::wire::{Stack, Transport, Version, Wrap};

/// Identifications of the outer and the inner header of the segments of an IPv4 packet in IPv4.
fn identifications(outer: (u8, u16), inner: (u8, u16)) -> (Vec<u16>, Vec<u16>) {
    let stack = Stack {
        tags: 0,
        wraps: vec![Wrap::Ip(Version::V4)],
        version: Version::V4,
        transport: Transport::Tcp,
        seed: 1,
        ip_options: false,
    };
    let (mut frame, offload) = super_packet(&stack, &[1; 3500], 1000, 0);
    for (at, (flags, identification)) in [(14, outer), (34, inner)] {
        frame[at + 4..at + 6].copy_from_slice(&u16::to_be_bytes(identification));
        frame[at + 6] = flags;
    }
    let read = |frame: &Vec<u8>, at: usize| u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
    let frames = finish(&frame, offload).unwrap();
    (
        frames.iter().map(|frame| read(frame, 14)).collect(),
        frames.iter().map(|frame| read(frame, 34)).collect(),
    )
}

#[test]
fn every_header_counts_on_its_own() {
    let (outer, inner) = identifications((0, 65534), (0x40, 7));
    assert_eq!(outer, [65534, 65535, 0, 1]);
    assert_eq!(inner, [7, 8, 9, 10]);
}

#[test]
fn zero_stays_zero_where_fragments_are_forbidden() {
    assert_eq!(identifications((0x40, 0), (0x40, 9)).0, [0, 0, 0, 0]);
    assert_eq!(identifications((0x40, 9), (0x40, 0)).1, [0, 0, 0, 0]);
    // A packet that may be cut into fragments needs another identification each time.
    assert_eq!(identifications((0, 0), (0x40, 0)).0, [0, 1, 2, 3]);
}
