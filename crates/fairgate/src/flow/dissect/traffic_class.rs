//! Writes a discipline's decisions into a frame: congestion experienced, or another DSCP.

use super::LinkType;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::packet::Ecn;

/// Sets the ECN field of the frame's IP header to CE and updates IPv4's checksum. Returns whether the frame
/// is now marked with CE. If it is not an IP packet, or its sender does not support ECN (RFC 3168 section 5),
/// returns false and writes nothing.
///
/// ```
/// use fairgate::flow::{LinkType, set_ce};
/// // IPv4 with ECT(0), checksum 0xb6e1.
/// let mut packet = *b"\x45\x02\x00\x14\x00\x00\x00\x00\x40\x06\xb6\xe1\xc0\x00\x02\x01\xc0\x00\x02\x02";
/// assert!(set_ce(&mut packet, LinkType::RawIp));
/// assert_eq!(packet[1], 0x03);
/// assert_eq!(packet[10..12], [0xb6, 0xe0]);
/// ```
pub fn set_ce(frame: &mut [u8], link: LinkType) -> bool {
    change(frame, link, |class| {
        Ecn::from_bits(class)
            .is_capable()
            .then_some(class | Ecn::Ce as u8)
    })
}

/// Sets the six DSCP bits of the frame's IP header and updates IPv4's checksum. If it is not an IP packet,
/// returns false and writes nothing. Bits of `dscp` above the sixth are ignored.
///
/// ```
/// use fairgate::flow::{LinkType, set_dscp};
/// // IPv4 with DSCP 0 and ECT(0), checksum 0xb6e1.
/// let mut packet = *b"\x45\x02\x00\x14\x00\x00\x00\x00\x40\x06\xb6\xe1\xc0\x00\x02\x01\xc0\x00\x02\x02";
/// assert!(set_dscp(&mut packet, LinkType::RawIp, 8));
/// assert_eq!(packet[1], 8 << 2 | 2);
/// assert_eq!(packet[10..12], [0xb6, 0xc1]);
/// ```
pub fn set_dscp(frame: &mut [u8], link: LinkType, dscp: u8) -> bool {
    change(frame, link, |class| Some(dscp << 2 | class & 3))
}

/// Replaces the traffic class of the frame's IP header by the result of `to`. If there is no such header, or
/// `to` returns `None`, returns false and writes nothing.
fn change(frame: &mut [u8], link: LinkType, to: impl Fn(u8) -> Option<u8>) -> bool {
    let (ethertype, offset) = {
        let stripped = link.strip(frame);
        (stripped.ethertype, frame.len() - stripped.payload.len())
    };
    let packet = frame.get_mut(offset..).unwrap_or_default();
    match ethertype {
        IPV4 => change_v4(packet, to),
        IPV6 => change_v6(packet, to),
        _ => false,
    }
}

fn change_v4(packet: &mut [u8], to: impl Fn(u8) -> Option<u8>) -> bool {
    let Some(header) = packet.first_chunk_mut::<20>() else {
        return false;
    };
    if header[0] >> 4 != 4 || header[0] & 15 < 5 {
        return false;
    }
    let Some(class) = to(header[1]) else {
        return false;
    };
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] = class;
    let after = u16::from_be_bytes([header[0], header[1]]);

    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let [high, low] = updated_checksum(checksum, before, after).to_be_bytes();
    (header[10], header[11]) = (high, low);
    true
}

fn change_v6(packet: &mut [u8], to: impl Fn(u8) -> Option<u8>) -> bool {
    let Some(header) = packet.first_chunk_mut::<40>() else {
        return false;
    };
    if header[0] >> 4 != 6 {
        return false;
    }
    // The traffic class extends over two bytes.
    let Some(class) = to(header[0] << 4 | header[1] >> 4) else {
        return false;
    };
    header[0] = 6 << 4 | class >> 4;
    header[1] = class << 4 | header[1] & 15;
    true
}

/// Returns the Internet checksum after one 16-bit word was changed: `~(~checksum + ~before + after)` (RFC
/// 1624, equation 3).
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
