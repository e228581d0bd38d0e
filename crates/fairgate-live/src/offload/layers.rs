//! Walks from the start of a frame to a transport header, and collects the headers to patch.
//!
//! The virtio header says where the innermost transport header begins, but not what is before it. Cutting has
//! to change the lengths and checksums of every header that covers the payload, so every header has to be
//! known. The walk follows the header chain: Ethernet, VLAN tags, MPLS, PPPoE, IPv4, IPv6 with its extension
//! headers, GRE, and UDP with a tunnel header. Its result is valid only if it ends exactly at the transport
//! header.
//!
//! Without a virtio header, the same walk looks for a transport header with a partial checksum
//! (`partial.rs`).

use super::protocol::{
    ETHERNET, IPV4, IPV6, MPLS, MPLS_MULTICAST, NextHeader, PPPOE_SESSION, PROTOCOL_DESTINATION,
    PROTOCOL_GRE, PROTOCOL_HOP_BY_HOP, PROTOCOL_IPV4, PROTOCOL_IPV6, PROTOCOL_ROUTING, PROTOCOL_TCP,
    PROTOCOL_UDP,
};
use super::udp_tunnel::Format;
use crate::checksum::Sum;
use crate::vlan::Tag;

/// The maximum number of headers to patch: IP and UDP of six nested tunnels. Linux allows five
/// (`IP_TUNNEL_RECURSION_LIMIT`).
const MOST_LAYERS: usize = 12;

const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
pub(super) const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
/// The length of PPPoE's header. PPP's protocol number of two bytes follows and counts as payload (RFC 2516).
pub(super) const PPPOE_HEADER: usize = 6;

/// A transport protocol, with its IP protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Transport {
    Tcp = PROTOCOL_TCP,
    Udp = PROTOCOL_UDP,
}

impl Transport {
    fn of(protocol: u8) -> Option<Transport> {
        match protocol {
            PROTOCOL_TCP => Some(Transport::Tcp),
            PROTOCOL_UDP => Some(Transport::Udp),
            _ => None,
        }
    }

    /// Returns the offset of the checksum in the transport header.
    pub(super) fn checksum_offset(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

/// The kind of a header that differs from segment to segment, and the fields that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// IPv4: length, identification, header checksum.
    Ipv4,
    /// IPv6: length.
    Ipv6,
    /// UDP around a tunnel: length, and the checksum if it has one.
    Udp { checksum: bool },
    /// GRE with a checksum. GRE without a checksum has nothing to patch.
    Gre,
    /// PPPoE: length.
    Pppoe,
}

/// A header to patch: its kind and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) kind: Kind,
    at: u16,
}

impl Layer {
    /// Returns the offset of the header in the frame.
    pub(super) fn at(self) -> usize {
        self.at.into()
    }
}

/// The headers to patch in a super-packet, from the outermost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    layers: [Layer; MOST_LAYERS],
    count: u8,
}

impl Layers {
    const NONE: Layers = Layers {
        layers: [Layer {
            kind: Kind::Ipv6,
            at: 0,
        }; MOST_LAYERS],
        count: 0,
    };

    /// Returns the layers of a frame whose transport header begins at `start`, or `None` if a header is not
    /// understood. The last layer is the IP header of the transport header.
    pub(super) fn of(frame: &[u8], start: usize, transport: Transport) -> Option<Layers> {
        let walk = Walk {
            headers: frame.get(..start)?,
            length: frame.len(),
            goal: Goal::End(transport as u8),
        };
        let found = walk.follow(0, NextHeader::Ethernet, Layers::NONE, Trust::Header)?;
        Some(found.layers)
    }

    /// Looks for the transport header of a frame whose checksum field holds the sum of the pseudo header.
    /// Returns the offset of the header and its protocol.
    pub(super) fn partial_checksum(frame: &[u8]) -> Option<(usize, Transport)> {
        let walk = Walk {
            headers: frame,
            length: frame.len(),
            goal: Goal::PartialChecksum,
        };
        let found = walk.follow(0, NextHeader::Ethernet, Layers::NONE, Trust::Header)?;
        Some((found.at, Transport::of(found.protocol)?))
    }

