//! IPv4 and IPv6: addresses, traffic class, and where the transport header is.

use crate::flow::FlowKey;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::flow::numbers::protocol::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, HOST_IDENTITY, MOBILITY, ROUTING, SHIM6,
};

/// Extension headers read before giving up; RFC 8200 lists eight in one packet at most, in its recommended order.
const MOST_EXTENSIONS: usize = 10;

/// A packet whose fixed IP header is whole; addresses, traffic class and protocol are in the key.
pub(super) struct Network<'a> {
    /// The transport header and all after it, if the packet isn't a fragment and reaches that far.
    pub(super) transport: Option<&'a [u8]>,
}

/// Reads the IP header of `packet` as `key.ethertype` says. `None`, and nothing written, if it is none.
#[inline]
pub(super) fn read<'a>(packet: &'a [u8], key: &mut FlowKey) -> Option<Network<'a>> {
    match key.ethertype {
        IPV4 => read_v4(packet, key),
        IPV6 => read_v6(packet, key),
        _ => None,
    }
}

#[inline]
fn read_v4<'a>(packet: &'a [u8], key: &mut FlowKey) -> Option<Network<'a>> {
    let header = packet.first_chunk::<20>()?;
    let header_length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || header_length < 20 {
        return None;
    }
    key.source = mapped([header[12], header[13], header[14], header[15]]);
    key.destination = mapped([header[16], header[17], header[18], header[19]]);
    key.traffic_class = header[1];
    key.protocol = header[9];

    // "More fragments", or an offset.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if fragment {
        return Some(Network { transport: None });
    }
    let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let transport = up_to(packet, total_length).get(header_length..);
    let transport = match key.protocol {
        AUTHENTICATION => transport.and_then(|payload| authentication(payload, key)),
        _ => transport,
    };
    Some(Network { transport })
}

#[inline]
fn read_v6<'a>(packet: &'a [u8], key: &mut FlowKey) -> Option<Network<'a>> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    key.source.copy_from_slice(&header[8..24]);
    key.destination.copy_from_slice(&header[24..40]);
    key.traffic_class = header[0] << 4 | header[1] >> 4;
    key.flow_label = u32::from_be_bytes([0, header[1] & 15, header[2], header[3]]);
    key.protocol = header[6];

    let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let payload = up_to(&packet[40..], payload_length);
    Some(Network {
        transport: skip_extensions(payload, key),
    })
}

/// Walks to the header that isn't an extension, and notes its protocol.
fn skip_extensions<'a>(mut payload: &'a [u8], key: &mut FlowKey) -> Option<&'a [u8]> {
    for _ in 0..MOST_EXTENSIONS {
        payload = match key.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                let header = payload.first_chunk::<2>()?;
                let rest = payload.get(8 + usize::from(header[1]) * 8..)?;
                key.protocol = header[0];
                rest
            }
            FRAGMENT => {
                let (header, rest) = payload.split_first_chunk::<8>()?;
                key.protocol = header[0];
                // "More fragments", or an offset: the three low bits are two reserved ones and that flag.
                let fragment = u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0;
                if fragment {
                    return None;
                }
                rest
            }
            AUTHENTICATION => authentication(payload, key)?,
            _ => return Some(payload),
        };
    }
    None
}

/// Skips an authentication header (RFC 4302): its length is counted in words of four bytes, less two.
fn authentication<'a>(payload: &'a [u8], key: &mut FlowKey) -> Option<&'a [u8]> {
    let header = payload.first_chunk::<2>()?;
    let rest = payload.get(8 + usize::from(header[1]) * 4..)?;
    key.protocol = header[0];
    Some(rest)
}

/// Cuts what the link layer padded. A length of 0 tells nothing: jumbograms, and packets captured before the network
/// card cut them into segments.
#[inline]
fn up_to(bytes: &[u8], length: usize) -> &[u8] {
    match length {
        0 => bytes,
        _ => bytes.get(..length).unwrap_or(bytes),
    }
}

/// An IPv4 address as an IPv6 one, `::ffff:a.b.c.d`.
#[inline]
fn mapped([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}
