//! Dissects packet headers: from the bytes of a frame to its flow.
//!
//! ```text
//!   link       Ethernet, raw IP -> 802.1Q/ad tags, MPLS labels, LLC and SNAP, PPPoE, PPP
//!   network    IPv4 with options, IPv6 with extension headers
//!   transport  ports of TCP, UDP, UDP-Lite, SCTP, DCCP; the identifier of ICMP echoes
//!   tunnel     on request: GRE, VXLAN, IP in IP, one level
//! ```
//!
//! Every sequence of bytes has a flow. Headers are read from the outermost on, until one is cut off,
//! malformed or unknown. The remaining fields stay 0. So a packet with a broken IP header is in the flow of
//! its EtherType. A packet that ends before its ports is in the flow of its addresses and protocol.
//!
//! Fragments: no fragment of a datagram has ports, not even the first one, although its ports could be read.
//! All fragments are therefore in one flow and stay in order, and a filter on ports matches all or none of
//! them. Linux's flow dissector does the same. The disadvantage: a fragmented datagram may overtake whole
//! ones with the same ports. A single fragment that is the whole datagram (RFC 6946) counts as unfragmented.
//!
//! Tunnels: the flow is that of the inner packet. The traffic class is that of the outer packet, because
//! [`set_ce`] may mark the outer one (RFC 6040). If the inner packet can't be read, the flow is that of the
//! outer one.
//!
//! The dissector is tested against the crate `etherparse`. Every access is checked against the bounds. The
//! number of headers read is limited at each layer, which limits the time per packet.
//!
//! Not supported: checksums, reassembly, IPv4 source routes and IPv6 routing headers (the destination is the
//! address in the IP header), the packet quoted in an ICMP error, ESP, and LLC protocols other than IP
//! (EtherType 0).

mod acknowledgement;
mod link;
mod network;
mod traffic_class;
mod transport;
mod tunnel;

pub use link::LinkType;
pub use traffic_class::{set_ce, set_dscp};

use crate::flow::{Acknowledgement, FlowHasher, FlowKey};
use crate::packet::{Ecn, Packet};

/// The result of dissecting a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dissection {
    /// The key of the flow.
    pub key: FlowKey,
    /// The offset of the IP header in the frame, bytes. For a tunnelled packet it is the outer header. `None`
    /// if there is no well-formed IP header.
    pub network_offset: Option<u16>,
}

/// Dissects `frame`, which may be cut off.
///
/// ```
/// use fairgate::flow::{LinkType, dissect};
///
/// // IPv4, DSCP 46 with ECT(0), UDP, 192.0.2.1:5004 to 198.51.100.7:5006; 28 bytes.
/// let frame = [
///     0x45, 0xba, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7,
///     0x13, 0x8c, 0x13, 0x8e, 0, 8, 0, 0,
/// ];
/// let dissection = dissect(&frame, LinkType::RawIp);
/// assert_eq!(dissection.key.source_port, 5004);
/// assert_eq!(dissection.dscp(), 46);
/// ```
#[inline]
pub fn dissect(frame: &[u8], link: LinkType) -> Dissection {
    headers(frame, &link.strip(frame))
}

/// Dissects `payload`, which another header has announced as `ethertype` (see
/// [`ethertype`](super::ethertype)). It serves frames of other link layers, after their headers were removed.
/// Offsets count from the start of the payload.
pub fn dissect_payload(payload: &[u8], ethertype: u16) -> Dissection {
    headers(payload, &link::strip_payload(ethertype, payload))
}

/// Returns the offset in `frame` of the network header, whatever its protocol, and the offset of the
/// transport header from there, if there is one.
pub(super) fn network_and_transport(frame: &[u8], link: LinkType) -> (usize, Option<usize>) {
    let lower = link.strip(frame);
    let above = network::above(lower.payload, lower.ethertype).and_then(|above| above.transport);
    // Both are parts of the frame.
    let offset = |part: &[u8], whole: &[u8]| part.as_ptr() as usize - whole.as_ptr() as usize;
    let network = frame.len() - lower.payload.len();
    (network, above.map(|transport| offset(transport, lower.payload)))
}

/// Dissects what is above the link layer of `frame`. `lower` is the result for the link layer.
#[inline(always)]
fn headers(frame: &[u8], lower: &link::Stripped) -> Dissection {
    match network::key(lower.payload, lower.ethertype, lower.outer_ethertype, lower.vlan) {
        Some(key) => Dissection {
            key,
            network_offset: u16::try_from(frame.len() - lower.payload.len()).ok(),
        },
        None => Dissection {
            key: FlowKey {
                ethertype: lower.ethertype,
                outer_ethertype: lower.outer_ethertype,
                vlan: lower.vlan,
                ..FlowKey::default()
            },
            network_offset: None,
        },
    }
}

/// Dissects `frame` like [`dissect`], and also looks into one level of GRE, VXLAN or IP in IP.
pub fn dissect_tunnelled(frame: &[u8], link: LinkType) -> Dissection {
    let outer = dissect(frame, link);
    let inner_key = outer
        .network_offset
        .and_then(|offset| frame.get(usize::from(offset)..))
        .and_then(|packet| tunnel::tunnelled(packet, outer.key));
    Dissection {
        key: inner_key.unwrap_or(outer.key),
        ..outer
    }
}

impl Dissection {
    /// Returns the six DSCP bits.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.key.traffic_class >> 2
    }

    /// Returns the two ECN bits.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.key.traffic_class)
    }

    /// Returns the priority that Linux gives to a forwarded packet (`rt_tos2priority`): 0 best effort, 2
    /// bulk, 6 interactive, 4 interactive bulk. Linux reads the traffic class as the type of service of RFC
    /// 1349: "low delay" is bit 4, "throughput" is bit 3. Linux does so for IPv4 only, but here it applies to
    /// both families.
    #[inline]
    pub fn priority(&self) -> u8 {
        const BY_DELAY_AND_THROUGHPUT: [u8; 4] = [0, 2, 6, 4];
        BY_DELAY_AND_THROUGHPUT[usize::from(self.key.traffic_class >> 3 & 3)]
    }

    /// Returns what the TCP packet acknowledges. `frame` must be the dissected one. `None` for other packets,
    /// and if its TCP header is cut off.
    #[inline]
    pub fn acknowledgement(&self, frame: &[u8]) -> Option<Acknowledgement> {
        let packet = frame.get(usize::from(self.network_offset?)..)?;
        acknowledgement::acknowledgement(packet)
    }

    /// Returns the descriptor of a packet with these headers and `length` bytes on the link. The driver adds
    /// its cookie.
    #[inline]
    pub fn packet(&self, length: u32, hasher: &FlowHasher) -> Packet {
        Packet {
            flow: hasher.five_tuple(&self.key),
            priority: self.priority(),
            dscp: self.dscp(),
            ecn: self.ecn(),
            ..Packet::of_length(length)
        }
    }
}

/// Returns `N` bytes from `offset` on, if all of them exist.
#[inline]
fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<&[u8; N]> {
    bytes.get(offset..)?.first_chunk()
}

/// Returns the 16-bit number in network order at `offset`, if it exists.
#[inline]
fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes_at(bytes, offset).map(|two| u16::from_be_bytes(*two))
}

#[cfg(test)]
mod tests;