    pub(super) fn as_slice(&self) -> &[Layer] {
        &self.layers[..usize::from(self.count)]
    }

    /// Returns the innermost layer.
    pub(super) fn last(&self) -> Option<Layer> {
        self.as_slice().last().copied()
    }

    fn with(mut self, kind: Kind, at: usize) -> Option<Layers> {
        *self.layers.get_mut(usize::from(self.count))? = Layer {
            kind,
            at: u16::try_from(at).ok()?,
        };
        self.count += 1;
        Some(self)
    }
}

/// Whether the next header is announced or guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// A header or a well-known port announces it.
    Header,
    /// It is guessed, because the port is unknown. Lengths and header checksums must then be right, too.
    Guess,
}

/// What a walk looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// A header of this protocol, exactly behind the given headers.
    End(u8),
    /// A header of TCP or UDP with a partial checksum.
    PartialChecksum,
}

/// A transport header, and the headers in front of it.
#[derive(Clone, Copy, Debug)]
struct Found {
    layers: Layers,
    at: usize,
    protocol: u8,
}

/// A walk through the headers of one frame.
#[derive(Clone, Copy, Debug)]
struct Walk<'a> {
    /// The bytes before the transport header, or the whole frame. No header may exceed them.
    headers: &'a [u8],
    /// The length of the frame.
    length: usize,
    goal: Goal,
}

impl<'a> Walk<'a> {
    fn follow(self, mut at: usize, mut next: NextHeader, mut layers: Layers, trust: Trust) -> Option<Found> {
        loop {
            (at, next) = match next {
                NextHeader::Ethernet => (
                    at + ETHERNET_HEADER,
                    NextHeader::Type(self.word(at + ETHERNET_HEADER - 2)?),
                ),
                NextHeader::Type(Tag::CUSTOMER | Tag::SERVICE) => {
                    (at + Tag::BYTES, NextHeader::Type(self.word(at + Tag::BYTES - 2)?))
                }
                NextHeader::Type(ETHERNET) => (at, NextHeader::Ethernet),
                NextHeader::Type(IPV4) | NextHeader::Protocol(PROTOCOL_IPV4) => {
                    layers = layers.with(Kind::Ipv4, at)?;
                    self.ipv4(at, trust)?
                }
                NextHeader::Type(IPV6) | NextHeader::Protocol(PROTOCOL_IPV6) => {
                    layers = layers.with(Kind::Ipv6, at)?;
                    self.ipv6(at, trust)?
                }
                NextHeader::Type(MPLS | MPLS_MULTICAST) => self.mpls(at)?,
                NextHeader::Type(PPPOE_SESSION) => {
                    layers = layers.with(Kind::Pppoe, at)?;
                    self.pppoe(at)?
                }
                NextHeader::Protocol(protocol) if self.is_goal(at, protocol, &layers) => {
                    let found = Found { layers, at, protocol };
                    if protocol == PROTOCOL_UDP
                        && self.goal == Goal::PartialChecksum
                        && let Some(inside) = self.udp(at, layers, trust)
                        && self.sum_to_end(at, protocol, &layers)?.finish() == [0, 0]
                    {
                        // The checksum of the tunnel is right, and equals the sum of the pseudo header by
                        // chance.
                        return Some(inside);
                    }
                    return Some(found);
                }
                NextHeader::Protocol(PROTOCOL_GRE) => {
                    let (inside, next, checksum) = self.gre(at)?;
                    if checksum {
                        layers = layers.with(Kind::Gre, at)?;
                    }
                    (inside, next)
                }
                NextHeader::Protocol(PROTOCOL_UDP) => return self.udp(at, layers, trust),
                NextHeader::Type(_) | NextHeader::Protocol(_) => return None,
            };
        }
    }

