//! Link layers: where in a captured frame the IP packet starts.
//!
//! Sources: the registry of link types (draft-ietf-opsawg-pcaplinktype); for the cooked ones LINKTYPE_LINUX_SLL.

use std::fmt;

/// The number of a link layer in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

/// A frame, taken apart at the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network<'a> {
    /// EtherType of `payload`: 0x0800, 0x86dd, or a tag's or label's that the payload starts with. 0: unknown.
    pub ethertype: u16,
    /// Bytes of the link header before the payload, whether captured or not.
    pub header: u32,
    /// What was captured behind the link header.
    pub payload: &'a [u8],
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

impl LinkType {
    /// BSD loopback: the address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet, from the destination address on.
    pub const ETHERNET: LinkType = LinkType(1);
    /// Raw IP, version told by the first nibble.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked", version 1: what `tcpdump -i any` writes.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked", version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
    /// Raw IP again: numbers that BSDs (12) and OpenBSD (14) wrote into files for `DLT_RAW`.
    const RAW_OF_BSD: LinkType = LinkType(12);
    const RAW_OF_OPENBSD: LinkType = LinkType(14);

    pub(crate) const KNOWN: &'static str =
        "Ethernet (1), raw IP (12, 14, 101, 228, 229), Linux cooked (113, 276) and loopback (0, 108)";

    /// Whether packets of this link are read here.
    pub fn is_supported(self) -> bool {
        self.header_length().is_some()
    }

    /// Bytes before the payload, for a link that is read here.
    fn header_length(self) -> Option<u32> {
        match self {
            LinkType::ETHERNET => Some(14),
            LinkType::RAW
            | LinkType::RAW_OF_BSD
            | LinkType::RAW_OF_OPENBSD
            | LinkType::IPV4
            | LinkType::IPV6 => Some(0),
            LinkType::LINUX_SLL => Some(16),
            LinkType::LINUX_SLL2 => Some(20),
            LinkType::NULL | LinkType::LOOP => Some(4),
            _ => None,
        }
    }

    /// Finds the payload of a frame of which `data` was captured. A header that was cut gives an unknown EtherType
    /// and an empty payload, as does a link type that isn't supported.
    pub fn network(self, data: &[u8]) -> Network<'_> {
        let header = self.header_length().unwrap_or(0);
        let Some((link, payload)) = data.split_at_checked(header as usize) else {
            return Network {
                ethertype: 0,
                header,
                payload: &[],
            };
        };
        let be16 = |at: usize| u16::from_be_bytes([link[at], link[at + 1]]);
        let ethertype = match self {
            LinkType::ETHERNET => be16(12),
            LinkType::IPV4 => ETHERTYPE_IPV4,
            LinkType::IPV6 => ETHERTYPE_IPV6,
            LinkType::RAW | LinkType::RAW_OF_BSD | LinkType::RAW_OF_OPENBSD => by_version(payload),
            LinkType::LINUX_SLL => be16(14),
            LinkType::LINUX_SLL2 => be16(0),
            LinkType::NULL | LinkType::LOOP => by_family(link),
            _ => 0,
        };
        Network {
            ethertype,
            header,
            payload,
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            105 => write!(f, "link type 105 (802.11)"),
            127 => write!(f, "link type 127 (802.11 with radiotap)"),
            189 | 220 => write!(f, "link type {} (USB)", self.0),
            239 => write!(f, "link type 239 (NFLOG)"),
            other => write!(f, "link type {other}"),
        }
    }
}

fn by_version(payload: &[u8]) -> u16 {
    match payload.first().map(|byte| byte >> 4) {
        Some(4) => ETHERTYPE_IPV4,
        Some(6) => ETHERTYPE_IPV6,
        _ => 0,
    }
}

/// The family is below 256, so that whichever end of the four bytes isn't zero has it: the writer's byte order need
/// not be known. IPv6 is 24, 28 or 30 on the BSDs and macOS, 10 on Linux.
fn by_family(link: &[u8]) -> u16 {
    let family = match *link {
        [low, 0, 0, 0] => low,
        [0, 0, 0, low] => low,
        _ => return 0,
    };
    match family {
        2 => ETHERTYPE_IPV4,
        10 | 24 | 28 | 30 => ETHERTYPE_IPV6,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_finds_its_payload() {
        let frame = |header: &[u8]| [header, &[0x45, 0xaa]].concat();
        let cases: [(LinkType, Vec<u8>); 9] = [
            (
                LinkType::ETHERNET,
                frame(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 8, 0]),
            ),
            (LinkType::RAW, frame(&[])),
            (LinkType(12), frame(&[])),
            (LinkType::IPV4, frame(&[])),
            (
                LinkType::LINUX_SLL,
                frame(&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]),
            ),
            (
                LinkType::LINUX_SLL2,
                frame(&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
            ),
            (LinkType::NULL, frame(&[2, 0, 0, 0])),
            (LinkType::NULL, frame(&[0, 0, 0, 2])),
            (LinkType::LOOP, frame(&[0, 0, 0, 2])),
        ];
        for (link, data) in cases {
            let network = link.network(&data);
            assert_eq!(network.ethertype, 0x0800, "{link}");
            assert_eq!(network.payload, [0x45, 0xaa], "{link}");
            assert_eq!(network.header as usize, data.len() - 2, "{link}");
        }
    }

    #[test]
    fn a_cut_link_header_is_no_packet_of_any_kind() {
        let network = LinkType::ETHERNET.network(&[0; 13]);
        assert_eq!(
            (network.ethertype, network.header, network.payload),
            (0, 14, &[][..])
        );
    }
}
