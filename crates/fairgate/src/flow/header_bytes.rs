//! The first bytes of a packet's headers, for filters that match what has no name.

use super::dissect::{LinkType, network_and_transport};
use super::key::FlowKey;
use super::numbers::{ethertype, protocol};

/// The index of the network header. The addresses of an Ethernet header are before it.
const NETWORK: usize = 16;

/// The length of an Ethernet header.
const LINK: usize = 14;

/// The number of bytes of a packet that are kept.
const KEPT: usize = 125;

/// The TCP flag ACK.
const ACK: u8 = 0x10;

/// The first bytes of a packet: an Ethernet header without tags, and [`REACH`](HeaderBytes::REACH) bytes from
/// the network header on. 128 bytes.
///
/// A packet of a simulation has no bytes, but header fields. [`of_fields`](HeaderBytes::of_fields) makes the
/// headers that these fields imply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct HeaderBytes {
    bytes: [u8; KEPT],
    /// The index of the first byte that the packet has.
    start: u8,
    /// The index after the last one.
    end: u8,
    /// The index of the transport header. 0 if the packet has none, or is a fragment.
    transport: u8,
}

impl HeaderBytes {
    /// The number of bytes that are kept from the network header on.
    pub const REACH: usize = KEPT - NETWORK;

    /// No bytes. No condition on bytes holds.
    pub const NONE: HeaderBytes = HeaderBytes {
        bytes: [0; KEPT],
        start: KEPT as u8,
        end: 0,
        transport: 0,
    };

    /// Returns the bytes of a frame, which may be cut off.
    pub fn of_frame(frame: &[u8], link: LinkType) -> HeaderBytes {
        let (network, transport) = network_and_transport(frame, link);
        let packet = frame.get(network..).unwrap_or(&[]);
        let mut kept = HeaderBytes::NONE;
        kept.start = NETWORK as u8;
        if link == LinkType::Ethernet
            && let Some(header) = frame.first_chunk::<LINK>()
        {
            kept.bytes[NETWORK - LINK..NETWORK].copy_from_slice(header);
            // Behind tags it is the one that announces the packet, as in Linux.
            if let Some(ethertype) = frame[..network].last_chunk::<2>() {
                kept.bytes[NETWORK - 2..NETWORK].copy_from_slice(ethertype);
            }
            kept.start = (NETWORK - LINK) as u8;
        }
        let length = packet.len().min(HeaderBytes::REACH);
        kept.bytes[NETWORK..NETWORK + length].copy_from_slice(&packet[..length]);
        kept.end = (NETWORK + length) as u8;
        kept.transport = match transport {
            Some(offset) if offset < length => (NETWORK + offset) as u8,
            _ => 0,
        };
        kept
    }

    /// Returns the headers that the fields of a packet imply: of IPv4 or IPv6 without options, with a TTL of
    /// 64 and without fragments; of TCP with the flag ACK, or of an ICMP echo. `length` is that of the IP
    /// packet. Other packets, and the Ethernet header, have no bytes.
    pub fn of_fields(key: &FlowKey, traffic_class: u8, length: u32) -> HeaderBytes {
        let mut kept = HeaderBytes::NONE;
        let transport: usize = match key.ethertype {
            ethertype::IPV4 => 20,
            ethertype::IPV6 => 40,
            _ => return kept,
        };
        let transport_length = if key.protocol == protocol::TCP { 20 } else { 8 };
        // A packet is at least as long as its headers.
        let length = length.max((transport + transport_length) as u32);
        match key.ethertype {
            ethertype::IPV4 => {
                let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
                kept.put(
                    0,
                    &[
                        0x45,
                        traffic_class,
                        length[0],
                        length[1],
                        0,
                        0,
                        0x40,
                        0,
                        64,
                        key.protocol,
                    ],
                );
                kept.put(12, &key.source[12..]);
                kept.put(16, &key.destination[12..]);
            }
            _ => {
                let word = 6 << 28 | u32::from(traffic_class) << 20 | key.flow_label & 0xf_ffff;
                let payload = u16::try_from(length - 40).unwrap_or(u16::MAX).to_be_bytes();
                kept.put(0, &word.to_be_bytes());
                kept.put(4, &[payload[0], payload[1], key.protocol, 64]);
                kept.put(8, &key.source);
                kept.put(24, &key.destination);
            }
        }
        kept.start = NETWORK as u8;
        let (source, destination) = (key.source_port.to_be_bytes(), key.destination_port.to_be_bytes());
        match key.protocol {
            protocol::TCP => kept.put(transport + 12, &[5 << 4, ACK]),
            protocol::ICMP | protocol::ICMPV6 => {
                let echo = if key.protocol == protocol::ICMP { 8 } else { 128 };
                kept.put(transport, &[echo]);
                kept.put(transport + 4, &source);
            }
            _ => {}
        }
        if key.has_ports() {
            kept.put(transport, &[source[0], source[1], destination[0], destination[1]]);
        }
        kept.transport = (NETWORK + transport) as u8;
        kept.end = (NETWORK + (length as usize).min(HeaderBytes::REACH)) as u8;
        kept
    }

    /// Sets the flags of a TCP header: FIN is bit 0, SYN bit 1, ACK bit 4. Other packets are not changed.
    pub fn set_tcp_flags(&mut self, flags: u8) {
        let at = usize::from(self.transport);
        if at != 0 && at + 13 < usize::from(self.end) && self.protocol() == Some(protocol::TCP) {
            self.bytes[at + 13] = flags;
        }
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[NETWORK + offset..NETWORK + offset + bytes.len()].copy_from_slice(bytes);
    }

