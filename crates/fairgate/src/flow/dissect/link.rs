//! The layers below IP: link headers, then tags, labels and PPPoE, down to an EtherType and its payload.

use super::{bytes_at, u16_at};
use crate::flow::ethertype::{
    IPV4, IPV6, MPLS_MULTICAST, MPLS_UNICAST, OLD_SERVICE_VLAN, PPPOE_SESSION, SERVICE_VLAN, VLAN,
};

/// Tags, labels and PPPoE headers read before giving up. Provider networks use up to two tags and a handful of labels.
const MOST_HEADERS: usize = 16;

/// The outermost header of a frame. Numbers in parentheses are those of capture files (LINKTYPE values).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet (1).
    Ethernet,
    /// None: the frame begins with an IP header, and its version tells which (101, 228, 229).
    RawIp,
    /// Linux "cooked", version 1, of captures on the interface `any` (113).
    LinuxCooked,
    /// Linux "cooked", version 2 (276).
    LinuxCooked2,
    /// BSD loopback: four bytes of address family, in either byte order (0, 108).
    Loopback,
}

/// A frame without its link layer.
pub(super) struct Stripped<'a> {
    /// Of the payload; 0 if the frame ends before it, or has none.
    pub(super) ethertype: u16,
    /// Of the outermost tag, else 0.
    pub(super) vlan: u16,
    /// From the network header on; a suffix of the frame.
    pub(super) payload: &'a [u8],
}

impl LinkType {
    /// All of them.
    pub const ALL: [LinkType; 5] = [
        LinkType::Ethernet,
        LinkType::RawIp,
        LinkType::LinuxCooked,
        LinkType::LinuxCooked2,
        LinkType::Loopback,
    ];

    /// From the number in a capture file (pcap's `network`, pcapng's `LinkType`); `None` if it is not one of ours.
    pub const fn from_linktype(number: u16) -> Option<LinkType> {
        match number {
            0 | 108 => Some(LinkType::Loopback),
            1 => Some(LinkType::Ethernet),
            // 12 and 14 are the numbers of raw IP on some BSDs.
            12 | 14 | 101 | 228 | 229 => Some(LinkType::RawIp),
            113 => Some(LinkType::LinuxCooked),
            276 => Some(LinkType::LinuxCooked2),
            _ => None,
        }
    }

    /// The number in a capture file.
    pub const fn linktype(self) -> u16 {
        match self {
            LinkType::Loopback => 0,
            LinkType::Ethernet => 1,
            LinkType::RawIp => 101,
            LinkType::LinuxCooked => 113,
            LinkType::LinuxCooked2 => 276,
        }
    }

    /// Skips everything below the network header.
    #[inline]
    pub(super) fn strip(self, frame: &[u8]) -> Stripped<'_> {
        let (ethertype, length) = match self {
            LinkType::Ethernet => (u16_at(frame, 12), 14),
            LinkType::LinuxCooked => (u16_at(frame, 14), 16),
            LinkType::LinuxCooked2 => (u16_at(frame, 0), 20),
            LinkType::RawIp => (by_version(frame), 0),
            LinkType::Loopback => (by_family(frame), 4),
        };
        // Lower numbers are lengths (802.3) or protocols without an EtherType.
        let ethertype = ethertype.unwrap_or(0);
        let ethertype = if ethertype < 0x0600 { 0 } else { ethertype };
        let payload = frame.get(length..).unwrap_or(&[]);
        match ethertype {
            IPV4 | IPV6 => Stripped {
                ethertype,
                vlan: 0,
                payload,
            },
            _ => strip_tags(ethertype, payload),
        }
    }
}

/// Skips tags, labels and PPPoE headers. Where one is cut off, its own EtherType stays.
fn strip_tags(mut ethertype: u16, mut payload: &[u8]) -> Stripped<'_> {
    let mut vlan = None;
    for _ in 0..MOST_HEADERS {
        let next = match ethertype {
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => tag(payload, &mut vlan),
            MPLS_UNICAST | MPLS_MULTICAST => label(ethertype, payload),
            PPPOE_SESSION => pppoe(payload),
            _ => None,
        };
        let Some(next) = next else { break };
        (ethertype, payload) = next;
    }
    Stripped {
        ethertype,
        vlan: vlan.unwrap_or(0),
        payload,
    }
}

/// 802.1Q and 802.1ad: priority and VLAN identifier, then the next EtherType.
fn tag<'a>(payload: &'a [u8], outermost: &mut Option<u16>) -> Option<(u16, &'a [u8])> {
    let (tag, rest) = payload.split_first_chunk::<4>()?;
    outermost.get_or_insert(u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff);
    Some((u16::from_be_bytes([tag[2], tag[3]]), rest))
}

/// MPLS (RFC 3032): labels up to the one with the bottom-of-stack bit. What follows isn't named; as all routers do we
/// look for the version of an IP header, which a pseudo-wire's control word avoids by design (RFC 4385).
fn label(ethertype: u16, payload: &[u8]) -> Option<(u16, &[u8])> {
    let (entry, rest) = payload.split_first_chunk::<4>()?;
    let bottom_of_stack = entry[2] & 1 != 0;
    let next = if bottom_of_stack {
        by_version(rest)?
    } else {
        ethertype
    };
    Some((next, rest))
}

/// PPPoE session (RFC 2516): six bytes, then the protocol number of PPP.
fn pppoe(payload: &[u8]) -> Option<(u16, &[u8])> {
    let (header, rest) = payload.split_first_chunk::<8>()?;
    let ethertype = match u16::from_be_bytes([header[6], header[7]]) {
        0x0021 => IPV4,
        0x0057 => IPV6,
        0x0281 => MPLS_UNICAST,
        0x0283 => MPLS_MULTICAST,
        _ => return None,
    };
    Some((ethertype, rest))
}

/// The EtherType of an IP packet by its version.
#[inline]
fn by_version(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

/// The EtherType by the address family of a BSD loopback header. Families are small numbers, so that the byte order
/// shows; that of IPv6 differs between systems.
fn by_family(frame: &[u8]) -> Option<u16> {
    let bytes = *bytes_at::<4>(frame, 0)?;
    let family = u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes));
    match family {
        2 => Some(IPV4),
        10 | 24 | 28 | 30 => Some(IPV6),
        _ => None,
    }
}
