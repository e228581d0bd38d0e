//! Reads the link-layer header of a captured frame: the EtherType, and the start of the payload.
//!
//! Source: the registry of link types (draft-ietf-opsawg-pcaplinktype), which specifies the layout of each.
//! Live traffic has only Ethernet and raw IP. `fairgate::flow` reads everything after the EtherType,
//! including tags, labels, LLC, PPPoE and PPP.
//!
//! A frame counts as a frame of unknown content, with EtherType 0, if its header is cut off, is malformed or
//! has no EtherType. An example of the last case is a management frame of 802.11.

mod erf;
mod host;
mod lan;
mod wan;
mod wifi;

use std::fmt;

use fairgate::flow::ethertype::{IPV4, IPV6, LLC, MPLS_UNICAST, PPP, PPPOE_SESSION};

/// A link layer, by its number in capture files (LINKTYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(u16);

/// Reads the link-layer header of a frame. Returns `None` if it has no payload of a known kind.
type Reader = fn(&[u8]) -> Option<LinkHeader<'_>>;

/// The content of a link-layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkHeader<'a> {
    /// The EtherType of the payload for `fairgate::flow::dissect_payload`; 0 if it is unknown.
    pub(crate) ethertype: u16,
    /// The bytes after the header: a suffix of the frame.
    pub(crate) payload: &'a [u8],
    /// The number of bytes after the payload in the original frame: a frame check sequence.
    pub(crate) trailer: u8,
    /// Source and destination of a frame with an encrypted payload.
    pub(crate) stations: Option<[[u8; 6]; 2]>,
}

impl<'a> LinkHeader<'a> {
    /// Creates a header with a payload and no other information.
    fn of(ethertype: u16, payload: &'a [u8]) -> LinkHeader<'a> {
        LinkHeader {
            ethertype,
            payload,
            trailer: 0,
            stations: None,
        }
    }

    /// Returns the header with `count` more bytes after the payload.
    fn with_trailer(self, count: u8) -> LinkHeader<'a> {
        LinkHeader {
            trailer: self.trailer + count,
            ..self
        }
    }
}

/// All supported link types: number, name and reader.
const KNOWN: &[(u16, &str, Reader)] = &[
    (0, "BSD loopback", host::loopback),
    (1, "Ethernet", lan::ethernet),
    (6, "token ring", lan::token_ring),
    (7, "ARCNET", lan::arcnet),
    (8, "SLIP", wan::slip),
    (9, "PPP", wan::ppp),
    (10, "FDDI", lan::fddi),
    (11, "LLC over ATM", llc),
    (12, "raw IP", ip),
    (14, "raw IP", ip),
    (50, "PPP in HDLC framing", wan::ppp_or_hdlc),
    (51, "PPPoE", pppoe),
    (100, "LLC over ATM", llc),
    (101, "raw IP", ip),
    (104, "Cisco HDLC", wan::hdlc),
    (105, "802.11", wifi::frame),
    (106, "IP over ATM", wan::atm_clip),
    (107, "frame relay", wan::frame_relay),
    (108, "OpenBSD loopback", host::loopback),
    (109, "OpenBSD enc", host::enc),
    (110, "802.3 over ATM LANE", lan::lane),
    (113, "Linux cooked", host::cooked),
    (117, "PF log", host::pflog),
    (119, "802.11 with Prism", wifi::prism),
    (122, "IP over Fibre Channel", lan::fibre_channel),
    (123, "SunATM", wan::sun_atm),
    (127, "802.11 with radiotap", wifi::radiotap),
    (129, "ARCNET, Linux", lan::arcnet_linux),
    (138, "IP over 1394", lan::ieee1394),
    (143, "DOCSIS", lan::docsis),
    (163, "802.11 with AVS", wifi::avs),
    (166, "PPP of pppd", wan::ppp_of_pppd),
    (167, "Juniper PPPoE", wan::juniper_ethernet),
    (175, "ERF", erf::erf),
    (176, "ERF", erf::erf),
    (178, "Juniper Ethernet", wan::juniper_ethernet),
    (179, "Juniper PPP", wan::juniper_ppp),
    (180, "Juniper frame relay", wan::juniper_frame_relay),
    (181, "Juniper HDLC", wan::juniper_hdlc),
    (182, "multi-link frame relay", wan::multilink_frame_relay),
    (192, "PPI", wifi::ppi),
    (197, "ERF", erf::erf),
    (204, "PPP with direction", wan::ppp_with_direction),
    (205, "Cisco HDLC with direction", wan::hdlc_with_direction),
    (206, "frame relay with direction", wan::frame_relay_with_direction),
    (219, "MPLS", mpls),
    (226, "Solaris IPNET", host::ipnet),
    (228, "IPv4", ipv4),
    (229, "IPv6", ipv6),
    (239, "NFLOG", host::nflog),
    (240, "netANALYZER", lan::netanalyzer),
    (241, "netANALYZER, transparent", lan::netanalyzer_transparent),
    (242, "IP over InfiniBand", lan::infiniband),
    (258, "Apple PKTAP", host::pktap),
    (259, "Ethernet in EPON", lan::behind_preamble),
    (274, "Ethernet mPackets", lan::behind_preamble),
    (276, "Linux cooked 2", host::cooked2),
    (281, "Ethernet with Broadcom's tag", lan::tagged_by_4),
    (282, "Ethernet behind Broadcom's tag", lan::behind_4),
    (284, "Ethernet with DSA's tag", lan::tagged_by_4),
    (285, "Ethernet with EDSA's tag", lan::tagged_by_8),
];

