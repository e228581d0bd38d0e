//! Super-packets in tunnels are cut into the packets that a sender without offloads would have sent.

use proptest::prelude::*;

use super::stacks::stack;
use super::wire::{SegmentFields, Stack, Transport, Tunnel, Version, Wrap};
use super::{GSO_ECN, GSO_TCP4, GSO_TCP6, GSO_UDP_L4, NEEDS_CHECKSUM, finish, vnet};
use crate::offload::vnet::VnetHeader;

const ACK: u8 = 0x10;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Builds the super-packet of `payload` and its virtio header.
pub(super) fn super_packet(stack: &Stack, payload: &[u8], size: u16, ecn: u8) -> (Vec<u8>, VnetHeader) {
    let (frame, start) = stack.build(SegmentFields {
        index: 0,
        offset: 0,
        flags: ACK | FIN_PSH | CWR,
        payload,
        unfinished: true,
    });
    let (gso, field) = match (stack.transport, stack.version) {
        (Transport::Tcp, Version::V4) => (GSO_TCP4 | ecn, 16),
        (Transport::Tcp, Version::V6) => (GSO_TCP6 | ecn, 16),
        (Transport::Udp, _) => (GSO_UDP_L4, 6),
    };
    (frame, vnet(NEEDS_CHECKSUM, gso, size, start, field))
}

/// Builds the packets that a sender without offloads would have sent.
pub(super) fn packets(stack: &Stack, payload: &[u8], size: u16, ecn: u8) -> Vec<Vec<u8>> {
    let count = payload.chunks(size.into()).count();
    let segments = payload.chunks(size.into()).enumerate();
    segments
        .map(|(index, payload)| {
            let last = if index + 1 == count { FIN_PSH } else { 0 };
            let cwr = if index == 0 || ecn == 0 { CWR } else { 0 };
            let fields = SegmentFields {
                index: index as u16,
                offset: index as u32 * u32::from(size),
                flags: ACK | last | cwr,
                payload,
                unfinished: false,
            };
            stack.build(fields).0
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1024,
        ..ProptestConfig::default()
    })]

    #[test]
    fn segments_equal_packets_sent_without_offloads(
        stack in stack(),
        payload in proptest::collection::vec(any::<u8>(), 1..9000),
        size in 100u16..3000,
        ecn in prop_oneof![Just(0), Just(GSO_ECN)],
    ) {
        let (frame, offload) = super_packet(&stack, &payload, size, ecn);
        let frames = finish(&frame, offload).expect("every header is understood");
        prop_assert_eq!(frames, packets(&stack, &payload, size, ecn));
    }

    /// On an unknown port, the tunnel is recognised by its structure.
    #[test]
    fn a_tunnel_on_any_port_is_recognised(
        stack in stack(),
        port in 10_000u16..,
        payload in proptest::collection::vec(any::<u8>(), 1..9000),
        size in 100u16..3000,
    ) {
        let mut stack = stack;
        for wrap in &mut stack.wraps {
            if let Wrap::Udp { port: known, tunnel, .. } = wrap
                && *tunnel != Tunnel::Mpls
            {
                *known = port;
                break;
            }
        }
        let (frame, offload) = super_packet(&stack, &payload, size, 0);
        let frames = finish(&frame, offload).expect("one format matches");
        prop_assert_eq!(frames, packets(&stack, &payload, size, 0));
    }
}

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

/// A tunnel header may be damaged, or newer than this code. After a change of one bit, either the frame is
/// rejected, or the segments differ from the right ones in that bit only.
#[test]
fn a_changed_bit_in_a_tunnel_header_never_gives_wrong_segments() {
    let payload = [7; 3000];
    let geneve = Tunnel::Geneve {
        options: 2,
        ethernet: true,
    };
    for (tunnel, length) in [
        (Tunnel::Vxlan, 8),
        (Tunnel::VxlanPolicy, 8),
        (Tunnel::VxlanIp, 8),
        (geneve, 8),
        (Tunnel::Gue, 4),
        (Tunnel::Gre, 4),
    ] {
        for port in [4789, 6081, 6080, 40_000] {
            let stack = stack_of(vec![Wrap::Udp {
                over: Version::V4,
                checksum: false,
                port,
                tunnel,
            }]);
            let (frame, offload) = super_packet(&stack, &payload, 1000, 0);
            let right = packets(&stack, &payload, 1000, 0);
            let header = 14 + 20 + 8;
            for bit in 0..8 * length {
                let damage = |packet: &mut Vec<u8>| packet[header + bit / 8] ^= 0x80 >> (bit % 8);
                let mut frame = frame.clone();
                damage(&mut frame);
                match finish(&frame, offload) {
                    Err(_) => {}
                    Ok(frames) => {
                        let mut right = right.clone();
                        right.iter_mut().for_each(damage);
                        assert_eq!(frames, right, "bit {bit} of {tunnel:?} on port {port}");
                    }
                }
            }
        }
    }
}

/// Outer headers are added to a packet that already has IP's maximum length. Only the segments have to fit.
#[test]
fn outer_lengths_may_overflow() {
    let stack = stack_of(vec![Wrap::Udp {
        over: Version::V4,
        checksum: true,
        port: 4789,
        tunnel: Tunnel::Vxlan,
    }]);
    let payload = vec![9; 0xffff - 20 - 32];
    let mut tiny = stack.build(SegmentFields {
        index: 0,
        offset: 0,
        flags: ACK | FIN_PSH | CWR,
        payload: &payload[..1],
        unfinished: true,
    });
    // The builder can't write such lengths, so the inner length field is patched to the maximum.
    let inner = tiny.1 - 20;
    tiny.0.extend(&payload[1..]);
    tiny.0[inner + 2..inner + 4].copy_from_slice(&0xffffu16.to_be_bytes());
    let (_, offload) = super_packet(&stack, &payload[..60_000], 1000, 0);
    let frames = finish(&tiny.0, offload).expect("every header is understood");
    assert_eq!(frames.len(), payload.len().div_ceil(1000));
    for (index, frame) in frames.iter().enumerate() {
        let outer = u16::from_be_bytes([frame[16], frame[17]]);
        assert_eq!(usize::from(outer), frame.len() - 14, "segment {index}");
    }
}
