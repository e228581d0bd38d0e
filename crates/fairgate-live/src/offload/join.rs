//! Joins TCP segments that leave together to a super-packet again.
//!
//! A shaper counts and schedules segments, as a link carries them. But the kernel's cost is by packet: one
//! TCP connection through a bridge had a third of the throughput of the kernel's bridge, because the receiver
//! got each segment alone. Only segments that this process cut from one super-packet are joined, without a
//! gap and with the same DSCP and ECN field. So the kernel, or the interface, cuts exactly the same segments
//! again if the link needs them.
//!
//! Not joined are tunnels, VLAN tags, extension headers of IPv6, and IPv4 packets with a constant
//! identification, because a virtio header can't describe them. Nor are segments with CWR, which is different
//! for the first one (RFC 3168).

use super::layers::{IPV6_HEADER, Kind, Layers};
use super::protocol::{PROTOCOL_TCP, TCP_CWR, TCP_FIN_PSH};
use super::vnet::{VNET_HEADER, VnetHeader};
use crate::checksum::Sum;
use crate::ethernet;

/// The longest headers that are joined: Ethernet, IPv4 and TCP with all options.
pub(crate) const LONGEST_HEADERS: usize = ethernet::HEADER + 60 + 60;

/// The offset of the flags in the TCP header.
const FLAGS: usize = 13;
/// The offset of the checksum in the TCP header.
const CHECKSUM: usize = 16;

/// A segment's place in the super-packet that it was cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The number of the super-packet.
    pub(crate) super_packet: u32,
    /// The position among its segments.
    index: u16,
    layout: JoinLayout,
}

/// Where the headers of a super-packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JoinLayout {
    /// The offset of the TCP header.
    start: u16,
    /// The length of all headers.
    headers: u16,
    /// The payload bytes of a segment.
    size: u16,
    is_ipv6: bool,
}

impl JoinLayout {
    /// Returns the layout of a super-packet whose segments can be joined again. `constant` tells whether the
    /// identification of IPv4 is the same in all segments.
    pub(super) fn of(
        frame: &[u8],
        layers: &Layers,
        start: usize,
        headers: usize,
        size: usize,
        constant: bool,
    ) -> Option<JoinLayout> {
        let [network] = layers.as_slice() else {
            return None;
        };
        let is_ipv6 = network.kind == Kind::Ipv6;
        let is_plain = match network.kind {
            Kind::Ipv4 => !constant,
            Kind::Ipv6 => start == ethernet::HEADER + IPV6_HEADER,
            _ => false,
        };
        let fits = network.at() == ethernet::HEADER && headers <= LONGEST_HEADERS;
        let has_cwr = frame[start + FLAGS] & TCP_CWR != 0;
        (is_plain && fits && !has_cwr).then_some(JoinLayout {
            start: start as u16,
            headers: headers as u16,
            size: size as u16,
            is_ipv6,
        })
    }
}

impl Part {
    pub(super) fn new(super_packet: u32, index: u16, layout: JoinLayout) -> Part {
        Part {
            super_packet,
            index,
            layout,
        }
    }

    /// Returns the length of all headers.
    pub(crate) fn headers(&self) -> usize {
        self.layout.headers.into()
    }

    /// Returns whether the segment `next` directly follows the segment `own`.
    #[inline]
    pub(crate) fn is_continued_by(&self, own: &[u8], following: &Part, next: &[u8]) -> bool {
        // The first two bytes of IP hold the DSCP and the ECN field, in both versions.
        let class = ethernet::HEADER..ethernet::HEADER + 2;
        self.super_packet == following.super_packet
            && self.index.wrapping_add(1) == following.index
            && own[class.clone()] == next[class]
    }

    /// Returns the virtio header of joined segments.
    pub(crate) fn vnet_header(&self) -> [u8; VNET_HEADER] {
        let JoinLayout {
            start,
            headers,
            size,
            is_ipv6,
        } = self.layout;
        VnetHeader::tcp(is_ipv6, size, start, CHECKSUM as u16).write(headers)
    }

    /// Writes the headers of segments that are joined, the first of which is this one. `payload` is the
    /// number of payload bytes of all of them. Returns the length of the headers.
    pub(crate) fn write_headers(
        &self,
        first: &[u8],
        last: &[u8],
        payload: usize,
        out: &mut [u8; LONGEST_HEADERS],
    ) -> usize {
        let (start, length) = (usize::from(self.layout.start), self.headers());
        let out = &mut out[..length];
        out.copy_from_slice(&first[..length]);
        let (network, transport) = out.split_at_mut(start);
        let network = &mut network[ethernet::HEADER..];
        let addresses = if self.layout.is_ipv6 {
            let whole = (length - ethernet::HEADER - IPV6_HEADER + payload) as u16;
            network[4..6].copy_from_slice(&whole.to_be_bytes());
            8..40
        } else {
            let whole = (length - ethernet::HEADER + payload) as u16;
            network[2..4].copy_from_slice(&whole.to_be_bytes());
            network[10..12].fill(0);
            let checksum = Sum::default().add(network).finish();
            network[10..12].copy_from_slice(&checksum);
            12..20
        };
        // FIN and PSH belong to the last segment. Whoever cuts the super-packet puts them there again.
        transport[FLAGS] |= last[start + FLAGS] & TCP_FIN_PSH;
        let covered = (length - start + payload) as u16;
        let pseudo = Sum::default()
            .add(&network[addresses])
            .add(&[0, PROTOCOL_TCP])
            .add(&covered.to_be_bytes())
            .finish();
        // The field holds the sum of the pseudo header itself, which is the complement of a checksum.
        transport[CHECKSUM..CHECKSUM + 2].copy_from_slice(&pseudo.map(|byte| !byte));
        length
    }
}
