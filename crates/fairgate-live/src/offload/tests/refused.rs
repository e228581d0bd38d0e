//! Frames that can't be cut are rejected without side effects, whatever their bytes are.

use proptest::prelude::*;

use super::stacks::stack;
use super::tunnels::super_packet;
use super::wire::{Stack, Transport, Tunnel, Version, Wrap};
use super::{
    GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_UDP_FRAGMENTS, GSO_UDP_L4, NEEDS_CHECKSUM, Refused, finish, vnet,
};
use crate::offload::vnet::VnetHeader;
use crate::offload::{Allowance, Identifications, Segments};

fn stack_of(wraps: Vec<Wrap>) -> Stack {
    Stack {
        tags: 0,
        wraps,
        version: Version::V4,
        transport: Transport::Tcp,
        seed: 1,
        ip_options: false,
        constant: false,
    }
}

type Change = fn(&mut Vec<u8>);

const PAYLOAD: [u8; 3000] = [7; 3000];

/// Changes a frame and returns the number of its segments, or the error.
fn cut_after(stack: &Stack, change: impl Fn(&mut Vec<u8>)) -> Result<usize, Refused> {
    let (mut frame, offload) = super_packet(stack, &PAYLOAD, 1000, 0);
    change(&mut frame);
    finish(&frame, offload).map(|frames| frames.len())
}