    fn is_goal(self, at: usize, protocol: u8, layers: &Layers) -> bool {
        match self.goal {
            Goal::End(wanted) => at == self.headers.len() && protocol == wanted,
            Goal::PartialChecksum => self.has_partial_checksum(at, protocol, layers).unwrap_or(false),
        }
    }

    /// Returns whether the checksum of a transport header is the sum of its pseudo header. The IP packet must
    /// end where the frame ends: a sender's frame has no padding.
    fn has_partial_checksum(self, at: usize, protocol: u8, layers: &Layers) -> Option<bool> {
        let field = at + Transport::of(protocol)?.checksum_offset();
        let [high, low] = self.pseudo_sum(at, protocol, layers)?.finish();
        Some(self.bytes(field, 2)? == [!high, !low])
    }

    /// Returns the sum of the pseudo header and of all bytes from the transport header on.
    fn sum_to_end(self, at: usize, protocol: u8, layers: &Layers) -> Option<Sum> {
        let sum = self.pseudo_sum(at, protocol, layers)?;
        Some(sum.add_sum(Sum::default().add(self.headers.get(at..)?)))
    }

    /// Returns the sum of the pseudo header (RFC 768, RFC 8200 section 8.1), or `None` if the lengths are
    /// wrong.
    fn pseudo_sum(self, at: usize, protocol: u8, layers: &Layers) -> Option<Sum> {
        let ip = layers.last()?;
        let (length, from, addresses) = match ip.kind {
            Kind::Ipv4 => (self.word(ip.at() + 2)?, ip.at(), self.bytes(ip.at() + 12, 8)?),
            Kind::Ipv6 => (
                self.word(ip.at() + 4)?,
                ip.at() + IPV6_HEADER,
                self.bytes(ip.at() + 8, 32)?,
            ),
            _ => return None,
        };
        if usize::from(length) != self.length.checked_sub(from)? {
            return None;
        }
        let length = u32::try_from(self.length.checked_sub(at)?).ok()?;
        let sum = Sum::default().add(addresses).add(&[0, protocol]);
        Some(sum.add(&length.to_be_bytes()))
    }

    /// Parses IPv4. Skips options. Rejects fragments, which can't be super-packets.
    fn ipv4(self, at: usize, trust: Trust) -> Option<(usize, NextHeader)> {
        let header = self.bytes(at, IPV4_HEADER)?;
        let length = usize::from(header[0] & 0x0f) * 4;
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        if header[0] >> 4 != 4 || length < IPV4_HEADER || is_fragment {
            return None;
        }
        let protocol = header[9];
        let header = self.bytes(at, length)?;
        if trust == Trust::Guess {
            let is_whole = Sum::default().add(header).finish() == [0, 0];
            if !is_whole || !self.is_length_to_end(self.word(at + 2)?, at) {
                return None;
            }
        }
        Some((at + length, NextHeader::Protocol(protocol)))
    }

    /// Parses IPv6. Skips the extension headers that Linux skips (`ipv6_gso_pull_exthdrs`).
    fn ipv6(self, at: usize, trust: Trust) -> Option<(usize, NextHeader)> {
        let header = self.bytes(at, IPV6_HEADER)?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let mut protocol = header[6];
        if trust == Trust::Guess && !self.is_length_to_end(self.word(at + 4)?, at + IPV6_HEADER) {
            return None;
        }
        let mut inside = at + IPV6_HEADER;
        while let PROTOCOL_HOP_BY_HOP | PROTOCOL_ROUTING | PROTOCOL_DESTINATION = protocol {
            let extension = self.bytes(inside, 2)?;
            protocol = extension[0];
            inside += (usize::from(extension[1]) + 1) * 8;
        }
        Some((inside, NextHeader::Protocol(protocol)))
    }

