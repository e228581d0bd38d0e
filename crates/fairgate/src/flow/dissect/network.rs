//! Parses IPv4 and IPv6: addresses, traffic class, and the position of the transport header.

use super::bytes_at;
use super::transport::{self, Above};
use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::flow::numbers::protocol::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, HOST_IDENTITY, MOBILITY, ROUTING, SHIM6,
};

/// The maximum number of extension headers that are read. RFC 8200 recommends an order with at most eight per
/// packet.
const MOST_EXTENSIONS: usize = 10;

/// The content of an IP header with its extensions.
struct Network<'a> {
    source: [u8; 16],
    destination: [u8; 16],
    traffic_class: u8,
    flow_label: u32,
    above: Above<'a>,
}

impl Network<'_> {
    /// Returns the key of the packet.
    #[inline(always)]
    fn key(&self, ethertype: u16, outer_ethertype: u16, vlan: u16) -> FlowKey {
        let (source_port, destination_port) = transport::ports(&self.above);
        FlowKey {
            source: self.source,
            destination: self.destination,
            source_port,
            destination_port,
            ethertype,
            outer_ethertype,
            vlan,
            flow_label: self.flow_label,
            protocol: self.above.protocol,
            traffic_class: self.traffic_class,
            interface: 0,
        }
    }
}

/// Returns the key of `packet`, which is of type `ethertype`. Returns `None` if it does not begin with such
/// an IP header.
///
/// Each family creates its key at once from the values read. A key that is filled field by field would have
/// to be copied. Reading it as a whole would then wait for the partial writes.
#[inline(always)]
pub(super) fn key(packet: &[u8], ethertype: u16, outer_ethertype: u16, vlan: u16) -> Option<FlowKey> {
    match ethertype {
        IPV4 => Some(read_v4(packet)?.key(IPV4, outer_ethertype, vlan)),
        IPV6 => Some(read_v6(packet)?.key(IPV6, outer_ethertype, vlan)),
        _ => None,
    }
}

/// Returns what is above the IP header of `packet`, which is of type `ethertype`.
pub(super) fn above(packet: &[u8], ethertype: u16) -> Option<Above<'_>> {
    match ethertype {
        IPV4 => Some(read_v4(packet)?.above),
        IPV6 => Some(read_v6(packet)?.above),
        _ => None,
    }
}

#[inline(always)]
fn read_v4(packet: &[u8]) -> Option<Network<'_>> {
    let header = packet.first_chunk::<20>()?;
    let header_length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || header_length < 20 {
        return None;
    }
    let protocol = header[9];
    // "More fragments", or an offset.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let transport = match fragment {
        true => None,
        false => up_to(packet, total_length).get(header_length..),
    };
    let above = match (protocol, transport) {
        (AUTHENTICATION, Some(payload)) => after_extension(protocol, payload),
        _ => Above { protocol, transport },
    };
    Some(Network {
        source: mapped([header[12], header[13], header[14], header[15]]),
        destination: mapped([header[16], header[17], header[18], header[19]]),
        traffic_class: header[1],
        flow_label: 0,
        above,
    })
}

#[inline(always)]
fn read_v6(packet: &[u8]) -> Option<Network<'_>> {
    let (header, rest) = packet.split_first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut above = Above {
        protocol: header[6],
        transport: Some(up_to(rest, payload_length)),
    };
    if is_extension(above.protocol) {
        above = skip_extensions(above);
    }
    Some(Network {
        source: *bytes_at(header, 8)?,
        destination: *bytes_at(header, 24)?,
        traffic_class: header[0] << 4 | header[1] >> 4,
        flow_label: u32::from_be_bytes([0, header[1] & 15, header[2], header[3]]),
        above,
    })
}

#[inline(always)]
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}

/// Skips to the first header that is not an extension. Not inlined, because few packets have extensions.
#[inline(never)]
fn skip_extensions(mut above: Above<'_>) -> Above<'_> {
    for _ in 0..MOST_EXTENSIONS {
        match above.transport {
            Some(payload) if is_extension(above.protocol) => above = after_extension(above.protocol, payload),
            _ => return above,
        }
    }
    Above {
        transport: None,
        ..above
    }
}

/// Returns what follows an extension header. If it is cut off, returns its own number without a payload.
fn after_extension(protocol: u8, payload: &[u8]) -> Above<'_> {
    let next = match protocol {
        FRAGMENT => payload.split_first_chunk::<8>().map(|(header, rest)| {
            // "More fragments", or an offset: the three low bits are two reserved ones and that flag.
            let fragment = u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0;
            (header[0], (!fragment).then_some(rest))
        }),
        // The length is in words of four bytes, minus two (RFC 4302).
        AUTHENTICATION => sized(payload, 4),
        _ => sized(payload, 8),
    };
    let (protocol, transport) = next.unwrap_or((protocol, None));
    Above { protocol, transport }
}

/// Returns what follows a header of 8 bytes plus as many units as its second byte says.
fn sized(payload: &[u8], unit: usize) -> Option<(u8, Option<&[u8]>)> {
    let header = payload.first_chunk::<2>()?;
    let rest = payload.get(8 + usize::from(header[1]) * unit..)?;
    Some((header[0], Some(rest)))
}

/// Removes padding of the link layer. A length of 0 carries no information: jumbograms, and packets captured
/// before the network card cut them into segments.
#[inline]
fn up_to(bytes: &[u8], length: usize) -> &[u8] {
    match length {
        0 => bytes,
        _ => bytes.get(..length).unwrap_or(bytes),
    }
}

/// Converts an IPv4 address to an IPv6 address, `::ffff:a.b.c.d`.
#[inline]
pub(super) fn mapped(address: [u8; 4]) -> [u8; 16] {
    (0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))).to_be_bytes()
}
