//! Parses the layers below IP: the link-layer header, then tags, labels, LLC, PPPoE and PPP. The result is an
//! EtherType and its payload.

use super::u16_at;
use crate::flow::ethertype::{
    FIRST, IPV4, IPV6, LONGEST_LLC, MPLS_MULTICAST, MPLS_UNICAST, OLD_SERVICE_VLAN, PPP, PPPOE_SESSION,
    SERVICE_VLAN, VLAN,
};

/// The maximum number of tags, labels and similar headers that are read. Provider networks use up to two tags
/// and a few labels.
const MOST_HEADERS: usize = 16;

/// The link layer: the outermost header of a frame. `fairgate-capture` reads link layers that only captures
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// No header: the frame begins with an IP header, whose version identifies it.
    RawIp,
}

/// A frame after its link layer was removed.
pub(super) struct Stripped<'a> {
    /// The EtherType of the payload. It is 0 if the frame ends before it, or has none.
    pub(super) ethertype: u16,
    /// The EtherType of the frame's own header, or 0 if it has none.
    pub(super) outer_ethertype: u16,
    /// The VLAN identifier of the outermost tag, or 0.
    pub(super) vlan: u16,
    /// The bytes from the network header on. They are a suffix of the frame.
    pub(super) payload: &'a [u8],
}

impl LinkType {
    /// All link layers.
    pub const ALL: [LinkType; 2] = [LinkType::Ethernet, LinkType::RawIp];

    /// Skips all headers below the network header.
    #[inline]
    pub(super) fn strip(self, frame: &[u8]) -> Stripped<'_> {
        let (ethertype, length) = match self {
            LinkType::Ethernet => (u16_at(frame, 12), 14),
            LinkType::RawIp => (by_version(frame), 0),
        };
        strip_payload(ethertype.unwrap_or(0), frame.get(length..).unwrap_or(&[]))
    }
}

/// Skips all headers between `payload`, which is of type `ethertype`, and the network header.
#[inline]
pub(super) fn strip_payload(ethertype: u16, payload: &[u8]) -> Stripped<'_> {
    match ethertype {
        IPV4 | IPV6 => Stripped {
            ethertype,
            outer_ethertype: ethertype,
            vlan: 0,
            payload,
        },
        _ => strip_headers(ethertype, payload),
    }
}

/// Skips tags, labels, LLC, PPPoE and PPP. If one is cut off, its own EtherType is the result.
fn strip_headers(outer: u16, mut payload: &[u8]) -> Stripped<'_> {
    // Lower numbers are lengths, or protocols without an EtherType.
    let known = |ethertype: u16| if ethertype < FIRST { 0 } else { ethertype };
    let (mut ethertype, mut vlan) = (outer, None);
    for _ in 0..MOST_HEADERS {
        let next = match ethertype {
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => tag(payload, &mut vlan),
            MPLS_UNICAST | MPLS_MULTICAST => label(ethertype, payload),
            PPPOE_SESSION => pppoe(payload),
            PPP => ppp(payload),
            1..=LONGEST_LLC => llc(payload),
            _ => None,
        };
        let Some(next) = next else { break };
        (ethertype, payload) = next;
    }
    Stripped {
        ethertype: known(ethertype),
        outer_ethertype: known(outer),
        vlan: vlan.unwrap_or(0),
        payload,
    }
}

/// Parses 802.1Q and 802.1ad: priority and VLAN identifier, then the next EtherType.
fn tag<'a>(payload: &'a [u8], outermost: &mut Option<u16>) -> Option<(u16, &'a [u8])> {
    let (tag, rest) = payload.split_first_chunk::<4>()?;
    outermost.get_or_insert(u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff);
    Some((u16::from_be_bytes([tag[2], tag[3]]), rest))
}

/// Parses MPLS (RFC 3032): labels to the one with the bottom-of-stack bit. The next header is not announced.
/// As all routers do, we look for the version of an IP header. A pseudo-wire's control word is designed not
/// to look like one (RFC 4385).
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

/// Parses a PPPoE session header (RFC 2516): six bytes, then the protocol number of PPP.
fn pppoe(payload: &[u8]) -> Option<(u16, &[u8])> {
    ppp(payload.get(6..)?)
}

/// Parses PPP (RFC 1661): a protocol number. It has one byte if both ends agreed to it, which the lowest bit
/// shows.
fn ppp(payload: &[u8]) -> Option<(u16, &[u8])> {
    let first = *payload.first()?;
    let (protocol, rest) = match first & 1 {
        1 => (u16::from(first), &payload[1..]),
        _ => (u16_at(payload, 0)?, &payload[2..]),
    };
    let ethertype = match protocol {
        0x0021 => IPV4,
        0x0057 => IPV6,
        0x0281 => MPLS_UNICAST,
        0x0283 => MPLS_MULTICAST,
        _ => return None,
    };
    Some((ethertype, rest))
}

/// Parses 802.2 LLC with unnumbered information. The service access points are those of IP, or SNAP with an
/// EtherType (RFC 1042). The identifier 0000f8 is used by bridges for translated frames that already had an
/// EtherType (802.1H).
fn llc(payload: &[u8]) -> Option<(u16, &[u8])> {
    match *payload {
        [0x06, 0x06, 0x03, ref packet @ ..] => Some((IPV4, packet)),
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low, ref rest @ ..] => {
            let ethertype = u16::from_be_bytes([high, low]);
            (ethertype >= FIRST).then_some((ethertype, rest))
        }
        _ => None,
    }
}

/// Returns the EtherType of an IP packet by its version.
#[inline]
fn by_version(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
