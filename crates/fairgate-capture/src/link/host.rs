//! Headers that operating systems put before packets that are not captured on a real link: loopback, cooked
//! frames, and logs of packet filters.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{LinkHeader, bytes_at, inner, ip, u16_at};

/// Returns the EtherType of an address family. IPv4's family is 2 everywhere. IPv6's is 10 on Linux, 23 on
/// Windows, 24 on NetBSD and OpenBSD, 26 on Solaris, 28 on FreeBSD and 30 on macOS.
fn ethertype_of(family: u32) -> Option<u16> {
    match family {
        2 => Some(IPV4),
        10 | 23 | 24 | 26 | 28 | 30 => Some(IPV6),
        _ => None,
    }
}

/// Reads an address family in either byte order: that of the capturing host, or network order. Families are
/// small numbers, so the smaller reading is right.
fn family_of(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes))
}

/// Reads an address family of four bytes.
pub(super) fn loopback(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let family = family_of(bytes_at(frame, 0)?);
    Some(LinkHeader::of(ethertype_of(family)?, frame.get(4..)?))
}

/// Reads an address family, a security parameter index and flags.
pub(super) fn enc(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let family = family_of(bytes_at(frame, 0)?);
    Some(LinkHeader::of(ethertype_of(family)?, frame.get(12..)?))
}

/// Reads a length, an address family and the rule. The header is padded to a multiple of 4.
pub(super) fn pflog(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let [length, family] = bytes_at(frame, 0)?;
    let header = usize::from(length).next_multiple_of(4);
    Some(LinkHeader::of(ethertype_of(family.into())?, frame.get(header..)?))
}

/// Reads a version and an address family. The header has 24 bytes.
pub(super) fn ipnet(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(
        ethertype_of((*frame.get(1)?).into())?,
        frame.get(24..)?,
    ))
}

/// Reads packet type, hardware type, address and protocol. Protocol numbers below 1536 are Linux's own; LLC
/// is one of them.
pub(super) fn cooked(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(protocol(u16_at(frame, 14)?)?, frame.get(16..)?))
}

/// Reads the second version of the cooked header, which starts with the protocol.
pub(super) fn cooked2(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(protocol(u16_at(frame, 0)?)?, frame.get(20..)?))
}

fn protocol(number: u16) -> Option<u16> {
    (number == LLC || number >= 0x0600).then_some(number)
}

/// Reads a netfilter log: address family, version and resource, and then attributes. An attribute has a
/// length and a type in the host's byte order, and is padded to a multiple of 4. One attribute is the packet.
pub(super) fn nflog(frame: &[u8]) -> Option<LinkHeader<'_>> {
    const PAYLOAD: u16 = 9;
    /// This is more than the number of attribute types of the kernel.
    const MOST_ATTRIBUTES: usize = 64;
    let mut attributes = frame.get(4..)?;
    for _ in 0..MOST_ATTRIBUTES {
        let header: [u8; 4] = bytes_at(attributes, 0)?;
        let number = |at: usize| [header[at], header[at + 1]];
        // Types are below 256, so the smaller reading shows the byte order.
        let kind = u16::from_le_bytes(number(2)).min(u16::from_be_bytes(number(2)));
        let length = match u16::from_le_bytes(number(2)) == kind {
            true => u16::from_le_bytes(number(0)),
            false => u16::from_be_bytes(number(0)),
        };
        if kind & 0x7fff == PAYLOAD {
            return ip(attributes.get(4..)?);
        }
        attributes = attributes.get(usize::from(length.max(4)).next_multiple_of(4)..)?;
    }
    None
}

/// Reads Apple's header: its length, the record type, and the link type of the frame after it, little endian.
pub(super) fn pktap(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let length = u32::from_le_bytes(bytes_at(frame, 0)?);
    let link = u32::from_le_bytes(bytes_at(frame, 8)?);
    inner(link, frame.get(usize::try_from(length).ok()?..)?)
}
