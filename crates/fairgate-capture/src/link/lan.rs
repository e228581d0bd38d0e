//! Local networks: Ethernet alone and behind headers of switches and cards, and those with LLC from the
//! start.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{Lower, bytes_at, ip, u16_at};

/// Of an Ethernet frame that is captured with its frame check sequence.
const CHECK_SEQUENCE: u8 = 4;

/// Destination, source, EtherType.
pub(super) fn ethernet(frame: &[u8]) -> Option<Lower<'_>> {
    ethertype_at(frame, 12)
}

/// An EtherType in network order, and its payload behind it.
fn ethertype_at(frame: &[u8], offset: usize) -> Option<Lower<'_>> {
    Some(Lower::of(u16_at(frame, offset)?, frame.get(offset + 2..)?))
}

/// Ethernet behind the tag of a switch.
pub(super) fn behind_4(frame: &[u8]) -> Option<Lower<'_>> {
    ethernet(frame.get(4..)?)
}

/// Ethernet behind a preamble: of EPON, with the logical link in it; of frames that may be interrupted
/// (802.3br).
pub(super) fn behind_preamble(frame: &[u8]) -> Option<Lower<'_>> {
    ethernet(frame.get(8..)?)
}

/// Ethernet with a switch's tag of 4 bytes between source and EtherType.
pub(super) fn tagged_by_4(frame: &[u8]) -> Option<Lower<'_>> {
    ethertype_at(frame, 16)
}

/// The same with 8 bytes.
pub(super) fn tagged_by_8(frame: &[u8]) -> Option<Lower<'_>> {
    ethertype_at(frame, 20)
}

/// The LANE header, then Ethernet.
pub(super) fn lane(frame: &[u8]) -> Option<Lower<'_>> {
    ethernet(frame.get(2..)?)
}

/// Four bytes of the analyzer's, then Ethernet with its check sequence.
pub(super) fn netanalyzer(frame: &[u8]) -> Option<Lower<'_>> {
    Some(ethernet(frame.get(4..)?)?.with_trailer(CHECK_SEQUENCE))
}

/// The same, with the preamble captured too.
pub(super) fn netanalyzer_transparent(frame: &[u8]) -> Option<Lower<'_>> {
    Some(behind_preamble(frame.get(4..)?)?.with_trailer(CHECK_SEQUENCE))
}

/// Global route header of 40 bytes, then EtherType and two bytes that mean nothing (RFC 4391).
pub(super) fn infiniband(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(u16_at(frame, 40)?, frame.get(44..)?))
}

/// Destination and source of 8 bytes, EtherType.
pub(super) fn ieee1394(frame: &[u8]) -> Option<Lower<'_>> {
    ethertype_at(frame, 16)
}

/// Access control, frame control, destination, source; behind them a source route, if the first bit of the
/// source says so, whose length is in the lowest five bits of its first byte (802.5).
pub(super) fn token_ring(frame: &[u8]) -> Option<Lower<'_>> {
    const LLC_FRAME: u8 = 0x40;
    if frame.get(1)? & 0xc0 != LLC_FRAME {
        return None;
    }
    let has_route = frame.get(8)? & 0x80 != 0;
    let route = if has_route { frame.get(14)? & 0x1f } else { 0 };
    Some(Lower::of(LLC, frame.get(14 + usize::from(route)..)?))
}

/// Frame control, destination, source (ANSI X3.139). 0x50: asynchronous LLC, 0xd0: synchronous.
pub(super) fn fddi(frame: &[u8]) -> Option<Lower<'_>> {
    match frame.first()? & 0xf0 {
        0x50 | 0xd0 => Some(Lower::of(LLC, frame.get(13..)?)),
        _ => None,
    }
}

/// Network header of destination and source (RFC 2625).
pub(super) fn fibre_channel(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(LLC, frame.get(16..)?))
}

/// Source, destination, type; newer types have a split flag and a sequence number (RFC 1201).
pub(super) fn arcnet(frame: &[u8]) -> Option<Lower<'_>> {
    arcnet_from(frame, 2)
}

/// Linux has an offset of two bytes before the type.
pub(super) fn arcnet_linux(frame: &[u8]) -> Option<Lower<'_>> {
    arcnet_from(frame, 4)
}

fn arcnet_from(frame: &[u8], at: usize) -> Option<Lower<'_>> {
    const IPV4_OLD: u8 = 240;
    const IPV4_NEW: u8 = 212;
    const IPV6_NEW: u8 = 196;
    let kind = *frame.get(at)?;
    let ethertype = match kind {
        IPV4_OLD => return Some(Lower::of(IPV4, frame.get(at + 1..)?)),
        IPV4_NEW => IPV4,
        IPV6_NEW => IPV6,
        _ => return None,
    };
    // 0xff: an exception packet, which has the three bytes once more. Later fragments (an even flag) have no
    // IP header.
    let header = match *frame.get(at + 1)? {
        0xff => at + 8,
        flag if flag & 1 == 0 && flag != 0 => return None,
        _ => at + 4,
    };
    Some(Lower::of(ethertype, frame.get(header..)?))
}

/// Frame control, one byte, length of two, header check of two (DOCSIS MAC): packets are Ethernet. With an
/// extended header the packet may be encrypted.
pub(super) fn docsis(frame: &[u8]) -> Option<Lower<'_>> {
    match frame.first()? {
        0 => ethernet(frame.get(6..)?),
        _ => None,
    }
}

/// Endace's extensible record format: 16 bytes, with the kind of record at 8; bit 7 announces extension
/// headers of 8 bytes, each of which announces the next likewise.
pub(super) fn erf(frame: &[u8]) -> Option<Lower<'_>> {
    const MOST_EXTENSIONS: usize = 16;
    let kind = *frame.get(8)?;
    let (mut more, mut at) = (kind & 0x80 != 0, 16);
    for _ in 0..MOST_EXTENSIONS {
        if !more {
            break;
        }
        let [first] = bytes_at(frame, at)?;
        (more, at) = (first & 0x80 != 0, at + 8);
    }
    let record = frame.get(at..)?;
    match kind & 0x7f {
        // HDLC and its colour and channel variants.
        1 | 10 => super::wan::ppp_or_hdlc(record),
        // Ethernet, which an offset and a byte of padding precede.
        2 | 11 | 16 => Some(ethernet(record.get(2..)?)?.with_trailer(CHECK_SEQUENCE)),
        22 | 23 => ip(record),
        _ => None,
    }
}
