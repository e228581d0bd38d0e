//! Local networks: Ethernet, Ethernet after headers of switches and capture cards, and networks that start
//! with LLC.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{LinkHeader, u16_at};

/// The length of a captured Ethernet frame check sequence.
pub(super) const CHECK_SEQUENCE: u8 = 4;

/// Reads destination, source and EtherType.
pub(super) fn ethernet(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethertype_at(frame, 12)
}

/// Reads an EtherType in network order, which the payload follows.
fn ethertype_at(frame: &[u8], offset: usize) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(u16_at(frame, offset)?, frame.get(offset + 2..)?))
}

/// Reads Ethernet after a switch tag of 4 bytes.
pub(super) fn behind_4(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethernet(frame.get(4..)?)
}

/// Reads Ethernet after a preamble: that of EPON, which contains the logical link, or that of frames that may
/// be preempted (802.3br).
pub(super) fn behind_preamble(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethernet(frame.get(8..)?)
}

/// Reads Ethernet with a switch tag of 4 bytes between source and EtherType.
pub(super) fn tagged_by_4(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethertype_at(frame, 16)
}

/// Reads Ethernet with a switch tag of 8 bytes between source and EtherType.
pub(super) fn tagged_by_8(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethertype_at(frame, 20)
}

/// Reads the LANE header, and then Ethernet.
pub(super) fn lane(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethernet(frame.get(2..)?)
}

/// Reads four bytes of the analyser, and then Ethernet with its check sequence.
pub(super) fn netanalyzer(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(ethernet(frame.get(4..)?)?.with_trailer(CHECK_SEQUENCE))
}

/// Reads four bytes of the analyser and the preamble, and then Ethernet with its check sequence.
pub(super) fn netanalyzer_transparent(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(behind_preamble(frame.get(4..)?)?.with_trailer(CHECK_SEQUENCE))
}

/// Reads the global route header of 40 bytes, the EtherType and two unused bytes (RFC 4391).
pub(super) fn infiniband(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(u16_at(frame, 40)?, frame.get(44..)?))
}

/// Reads destination and source of 8 bytes, and the EtherType.
pub(super) fn ieee1394(frame: &[u8]) -> Option<LinkHeader<'_>> {
    ethertype_at(frame, 16)
}

/// Reads access control, frame control, destination and source (802.5). If the first bit of the source is
/// set, a source route follows. Its length is in the lowest five bits of its first byte.
pub(super) fn token_ring(frame: &[u8]) -> Option<LinkHeader<'_>> {
    const LLC_FRAME: u8 = 0x40;
    if frame.get(1)? & 0xc0 != LLC_FRAME {
        return None;
    }
    let has_route = frame.get(8)? & 0x80 != 0;
    let route = if has_route { frame.get(14)? & 0x1f } else { 0 };
    Some(LinkHeader::of(LLC, frame.get(14 + usize::from(route)..)?))
}

/// Reads frame control, destination and source (ANSI X3.139). 0x50 is asynchronous LLC, 0xd0 is synchronous
/// LLC.
pub(super) fn fddi(frame: &[u8]) -> Option<LinkHeader<'_>> {
    match frame.first()? & 0xf0 {
        0x50 | 0xd0 => Some(LinkHeader::of(LLC, frame.get(13..)?)),
        _ => None,
    }
}

/// Reads the network header with destination and source (RFC 2625).
pub(super) fn fibre_channel(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(LLC, frame.get(16..)?))
}

/// Reads source, destination and type. Newer types have a split flag and a sequence number (RFC 1201).
pub(super) fn arcnet(frame: &[u8]) -> Option<LinkHeader<'_>> {
    arcnet_from(frame, 2)
}

/// Reads Linux's header, which has an offset of two bytes before the type.
pub(super) fn arcnet_linux(frame: &[u8]) -> Option<LinkHeader<'_>> {
    arcnet_from(frame, 4)
}

fn arcnet_from(frame: &[u8], at: usize) -> Option<LinkHeader<'_>> {
    const IPV4_OLD: u8 = 240;
    const IPV4_NEW: u8 = 212;
    const IPV6_NEW: u8 = 196;
    let kind = *frame.get(at)?;
    let ethertype = match kind {
        IPV4_OLD => return Some(LinkHeader::of(IPV4, frame.get(at + 1..)?)),
        IPV4_NEW => IPV4,
        IPV6_NEW => IPV6,
        _ => return None,
    };
    // 0xff marks an exception packet, which repeats the three bytes. Later fragments (an even flag) have no
    // IP header.
    let header = match *frame.get(at + 1)? {
        0xff => at + 8,
        flag if flag & 1 == 0 && flag != 0 => return None,
        _ => at + 4,
    };
    Some(LinkHeader::of(ethertype, frame.get(header..)?))
}

/// Reads frame control, one byte, a length of two bytes and a header check of two bytes (DOCSIS MAC). Packets
/// are Ethernet. With an extended header the packet may be encrypted.
pub(super) fn docsis(frame: &[u8]) -> Option<LinkHeader<'_>> {
    match frame.first()? {
        0 => ethernet(frame.get(6..)?),
        _ => None,
    }
}