    fn is_v6(&self) -> bool {
        self.bytes[NETWORK] >> 4 == 6
    }

    fn protocol(&self) -> Option<u8> {
        let at = if self.is_v6() { 6 } else { 9 };
        self.from_network(at, 1).map(|protocol| protocol as u8)
    }

    /// Returns `width` bytes, up to four, as a number in network order. `offset` counts from the network
    /// header. `None` if the packet does not have all of them.
    #[inline]
    pub fn from_network(&self, offset: i16, width: u8) -> Option<u32> {
        let at = (NETWORK as i16).checked_add(offset)?;
        self.number(usize::try_from(at).ok()?, width)
    }

    /// Returns `width` bytes at an offset from the transport header, as
    /// [`from_network`](HeaderBytes::from_network) does.
    #[inline]
    pub fn from_transport(&self, offset: u8, width: u8) -> Option<u32> {
        match self.transport {
            0 => None,
            transport => self.number(usize::from(transport) + usize::from(offset), width),
        }
    }

    /// Returns the TTL of IPv4, or the hop limit of IPv6.
    #[inline]
    pub fn hop_limit(&self) -> Option<u32> {
        self.from_network(if self.is_v6() { 7 } else { 8 }, 1)
    }

    /// Returns the length of the IP packet, header included, as its header says.
    #[inline]
    pub fn packet_length(&self) -> Option<u32> {
        match self.is_v6() {
            true => Some(self.from_network(4, 2)? + 40),
            false => self.from_network(2, 2),
        }
    }

    #[inline]
    fn number(&self, at: usize, width: u8) -> Option<u32> {
        let bytes = self.bytes.get(at..at + usize::from(width))?;
        if at < usize::from(self.start) || at + usize::from(width) > usize::from(self.end) {
            return None;
        }
        Some(
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte)),
        )
    }
}

const _: () = assert!(size_of::<HeaderBytes>() == 128);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::dissect;
    use core::net::IpAddr;
    use proptest::prelude::*;

    /// A SYN from port 1000 to 80 with an IP option, in a frame with a VLAN tag.
    fn frame() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 8, 0];
        frame.extend([
            0x46, 0, 0, 44, 0, 0, 0x40, 0, 9, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0,
        ]);
        frame.extend([3, 232, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn bytes_are_read_from_each_header() {
        let bytes = HeaderBytes::of_frame(&frame(), LinkType::Ethernet);
        assert_eq!(bytes.from_network(0, 1), Some(0x46));
        assert_eq!(
            bytes.from_network(-8, 4),
            Some(0x0200_0000),
            "the source address of the frame"
        );
        assert_eq!(bytes.from_network(-14, 2), Some(0x0200));
        assert_eq!(bytes.from_network(-15, 1), None);
        assert_eq!(bytes.from_transport(2, 2), Some(80));
        assert_eq!(bytes.from_transport(13, 1), Some(2));
        assert_eq!(bytes.from_network(43, 1), Some(0));
        assert_eq!(bytes.from_network(43, 2), None, "the frame ends");
        assert_eq!((bytes.hop_limit(), bytes.packet_length()), (Some(9), Some(44)));
        assert_eq!(HeaderBytes::NONE.from_network(0, 1), None);
        let fragment = [&frame()[..24], &[0x20, 0], &frame()[26..]].concat();
        let bytes = HeaderBytes::of_frame(&fragment, LinkType::Ethernet);
        assert_eq!(
            bytes.from_transport(0, 1),
            None,
            "a fragment has no transport header"
        );
        assert_eq!(bytes.from_network(6, 1), Some(0x20));
    }

    proptest! {
        /// Any bytes can be read at any place.
        #[test]
        fn no_frame_causes_a_panic(
            frame in prop::collection::vec(any::<u8>(), 0..200), offset in -40i16..200, width in 1u8..=4,
        ) {
            for link in LinkType::ALL {
                let bytes = HeaderBytes::of_frame(&frame, link);
                bytes.from_network(offset, width);
                bytes.from_transport(offset.clamp(0, 255) as u8, width);
                bytes.hop_limit();
                bytes.packet_length();
            }
        }

        /// The headers that are made of fields have these fields.
        #[test]
        fn fields_become_headers_with_the_same_fields(
            v4: bool, addresses: (u32, u32), protocol in prop::sample::select(vec![1u8, 6, 17, 58, 47]),
            ports: (u16, u16), length in 0u32..3000, dscp in 0u8..64,
        ) {
            let address = |bits: u32| match v4 {
                true => IpAddr::V4(bits.into()),
                false => IpAddr::V6((u128::from(bits) << 64 | 1).into()),
            };
            let mut key = FlowKey::of(address(addresses.0), address(addresses.1), protocol, ports.0, ports.1);
            key.traffic_class = dscp << 2;
            if protocol == 47 {
                (key.source_port, key.destination_port) = (0, 0);
            }
            if matches!(protocol, 1 | 58) {
                key.destination_port = 0;
            }
            if (protocol == 58) == v4 && matches!(protocol, 1 | 58) {
                return Ok(());
            }
            let bytes = HeaderBytes::of_fields(&key, dscp << 2, length);
            let header: Vec<u8> = (0..HeaderBytes::REACH as i16)
                .map_while(|at| bytes.from_network(at, 1))
                .map(|byte| byte as u8)
                .collect();
            prop_assert_eq!(dissect(&header, LinkType::RawIp).key, key);
            let headers = if v4 { 20 } else { 40 } + if protocol == 6 { 20 } else { 8 };
            if length >= headers {
                prop_assert_eq!(bytes.packet_length(), Some(length));
            }
        }
    }
}
