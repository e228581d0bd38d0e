//! Parses the packets inside tunnels.

use super::{LinkType, bytes_at, network, u16_at};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6, TRANSPARENT_BRIDGING};
use crate::flow::numbers::protocol::{GRE, IP_IN_IP, IPV6_IN_IP, UDP};

/// The IANA port of VXLAN.
const VXLAN_PORT: u16 = 4789;

/// Returns the key of the packet inside the tunnel packet `packet`, whose own key is `outer`. Returns `None`
/// if it is not a tunnel, or holds no well-formed IP packet.
pub(super) fn tunnelled(packet: &[u8], outer: FlowKey) -> Option<FlowKey> {
    let payload = network::above(packet, outer.ethertype)?.transport?;
    let (ethertype, inner) = match outer.protocol {
        IP_IN_IP => (IPV4, payload),
        IPV6_IN_IP => (IPV6, payload),
        GRE => decapsulate_gre(payload)?,
        UDP if outer.destination_port == VXLAN_PORT => decapsulate_vxlan(payload)?,
        _ => return None,
    };
    let key = network::key(inner, ethertype, outer.outer_ethertype, outer.vlan)?;
    Some(FlowKey {
        traffic_class: outer.traffic_class,
        ..key
    })
}

/// Parses GRE (RFC 2784, RFC 2890): version 0 without source routes. Each option has four bytes.
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

/// Parses VXLAN (RFC 7348) over UDP: 8 bytes of UDP, then 8 bytes with the flag that the network identifier
/// is valid.
fn decapsulate_vxlan(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let header = bytes_at::<8>(datagram, 8)?;
    let has_identifier = header[0] & 0x08 != 0;
    has_identifier.then(|| inner_ethernet(&datagram[16..]))
}

fn inner_ethernet(frame: &[u8]) -> (u16, &[u8]) {
    let inner = LinkType::Ethernet.strip(frame);
    (inner.ethertype, inner.payload)
}
