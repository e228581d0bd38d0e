//! Writing "congestion experienced" into a frame.

use super::LinkType;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::packet::Ecn;

/// Sets the ECN field of the frame's IP header to CE, as a discipline's mark demands, and brings IPv4's checksum up to
/// date. Returns whether the frame now says CE: false, and nothing written, if it isn't an IP packet or its sender
/// can't do ECN (RFC 3168 section 5).
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
    let (ethertype, offset) = {
        let stripped = link.strip(frame);
        (stripped.ethertype, frame.len() - stripped.payload.len())
    };
    let packet = frame.get_mut(offset..).unwrap_or_default();
    match ethertype {
        IPV4 => set_ce_v4(packet),
        IPV6 => set_ce_v6(packet),
        _ => false,
    }
}

fn set_ce_v4(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<20>() else {
        return false;
    };
    let well_formed = header[0] >> 4 == 4 && header[0] & 15 >= 5;
    if !well_formed || !Ecn::from_bits(header[1]).is_capable() {
        return false;
    }
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= Ecn::Ce as u8;
    let after = u16::from_be_bytes([header[0], header[1]]);

    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let [high, low] = updated_checksum(checksum, before, after).to_be_bytes();
    (header[10], header[11]) = (high, low);
    true
}

fn set_ce_v6(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<40>() else {
        return false;
    };
    // The traffic class lies across two bytes; its ECN bits are in the upper half of the second.
    if header[0] >> 4 != 6 || !Ecn::from_bits(header[1] >> 4).is_capable() {
        return false;
    }
    header[1] |= (Ecn::Ce as u8) << 4;
    true
}

/// The Internet checksum after one 16-bit word changed: `~(~checksum + ~before + after)` (RFC 1624, equation 3).
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