impl LinkType {
    /// BSD loopback.
    pub const LOOPBACK: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP.
    pub const RAW_IP: LinkType = LinkType(101);
    /// 802.11 without a radio header.
    pub const WIFI: LinkType = LinkType(105);

    /// Returns all supported link types.
    pub fn all() -> impl Iterator<Item = LinkType> {
        KNOWN.iter().map(|known| LinkType(known.0))
    }

    /// Converts the number in a capture file. Returns `None` if the link type is not supported.
    pub fn from_number(number: u16) -> Option<LinkType> {
        find(number).map(|_| LinkType(number))
    }

    /// Returns the number in capture files.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        find(self.0).map_or("unknown", |known| known.1)
    }

    /// Reads the link-layer header of a frame.
    pub(crate) fn read(self, frame: &[u8]) -> LinkHeader<'_> {
        find(self.0)
            .and_then(|known| known.2(frame))
            .unwrap_or(LinkHeader::of(0, &[]))
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

fn find(number: u16) -> Option<&'static (u16, &'static str, Reader)> {
    let at = KNOWN.binary_search_by_key(&number, |known| known.0).ok()?;
    Some(&KNOWN[at])
}

/// Reads the frame inside a meta-information header that announces it by its link type. A second header of
/// this kind inside the first is not read: that has no use, and the work for each frame must be bounded.
fn inner(number: u32, frame: &[u8]) -> Option<LinkHeader<'_>> {
    let known = find(u16::try_from(number).ok()?)?;
    let is_meta = matches!(known.0, 192 | 258);
    (!is_meta).then(|| known.2(frame))?
}

/// Reads an IP packet. Its version is in its first byte.
fn ip(packet: &[u8]) -> Option<LinkHeader<'_>> {
    let ethertype = match packet.first()? >> 4 {
        4 => IPV4,
        6 => IPV6,
        _ => return None,
    };
    Some(LinkHeader::of(ethertype, packet))
}

/// Reads an IP packet of version 4.
fn ipv4(packet: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(IPV4, packet))
}

fn ipv6(packet: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(IPV6, packet))
}

fn llc(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(LLC, frame))
}

fn mpls(frame: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(MPLS_UNICAST, frame))
}

/// Reads NetBSD's PPPoE without Ethernet. In the discovery stage the code is not 0.
fn pppoe(frame: &[u8]) -> Option<LinkHeader<'_>> {
    (*frame.get(1)? == 0).then_some(LinkHeader::of(PPPOE_SESSION, frame))
}

/// Reads a payload that starts with a PPP protocol number.
fn ppp_payload(payload: &[u8]) -> Option<LinkHeader<'_>> {
    Some(LinkHeader::of(PPP, payload))
}

/// Returns `N` bytes from `offset` on, if all of them exist.
fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// Returns the 16-bit number in network order at `offset`, if it exists.
fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes_at(bytes, offset).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests;
