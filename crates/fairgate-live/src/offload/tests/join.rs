//! Segments that are joined are cut into the same segments again.

use proptest::prelude::*;

use super::stacks::stack;
use super::tunnels::super_packet;
use super::wire::{Stack, Transport, Version};
use super::{GSO_ECN, finish_after};
use crate::offload::vnet::VnetHeader;
use crate::offload::{Identifications, LONGEST_HEADERS, Part, Segments};
use crate::outgoing::Outgoing;

const CWR: u8 = 0x80;

fn plain(version: Version, seed: u16, ip_options: bool) -> Stack {
    Stack {
        tags: 0,
        wraps: Vec::new(),
        version,
        transport: Transport::Tcp,
        seed,
        ip_options,
        constant: false,
    }
}

/// Returns a super-packet and its virtio header. A TCP header has no CWR. A UDP header has no such flag, and
/// a short datagram ends before that byte.
fn without_cwr(stack: &Stack, payload: &[u8], size: u16) -> (Vec<u8>, VnetHeader) {
    let (mut frame, offload) = super_packet(stack, payload, size, 0);
    if stack.transport == Transport::Tcp {
        frame[usize::from(offload.checksum_start) + 13] &= !CWR;
    }
    (frame, offload)
}

/// Cuts a frame into segments with their places in the super-packet.
fn cut(frame: &[u8], offload: VnetHeader) -> Vec<(Vec<u8>, Option<Part>)> {
    let mut identifications = Identifications::default();
    let mut segments =
        Segments::new(frame, offload, &mut identifications).expect("the headers are understood");
    let mut out = vec![0; segments.longest()];
    let mut all = Vec::new();
    while !segments.is_finished() {
        let part = segments.next_part(7);
        let length = segments.write_next(&mut out);
        all.push((out[..length].to_vec(), part));
    }
    all
}

fn outgoing((bytes, part): &(Vec<u8>, Option<Part>)) -> Outgoing<'_> {
    Outgoing { bytes, part: *part }
}

/// Joins segments as `sys/batch.rs` does.
fn join(run: &[(Vec<u8>, Option<Part>)]) -> (Vec<u8>, VnetHeader) {
    let (first, part) = &run[0];
    let part = part.expect("it can be joined");
    let payload = run.iter().map(|(bytes, _)| bytes.len() - part.headers()).sum();
    let mut headers = [0; LONGEST_HEADERS];
    let length = part.write_headers(first, &run[run.len() - 1].0, payload, &mut headers);
    let mut frame = headers[..length].to_vec();
    run.iter().for_each(|(bytes, _)| frame.extend(&bytes[length..]));
    (frame, VnetHeader::parse(&part.vnet_header()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any run of neighbours is cut into the same bytes again, and all together are the super-packet.
    #[test]
    fn joined_segments_are_cut_into_the_same_ones(
        payload in proptest::collection::vec(any::<u8>(), 1..9000),
        version in prop_oneof![Just(Version::V4), Just(Version::V6)],
        seed in any::<u16>(),
        ip_options in any::<bool>(),
        size in 100u16..3000,
        from in any::<prop::sample::Index>(),
        count in any::<prop::sample::Index>(),
    ) {
        let ip_options = ip_options && version == Version::V4;
        let (frame, offload) = without_cwr(&plain(version, seed, ip_options), &payload, size);
        let all = cut(&frame, offload);
        for pair in all.windows(2) {
            prop_assert!(outgoing(&pair[0]).is_continued_by(&outgoing(&pair[1])));
        }
        prop_assert_eq!(join(&all), (frame, offload));
        let from = from.index(all.len());
        let run = &all[from..][..=count.index(all.len() - from)];
        if run.len() > 1 {
            let (joined, header) = join(run);
            let again = finish_after(&joined, header, &mut Identifications::default());
            let wanted: Vec<Vec<u8>> = run.iter().map(|(bytes, _)| bytes.clone()).collect();
            prop_assert_eq!(again, Ok(wanted));
        }
    }

    /// What a virtio header can't describe is not joined.
    #[test]
    fn only_plain_segments_can_be_joined(
        stack in stack(),
        payload in proptest::collection::vec(any::<u8>(), 2..3000),
    ) {
        let (frame, offload) = without_cwr(&stack, &payload, 1000);
        let is_plain = stack.tags == 0 && stack.wraps.is_empty() && stack.transport == Transport::Tcp;
        for (_, part) in cut(&frame, offload) {
            prop_assert!(part.is_none() || is_plain, "{stack:?}");
        }
    }
}

#[test]
fn segments_that_differ_are_not_joined() {
    let payload = [5; 5000];
    let (frame, offload) = without_cwr(&plain(Version::V4, 9, false), &payload, 1000);
    let all = cut(&frame, offload);
    let follows = |first: &(Vec<u8>, Option<Part>), second: &(Vec<u8>, Option<Part>)| {
        outgoing(first).is_continued_by(&outgoing(second))
    };
    assert!(follows(&all[1], &all[2]));
    assert!(!follows(&all[1], &all[3]), "one is missing");
    assert!(!follows(&all[2], &all[1]), "the order is wrong");
    let mut marked = all[2].clone();
    marked.0[15] |= 3;
    assert!(!follows(&all[1], &marked), "one has a CE mark");
    assert!(follows(&marked, &marked.clone()) == follows(&all[2], &all[2]));
    let other = (
        all[2].0.clone(),
        all[2].1.map(|mut part| {
            part.super_packet = 8;
            part
        }),
    );
    assert!(!follows(&all[1], &other), "another super-packet");
    let whole = (all[2].0.clone(), None);
    assert!(!follows(&all[1], &whole) && !follows(&whole, &all[3]));
}

#[test]
fn segments_with_cwr_are_not_joined() {
    let (frame, offload) = super_packet(&plain(Version::V6, 9, false), &[5; 5000], 1000, GSO_ECN);
    assert!(frame[usize::from(offload.checksum_start) + 13] & CWR != 0);
    assert!(cut(&frame, offload).iter().all(|(_, part)| part.is_none()));
}
