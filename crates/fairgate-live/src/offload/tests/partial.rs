//! Partial checksums that nothing reports.

use proptest::prelude::*;

use super::stacks::stack;
use super::wire::{SegmentFields, Stack, Transport, Tunnel, Version, Wrap};
use super::{GSO_NONE, NEEDS_CHECKSUM, finish, vnet};
use crate::offload::vnet::VnetHeader;

/// Returns a frame as it is on the wire, as its sender leaves it, and what is left to do.
fn whole_and_partial(stack: &Stack, payload: &[u8]) -> (Vec<u8>, Vec<u8>, VnetHeader) {
    let fields = SegmentFields {
        index: 0,
        offset: 0,
        flags: 0x18,
        payload,
        unfinished: false,
    };
    let (whole, start) = stack.build(fields);
    let (unfinished, _) = stack.build(SegmentFields {
        unfinished: true,
        ..fields
    });
    let offset = if stack.transport == Transport::Tcp { 16 } else { 6 };
    let field = start + offset..start + offset + 2;
    let mut partial = whole.clone();
    partial[field.clone()].copy_from_slice(&unfinished[field]);
    let header = vnet(NEEDS_CHECKSUM, GSO_NONE, 0, start, offset as u16);
    (whole, partial, header)
}

/// Returns the frame that is sent for a received one.
fn sent(frame: &[u8]) -> Vec<u8> {
    let header = VnetHeader::recognise(frame);
    if header.is_complete() {
        return frame.to_vec();
    }
    let [finished] = &finish(frame, header).unwrap()[..] else {
        panic!("nothing is cut")
    };
    finished.clone()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_partial_checksum_is_recognised_through_tunnels(
        stack in stack(),
        payload in proptest::collection::vec(any::<u8>(), 1..1500),
    ) {
        let (whole, partial, header) = whole_and_partial(&stack, &payload);
        prop_assert_eq!(VnetHeader::recognise(&partial), header);
        prop_assert_eq!(sent(&partial), whole.clone());
        // What is whole stays as it is.
        prop_assert_eq!(sent(&whole), whole);
    }

    /// A whole packet whose checksum equals the sum of its pseudo header: two bytes of the payload are chosen
    /// so that everything else adds up to zero. Completing changes nothing.
    #[test]
    fn a_checksum_that_looks_partial_by_chance_stays(
        version in prop_oneof![Just(Version::V4), Just(Version::V6)],
        transport in prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)],
        payload in proptest::collection::vec(any::<u8>(), 2..1500),
    ) {
        let stack = plain(version, transport);
        let (_, mut frame, header) = whole_and_partial(&stack, &payload);
        let end = frame.len() - payload.len();
        frame[end..end + 2].fill(0);
        // With these two bytes zero, the finished checksum is that sum plus what they must add.
        let finished = finish(&frame, header).unwrap().remove(0);
        let at = end - if transport == Transport::Tcp { 16 } else { 2 };
        let word = |frame: &[u8]| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let difference = u32::from(word(&finished)) + 0xffff - u32::from(word(&frame));
        frame[end..end + 2].copy_from_slice(&((difference % 0xffff) as u16).to_be_bytes());
        prop_assert_eq!(VnetHeader::recognise(&frame), header);
        prop_assert_eq!(sent(&frame), frame);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = sent(&bytes);
    }
}

fn plain(version: Version, transport: Transport) -> Stack {
    Stack {
        tags: 0,
        wraps: Vec::new(),
        version,
        transport,
        seed: 1,
        ip_options: false,
        constant: false,
    }
}

/// The tunnel itself may be what is partial.
#[test]
fn a_partial_checksum_of_a_tunnel_is_recognised() {
    let mut stack = plain(Version::V4, Transport::Tcp);
    stack.wraps.push(Wrap::Udp {
        over: Version::V4,
        checksum: true,
        port: 4789,
        tunnel: Tunnel::Vxlan,
    });
    let fields = SegmentFields {
        index: 0,
        offset: 0,
        flags: 0x18,
        payload: &[7; 100],
        unfinished: false,
    };
    let (whole, _) = stack.build(fields);
    let (unfinished, _) = stack.build(SegmentFields {
        unfinished: true,
        ..fields
    });
    let mut partial = whole.clone();
    partial[40..42].copy_from_slice(&unfinished[40..42]);
    assert_eq!(sent(&partial), whole);
}

/// A fragment or a frame with padding is from elsewhere: its checksum field is data.
#[test]
fn padding_and_fragments_are_left_alone() {
    let (_, partial, _) = whole_and_partial(&plain(Version::V4, Transport::Udp), &[1, 2, 3]);
    let padded = [&partial[..], &[0; 8]].concat();
    assert_eq!(sent(&padded), padded);
    let mut fragment = partial;
    fragment[20] |= 0x20;
    assert_eq!(sent(&fragment), fragment);
}