#[test]
fn a_virtio_header_that_does_not_match_is_rejected() {
    let (frame, _) = super_packet(&stack_of(Vec::new()), &PAYLOAD, 1000, 0);
    for (header, why) in [
        (
            vnet(NEEDS_CHECKSUM, GSO_UDP_FRAGMENTS, 1000, 34, 16),
            "UDP fragmentation offload",
        ),
        (vnet(NEEDS_CHECKSUM, GSO_TCP4, 0, 34, 16), "no segment size"),
        (
            vnet(NEEDS_CHECKSUM, GSO_NONE, 0, 5000, 16),
            "a checksum outside of the frame",
        ),
        (
            vnet(NEEDS_CHECKSUM, GSO_TCP4, 1000, 34, 6),
            "UDP's checksum in TCP",
        ),
        (vnet(NEEDS_CHECKSUM, GSO_TCP6, 1000, 34, 16), "not IPv6"),
        (vnet(NEEDS_CHECKSUM, GSO_UDP_L4, 1000, 34, 6), "not UDP"),
        (
            vnet(NEEDS_CHECKSUM, GSO_TCP4, 1000, 36, 16),
            "inside the transport header",
        ),
        (
            vnet(NEEDS_CHECKSUM, GSO_TCP4, 1000, 14, 16),
            "before the transport header",
        ),
        (vnet(0, GSO_TCP4, 1000, 34, 16), "packets under one header"),
        (
            vnet(NEEDS_CHECKSUM, 0x21, 1000, 34, 16),
            "a tunnel type, which packet sockets do not report",
        ),
    ] {
        assert_eq!(finish(&frame, header).err(), Some(Refused::Unsupported), "{why}");
    }
    assert_eq!(
        finish(&frame, vnet(NEEDS_CHECKSUM, GSO_TCP4, 1000, 34, 16))
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn headers_that_are_not_understood_are_rejected() {
    let gre = |sequence, ethernet| {
        stack_of(vec![Wrap::Gre {
            over: Version::V4,
            key: true,
            checksum: false,
            sequence,
            ethernet,
        }])
    };
    let udp = |tunnel, port| {
        stack_of(vec![Wrap::Udp {
            over: Version::V4,
            checksum: false,
            port,
            tunnel,
        }])
    };
    let vxlan = udp(Tunnel::Vxlan, 4789);
    assert_eq!(cut_after(&gre(false, false), |_| {}), Ok(3));
    let refused: [(_, &Stack, Change); 10] = [
        ("GRE with a sequence number", &gre(true, false), |_| {}),
        ("GRE with routing", &gre(false, false), |frame| frame[34] |= 0x40),
        ("GRE of PPTP", &gre(false, false), |frame| frame[35] |= 1),
        ("ERSPAN", &gre(false, true), |frame| {
            frame[36..38].copy_from_slice(&[0x88, 0xbe])
        }),
        ("IPsec", &stack_of(vec![Wrap::Ip(Version::V4)]), |frame| {
            frame[23] = 50
        }),
        ("a fragment", &stack_of(vec![Wrap::Ip(Version::V4)]), |frame| {
            frame[20] |= 0x20
        }),
        ("remote checksum offload", &vxlan, |frame| frame[43] |= 0x20),
        (
            "bytes after the inner packet",
            &udp(Tunnel::Vxlan, 9999),
            |frame| {
                frame.push(0);
            },
        ),
        ("an unknown tunnel", &udp(Tunnel::Gue, 9999), |frame| {
            frame[42] |= 0x40
        }),
        ("an Ethernet header of another kind", &vxlan, |frame| {
            frame[62] = 0
        }),
    ];
    for (what, stack, change) in refused {
        assert_eq!(cut_after(stack, change), Err(Refused::Unsupported), "{what}");
    }
}

/// The pseudo header contains the final destination. With an outer source route, that is not in the IP
/// header's field.
#[test]
fn an_outer_udp_checksum_needs_the_final_destination() {
    for (checksum, expected) in [(false, Ok(3)), (true, Err(Refused::Unsupported))] {
        let stack = stack_of(vec![Wrap::Udp {
            over: Version::V4,
            checksum,
            port: 4789,
            tunnel: Tunnel::Vxlan,
        }]);
        let (frame, _) = super_packet(&stack, &PAYLOAD, 1000, 0);
        // A loose source route with one address.
        let mut routed = [&frame[..34], &[131, 7, 4, 10, 0, 0, 9, 0], &frame[34..]].concat();
        routed[14] = 0x47;
        // Ethernet, IPv4 with its option, UDP, VXLAN, Ethernet, IPv4.
        let start = 14 + 28 + 8 + 8 + 14 + 20;
        let offload = vnet(NEEDS_CHECKSUM, GSO_TCP4, 1000, start, 16);
        assert_eq!(finish(&routed, offload).map(|frames| frames.len()), expected);
    }
}

/// The work for super-packets is bounded by the bytes that arrive.
#[test]
fn many_tiny_segments_are_rejected() {
    let stack = stack_of(Vec::new());
    let paid = |allowance: &mut Allowance, size: u16, payload: usize| {
        let (frame, offload) = super_packet(&stack, &vec![7; payload], size, 0);
        allowance.earn(frame.len());
        let segments = Segments::new(&frame, offload, &mut Identifications::default()).unwrap();
        segments.paid_by(allowance)
    };
    let mut allowance = Allowance::new();
    assert_eq!(paid(&mut allowance, 1, 65_000), Err(Refused::TinySegments));
    for size in [12, 24, 36, 48, 1448] {
        assert_eq!(
            paid(&mut allowance, size, (128 * usize::from(size)).min(60_000)),
            Ok(()),
            "{size}"
        );
    }
    // 128 segments of a byte, again and again: 181 bytes pay for 5 of them.
    let accepted = (0..1000).filter(|_| paid(&mut allowance, 1, 128).is_ok()).count();
    assert!((40..90).contains(&accepted), "{accepted}");
    // Others have what they need.
    assert_eq!(paid(&mut allowance, 48, 65_000), Ok(()));
}

/// Super-packets over 64 KiB are rejected.
#[test]
fn packets_longer_than_ip_allows_are_rejected() {
    let (mut frame, offload) = super_packet(&stack_of(Vec::new()), &PAYLOAD, 1000, 0);
    frame.resize(14 + 0xffff, 0);
    assert!(Segments::new(&frame, offload, &mut Identifications::default()).is_ok());
    frame.push(0);
    assert_eq!(
        Segments::new(&frame, offload, &mut Identifications::default()).err(),
        Some(Refused::Unsupported)
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 2048,
        ..ProptestConfig::default()
    })]

    /// Whatever the headers claim, no access is out of bounds and no bytes are lost.
    #[test]
    fn random_frames_are_rejected_or_finished(
        frame in proptest::collection::vec(any::<u8>(), 0..200),
        ethertype in prop_oneof![
            Just([0x08, 0x00]),
            Just([0x86, 0xdd]),
            Just([0x81, 0x00]),
            Just([0x88, 0x47]),
            Just([0x88, 0x64]),
        ],
        protocol in prop_oneof![Just(4u8), Just(6), Just(17), Just(41), Just(47), Just(43)],
        header in proptest::array::uniform10(0u8..120),
        gso in prop_oneof![Just(0u8), Just(1), Just(3), Just(4), Just(5)],
    ) {
        let mut frame = frame;
        if frame.len() > 24 {
            frame[12..14].copy_from_slice(&ethertype);
            frame[14] = if ethertype[0] == 0x08 { 0x45 } else { 0x60 };
            frame[20..22].fill(protocol);
            frame[23] = protocol;
        }
        let mut header = header;
        header[0] = NEEDS_CHECKSUM;
        header[1] = gso;
        for at in [5, 7, 9] {
            header[at] = 0;
        }
        let offload = VnetHeader::parse(&header);
        if let Ok(frames) = finish(&frame, offload) {
            let total: usize = frames.iter().map(Vec::len).sum();
            prop_assert!(total >= frame.len());
        }
    }

    /// The same for tunnels with some changed bytes, and any virtio header.
    #[test]
    fn damaged_tunnels_are_rejected_or_finished(
        stack in stack(),
        payload in proptest::collection::vec(any::<u8>(), 1..3000),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        header in proptest::option::of(any::<[u8; 10]>()),
    ) {
        let (mut frame, offload) = super_packet(&stack, &payload, 500, 0);
        let headers = frame.len() - payload.len();
        for (at, byte) in changes {
            let at = at.index(headers);
            frame[at] = byte;
        }
        if cut.index(4) == 0 {
            frame.truncate(cut.index(frame.len()));
        }
        let offload = header.map_or(offload, |bytes| VnetHeader::parse(&bytes));
        if let Ok(mut segments) = Segments::new(&frame, offload, &mut Identifications::default()) {
            let longest = segments.longest();
            prop_assert!(longest <= frame.len());
            let mut out = vec![0; longest];
            let mut total = 0;
            while !segments.is_finished() {
                let length = segments.write_next(&mut out);
                prop_assert!(length <= longest);
                total += length;
            }
            prop_assert!(total >= frame.len());
        }
    }
}