    /// Parses MPLS labels to the bottom of the stack. They do not announce what follows. IP is recognised by
    /// its version (RFC 4928).
    fn mpls(self, mut at: usize) -> Option<(usize, NextHeader)> {
        while self.bytes(at, 4)?[2] & 1 == 0 {
            at += 4;
        }
        at += 4;
        let next = match self.bytes(at, 1)?[0] >> 4 {
            4 => IPV4,
            6 => IPV6,
            _ => return None,
        };
        Some((at, NextHeader::Type(next)))
    }

    fn pppoe(self, at: usize) -> Option<(usize, NextHeader)> {
        let header = self.bytes(at, PPPOE_HEADER + 2)?;
        // Version 1, type 1, code 0: session data.
        if header[..2] != [0x11, 0] {
            return None;
        }
        let next = match u16::from_be_bytes([header[6], header[7]]) {
            0x0021 => IPV4,
            0x0057 => IPV6,
            _ => return None,
        };
        Some((at + PPPOE_HEADER + 2, NextHeader::Type(next)))
    }

    /// Parses GRE (RFC 2784, RFC 2890). Rejects sequence numbers: every segment would need another one, but
    /// the next packets use those already. Linux does not merge such packets either.
    fn gre(self, at: usize) -> Option<(usize, NextHeader, bool)> {
        const CHECKSUM: u16 = 0x8000;
        const KEY: u16 = 0x2000;
        let flags = self.word(at)?;
        let next = self.word(at + 2)?;
        if flags & !(CHECKSUM | KEY) != 0 {
            return None;
        }
        let length = 4 + if flags & CHECKSUM != 0 { 4 } else { 0 } + if flags & KEY != 0 { 4 } else { 0 };
        Some((at + length, NextHeader::Type(next), flags & CHECKSUM != 0))
    }

    /// Parses a UDP header before the transport header, which means a tunnel. The port may announce the
    /// tunnel format. Otherwise all formats that lead to the transport header must give the same layers.
    fn udp(self, at: usize, layers: Layers, trust: Trust) -> Option<Found> {
        let header = self.bytes(at, UDP_HEADER)?;
        if trust == Trust::Guess && !self.is_length_to_end(self.word(at + 4)?, at) {
            return None;
        }
        let checksum = header[6..8] != [0, 0];
        if checksum && !self.holds_final_destination(layers.last()?) {
            return None;
        }
        let layers = layers.with(Kind::Udp { checksum }, at)?;
        let inside = at + UDP_HEADER;
        let through = |format: Format, trust: Trust| {
            let (at, next) = format.inside(self.headers, inside)?;
            self.follow(at, next, layers, trust)
        };
        let port = self.word(at + 2)?;
        if let Some(found) = Format::of_port(port).and_then(|format| through(format, trust)) {
            return Some(found);
        }
        // Only one guess is allowed, because nested guesses would multiply the number of attempts.
        if trust == Trust::Guess {
            return None;
        }
        let mut results = Format::RECOGNISABLE
            .into_iter()
            .filter_map(|format| through(format, Trust::Guess));
        let found = results.next()?;
        let is_unambiguous =
            results.all(|other| other.at == found.at && other.layers.as_slice() == found.layers.as_slice());
        is_unambiguous.then_some(found)
    }

    /// Returns whether the IP header holds the destination of the pseudo header. A source route holds another
    /// one.
    fn holds_final_destination(self, ip: Layer) -> bool {
        let header = &self.headers[ip.at()..];
        match ip.kind {
            Kind::Ipv4 => header[0] & 0x0f == 5,
            _ => header[6] == PROTOCOL_UDP,
        }
    }

    /// Returns whether a length field is right. Beyond 64 KiB it holds the low bits of the length, or zero.
    fn is_length_to_end(self, length: u16, from: usize) -> bool {
        let actual = self.length - from;
        length == actual as u16 || (actual > 0xffff && length == 0)
    }

    fn bytes(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.headers.get(at..)?.get(..length)
    }

    fn word(self, at: usize) -> Option<u16> {
        let bytes = self.bytes(at, 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}
