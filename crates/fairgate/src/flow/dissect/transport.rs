//! Ports, and the packets inside tunnels.

use super::{LinkType, bytes_at, network, u16_at};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6, TRANSPARENT_BRIDGING};
use crate::flow::numbers::protocol::{GRE, ICMP, ICMPV6, IP_IN_IP, IPV6_IN_IP, UDP, has_ports};

/// The port that IANA gave to VXLAN.
const VXLAN_PORT: u16 = 4789;

/// Reads the ports, or an echo's identifier, into the key.
#[inline]
pub(super) fn read(transport: &[u8], key: &mut FlowKey) {
    match key.protocol {
        protocol if has_ports(protocol) => {
            if let Some(ports) = bytes_at::<4>(transport, 0) {
                key.source_port = u16::from_be_bytes([ports[0], ports[1]]);
                key.destination_port = u16::from_be_bytes([ports[2], ports[3]]);
            }
        }
        ICMP | ICMPV6 => key.source_port = identifier(transport, key.protocol).unwrap_or(0),
        _ => {}
    }
}

/// The identifier of those ICMP messages that have one: echo, and for IPv4 timestamp, information and address mask.
fn identifier(message: &[u8], protocol: u8) -> Option<u16> {
    let has_identifier = matches!(
        (protocol, message.first()?),
        (ICMP, 0 | 8 | 13..=18) | (ICMPV6, 128 | 129)
    );
    if has_identifier { u16_at(message, 4) } else { None }
}

/// The key of the packet within the tunnel packet `packet`, whose own key is `outer`; `None` if it isn't a tunnel, or
/// holds no well-formed IP packet.
pub(super) fn tunnelled(packet: &[u8], outer: FlowKey) -> Option<FlowKey> {
    let mut again = outer;
    let payload = network::read(packet, &mut again)?.transport?;
    let (ethertype, inner) = match outer.protocol {
        IP_IN_IP => (IPV4, payload),
        IPV6_IN_IP => (IPV6, payload),
        GRE => decapsulate_gre(payload)?,
        UDP if outer.destination_port == VXLAN_PORT => decapsulate_vxlan(payload)?,
        _ => return None,
    };
    let mut key = FlowKey {
        ethertype,
        vlan: outer.vlan,
        ..FlowKey::default()
    };
    if let Some(transport) = network::read(inner, &mut key)?.transport {
        read(transport, &mut key);
    }
    key.traffic_class = outer.traffic_class;
    Some(key)
}

/// GRE (RFC 2784, RFC 2890). Version 0 without source routes; each option is four bytes.
fn decapsulate_gre(header: &[u8]) -> Option<(u16, &[u8])> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;

    let flags = u16_at(header, 0)?;
    if flags & (ROUTING | VERSION) != 0 {
        return None;
    }
    let options = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize;
    let inner = header.get(4 + 4 * options..)?;
    match u16_at(header, 2)? {
        TRANSPARENT_BRIDGING => Some(inner_ethernet(inner)),
        ethertype => Some((ethertype, inner)),
    }
}

/// VXLAN (RFC 7348) over UDP: 8 bytes of UDP, 8 of its own with the flag that the network identifier is valid.
fn decapsulate_vxlan(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let header = bytes_at::<8>(datagram, 8)?;
    let has_identifier = header[0] & 0x08 != 0;
    has_identifier.then(|| inner_ethernet(&datagram[16..]))
}

fn inner_ethernet(frame: &[u8]) -> (u16, &[u8]) {
    let inner = LinkType::Ethernet.strip(frame);
    (inner.ethertype, inner.payload)
}
