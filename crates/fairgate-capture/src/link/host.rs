//! What operating systems put before a packet that they show at no real link: loopback, cooked frames, logs
//! of filters.

use fairgate::flow::ethertype::{IPV4, IPV6, LLC};

use super::{Lower, bytes_at, inner, ip, u16_at};

/// The EtherType of an address family. IPv4's is 2 everywhere; IPv6's is 10 on Linux, 23 on Windows, 24 on
/// NetBSD and OpenBSD, 26 on Solaris, 28 on FreeBSD and 30 on macOS.
fn ethertype_of(family: u32) -> Option<u16> {
    match family {
        2 => Some(IPV4),
        10 | 23 | 24 | 26 | 28 | 30 => Some(IPV6),
        _ => None,
    }
}

/// Families are small numbers, so that the byte order shows: it is the capturing host's, or that of the
/// network.
fn family_of(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes))
}

/// Four bytes of address family.
pub(super) fn loopback(frame: &[u8]) -> Option<Lower<'_>> {
    let family = family_of(bytes_at(frame, 0)?);
    Some(Lower::of(ethertype_of(family)?, frame.get(4..)?))
}

/// Address family, security parameter index, flags.
pub(super) fn enc(frame: &[u8]) -> Option<Lower<'_>> {
    let family = family_of(bytes_at(frame, 0)?);
    Some(Lower::of(ethertype_of(family)?, frame.get(12..)?))
}

/// Length and address family, then what the rule was; filled up to a multiple of 4.
pub(super) fn pflog(frame: &[u8]) -> Option<Lower<'_>> {
    let [length, family] = bytes_at(frame, 0)?;
    let header = usize::from(length).next_multiple_of(4);
    Some(Lower::of(ethertype_of(family.into())?, frame.get(header..)?))
}

/// Version and address family; 24 bytes.
pub(super) fn ipnet(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(
        ethertype_of((*frame.get(1)?).into())?,
        frame.get(24..)?,
    ))
}

/// Packet type, kind of hardware, address, protocol. Numbers below 1536 are Linux's own, of which LLC is one.
pub(super) fn cooked(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(protocol(u16_at(frame, 14)?)?, frame.get(16..)?))
}

/// The same with the protocol first.
pub(super) fn cooked2(frame: &[u8]) -> Option<Lower<'_>> {
    Some(Lower::of(protocol(u16_at(frame, 0)?)?, frame.get(20..)?))
}

fn protocol(number: u16) -> Option<u16> {
    (number == LLC || number >= 0x0600).then_some(number)
}

/// Netfilter's log: address family, version, resource; then attributes of a length and a type in the host's
/// order, each filled up to a multiple of 4. The packet is one of them.
pub(super) fn nflog(frame: &[u8]) -> Option<Lower<'_>> {
    const PAYLOAD: u16 = 9;
    /// More than the kernel has kinds of attributes.
    const MOST_ATTRIBUTES: usize = 64;
    let mut attributes = frame.get(4..)?;
    for _ in 0..MOST_ATTRIBUTES {
        let header: [u8; 4] = bytes_at(attributes, 0)?;
        let number = |at: usize| [header[at], header[at + 1]];
        // Types are below 256, so that the byte order shows.
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

/// Apple's: length of the header, kind of record, link type of the frame behind it, little endian.
pub(super) fn pktap(frame: &[u8]) -> Option<Lower<'_>> {
    let length = u32::from_le_bytes(bytes_at(frame, 0)?);
    let link = u32::from_le_bytes(bytes_at(frame, 8)?);
    inner(link, frame.get(usize::try_from(length).ok()?..)?)
}
