//! Frames without a tunnel, checked by an independent parser (etherparse).

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::stacks::stack;
use super::tunnels::super_packet;
use super::wire::{SegmentFields, Stack, Transport, Version};
use super::{GSO_ECN, GSO_NONE, GSO_UDP_L4, NEEDS_CHECKSUM, finish, vnet};

/// Checks the lengths and checksums of a frame. Returns its TCP header, identification and payload.
fn check_tcp(frame: &[u8]) -> (etherparse::TcpHeader, Option<u16>, Vec<u8>) {
    let parsed = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = parsed.transport else {
        panic!("no TCP: {parsed:?}")
    };
    let header = tcp.to_header();
    let (identification, checksum) = match parsed.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            (
                Some(ip.identification),
                header.calc_checksum_ipv4(&ip, tcp.payload()).unwrap(),
            )
        }
        NetSlice::Ipv6(ip) => {
            let ip = ip.header().to_header();
            (None, header.calc_checksum_ipv6(&ip, tcp.payload()).unwrap())
        }
        other => panic!("not IP: {other:?}"),
    };
    assert_eq!(header.checksum, checksum);
    (header, identification, tcp.payload().to_vec())
}

fn plain(version: Version, tags: u8) -> Stack {
    Stack {
        tags,
        wraps: Vec::new(),
        version,
        transport: Transport::Tcp,
        seed: 0xfffe,
        ip_options: false,
        constant: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A receiver reassembles the segments of a super-packet to the same bytes.
    #[test]
    fn segments_carry_the_payload_and_pass_a_parser(
        payload in proptest::collection::vec(any::<u8>(), 1..9000),
        version in prop_oneof![Just(Version::V4), Just(Version::V6)],
        tags in 0u8..3,
        size in 100u16..3000,
    ) {
        let (frame, offload) = super_packet(&plain(version, tags), &payload, size, GSO_ECN);
        let frames = finish(&frame, offload).expect("every header is understood");
        prop_assert_eq!(frames.len(), payload.len().div_ceil(usize::from(size)));
        let (first, first_id, _) = check_tcp(&frames[0]);
        let mut carried = Vec::new();
        for (index, segment) in frames.iter().enumerate() {
            let (tcp, id, bytes) = check_tcp(segment);
            prop_assert!(bytes.len() <= usize::from(size));
            prop_assert_eq!(tcp.sequence_number, first.sequence_number.wrapping_add(carried.len() as u32));
            prop_assert_eq!(id, first_id.map(|id| id.wrapping_add(index as u16)));
            let last = index + 1 == frames.len();
            prop_assert_eq!((tcp.fin, tcp.psh, tcp.cwr, tcp.ack), (last, last, index == 0, true));
            prop_assert_eq!(tcp.options.as_slice(), first.options.as_slice());
            carried.extend(bytes);
        }
        prop_assert_eq!(carried, payload);
    }

    /// A partial checksum, as a sender with checksum offload writes it, is completed. Outer checksums are
    /// already those of the final packet.
    #[test]
    fn a_partial_checksum_is_completed(
        stack in stack(),
        payload in proptest::collection::vec(any::<u8>(), 1..1500),
    ) {
        let fields = SegmentFields { index: 0, offset: 0, flags: 0x18, payload: &payload, unfinished: false };
        let (whole, start) = stack.build(fields);
        let (unfinished, _) = stack.build(SegmentFields { unfinished: true, ..fields });
        let field = if stack.transport == Transport::Tcp { 16 } else { 6 };
        let mut half = whole.clone();
        half[start + field..start + field + 2].copy_from_slice(&unfinished[start + field..start + field + 2]);
        let offload = vnet(NEEDS_CHECKSUM, GSO_NONE, 0, start, field as u16);
        let frames = finish(&half, offload).expect("the checksum field is inside the frame");
        prop_assert_eq!(frames, [whole]);
    }
}

#[test]
fn udp_is_cut_into_datagrams() {
    let payload: Vec<u8> = (0..2500).map(|byte| byte as u8).collect();
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(1, 2)
        .write(&mut frame, &payload)
        .unwrap();
    // The sum of the pseudo header: addresses, protocol, and the total length.
    let sum: u32 = [0xc000, 0x0201, 0xc000, 0x0202, 17, 8 + 2500].iter().sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    frame[40..42].copy_from_slice(&(folded as u16).to_be_bytes());
    let frames = finish(&frame, vnet(NEEDS_CHECKSUM, GSO_UDP_L4, 1000, 34, 6)).unwrap();
    let mut carried = Vec::new();
    for datagram in &frames {
        let parsed = SlicedPacket::from_ethernet(datagram).unwrap();
        let (Some(TransportSlice::Udp(udp)), Some(NetSlice::Ipv4(ip))) = (parsed.transport, parsed.net)
        else {
            panic!("not UDP");
        };
        let header = udp.to_header();
        assert_eq!(usize::from(header.length), 8 + udp.payload().len());
        let expected = header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
        assert_eq!(header.checksum, expected.unwrap());
        carried.extend(udp.payload());
    }
    assert_eq!((frames.len(), carried), (3, payload));
}
