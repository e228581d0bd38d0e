//! The layers below IP: the link header, then tags, labels, LLC, PPPoE and PPP, down to an EtherType and its
//! payload.

use super::u16_at;
use crate::flow::ethertype::{
    FIRST, IPV4, IPV6, LONGEST_LLC, MPLS_MULTICAST, MPLS_UNICAST, OLD_SERVICE_VLAN, PPP, PPPOE_SESSION,
    SERVICE_VLAN, VLAN,
};

/// Tags, labels and the like read before giving up. Provider networks use up to two tags and a handful of
/// labels.
const MOST_HEADERS: usize = 16;

/// The outermost header of a frame. Those of capture files alone are read by `fairgate-capture`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// None: the frame begins with an IP header, and its version tells which.
    RawIp,
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
    pub const ALL: [LinkType; 2] = [LinkType::Ethernet, LinkType::RawIp];

    /// Skips everything below the network header.
    #[inline]
    pub(super) fn strip(self, frame: &[u8]) -> Stripped<'_> {
        let (ethertype, length) = match self {
            LinkType::Ethernet => (u16_at(frame, 12), 14),
            LinkType::RawIp => (by_version(frame), 0),
        };
        strip_payload(ethertype.unwrap_or(0), frame.get(length..).unwrap_or(&[]))
    }
}

/// Skips what lies between `payload`, which is what `ethertype` says, and the network header.
#[inline]
pub(super) fn strip_payload(ethertype: u16, payload: &[u8]) -> Stripped<'_> {
    match ethertype {
        IPV4 | IPV6 => Stripped {
            ethertype,
            vlan: 0,
            payload,
        },
        _ => strip_headers(ethertype, payload),
    }
}

/// Skips tags, labels, LLC, PPPoE and PPP. Where one is cut off, its own EtherType stays.
fn strip_headers(mut ethertype: u16, mut payload: &[u8]) -> Stripped<'_> {
    let mut vlan = None;
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
        // Lower numbers are lengths or protocols without an EtherType.
        ethertype: if ethertype < FIRST { 0 } else { ethertype },
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
    ppp(payload.get(6..)?)
}

/// PPP (RFC 1661): a protocol number, of one byte if the ends have agreed to it, which the lowest bit shows.
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

/// 802.2 LLC: unnumbered information between service access points; that of IP, or SNAP with an EtherType
/// (RFC 1042; 0000f8 is how bridges translate frames that already had one, 802.1H).
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

/// The EtherType of an IP packet by its version.
#[inline]
fn by_version(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
