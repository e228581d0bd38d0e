//! Cuts a super-packet into segments.
//!
//! Every segment is a copy of the headers with a part of the payload. Its headers are patched from the
//! innermost to the outermost, because the checksum of an outer header covers the inner ones.

use super::identification::Identifications;
use super::join::{JoinLayout, Part};
use super::layers::{IPV6_HEADER, Kind, Layer, Layers, PPPOE_HEADER, Transport};
use super::protocol::{TCP_CWR, TCP_FIN_PSH};
use super::vnet::{Cwr, VnetHeader, Wanted};
use super::{Refused, never_zero};
use crate::checksum::Sum;

/// How to cut a super-packet, and how much of it has been cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    layers: Layers,
    transport: Transport,
    cwr: Cwr,
    /// The offset of the innermost transport header.
    start: usize,
    /// The length of all headers.
    headers: usize,
    /// The payload bytes of a segment.
    size: usize,
    /// The sum of the pseudo header without the length. The transport checksum starts from it. The checksum
    /// field of the super-packet holds the sum of the pseudo header with the length of all its payload.
    pseudo: Sum,
    /// One bit per layer, the lowest for the outermost: set for IPv4 with a constant identification.
    constant: u16,
    /// The payload bytes written so far.
    done: usize,
    index: u16,
    /// Where the headers are, if the segments may be joined again.
    joint: Option<JoinLayout>,
}

impl Cut {
    /// Plans how to cut `frame`.
    ///
    /// # Errors
    /// Fails if its headers and the virtio header contradict each other.
    pub(super) fn new(
        frame: &[u8],
        offload: VnetHeader,
        wanted: Wanted,
        identifications: &mut Identifications,
    ) -> Result<Cut, Refused> {
        Cut::plan(frame, offload, wanted, identifications).ok_or(Refused::Unsupported)
    }

    /// Returns the number of segments.
    pub(super) fn count(&self, frame: &[u8]) -> usize {
        (frame.len() - self.headers).div_ceil(self.size)
    }

    fn plan(
        frame: &[u8],
        offload: VnetHeader,
        wanted: Wanted,
        identifications: &mut Identifications,
    ) -> Option<Cut> {
        let (transport, shortest, cwr) = match wanted {
            Wanted::Tcp { cwr, .. } => (Transport::Tcp, 20, cwr),
            Wanted::Udp => (Transport::Udp, 8, Cwr::All),
            Wanted::Checksum => return None,
        };
        let start = usize::from(offload.checksum_start);
        let header = frame.get(start..)?.get(..shortest)?;
        let headers = start
            + match transport {
                Transport::Tcp => usize::from(header[12] >> 4) * 4,
                Transport::Udp => shortest,
            };
        let field = transport.checksum_offset();
        let size = usize::from(offload.gso_size);
        if headers < start + shortest
            || headers >= frame.len()
            || usize::from(offload.checksum_offset) != field
            || size == 0
        {
            return None;
        }
        let layers = Layers::of(frame, start, transport)?;
        let network = layers.last()?;
        let fits = match wanted {
            Wanted::Tcp { version: 4, .. } => network.kind == Kind::Ipv4,
            Wanted::Tcp { .. } => network.kind == Kind::Ipv6,
            _ => true,
        };
        // The super-packet must fit into IP's length fields, and every segment into those of the outer
        // headers.
        let longest = frame.len().min(headers + size);
        let outermost = layers.as_slice().first()?.at();
        if !fits || frame.len() - network.at() > 0xffff || longest - outermost > 0xffff {
            return None;
        }
        let length = (frame.len() - start) as u16;
        let mut constant = 0;
        for (index, layer) in layers.as_slice().iter().enumerate() {
            if layer.kind == Kind::Ipv4 && identifications.is_constant(&frame[layer.at()..]) {
                constant |= 1 << index;
            }
        }
        let joint = match transport {
            Transport::Tcp => JoinLayout::of(frame, &layers, start, headers, size, constant != 0),
            Transport::Udp => None,
        };
        Some(Cut {
            layers,
            transport,
            cwr,
            start,
            headers,
            size,
            // Adding the complement subtracts (RFC 1624).
            pseudo: Sum::default()
                .add(&header[field..field + 2])
                .add(&(!length).to_be_bytes()),
            constant,
            done: 0,
            index: 0,
            joint,
        })
    }

    pub(super) fn longest(&self, frame: &[u8]) -> usize {
        frame.len().min(self.headers + self.size)
    }

    pub(super) fn is_finished(&self, frame: &[u8]) -> bool {
        self.headers + self.done == frame.len()
    }

    /// Returns the next segment's place in the super-packet of this number, if it may be joined again.
    pub(super) fn next_part(&self, super_packet: u32) -> Option<Part> {
        self.joint
            .map(|layout| Part::new(super_packet, self.index, layout))
    }

    /// Writes the next segment of `frame` and returns its length.
    pub(super) fn write_next(&mut self, frame: &[u8], out: &mut [u8]) -> usize {
        let payload = &frame[self.headers..][self.done..];
        let payload = &payload[..payload.len().min(self.size)];
        let out = &mut out[..self.headers + payload.len()];
        out[..self.headers].copy_from_slice(&frame[..self.headers]);
        out[self.headers..].copy_from_slice(payload);
        let last = self.headers + self.done + payload.len() == frame.len();
        let sum = self.patch_transport(out, last);
        self.patch_layers(out, sum);
        self.done += payload.len();
        self.index = self.index.wrapping_add(1);
        out.len()
    }

    /// Patches the transport header. Returns the sum of all bytes from there on.
    fn patch_transport(&self, out: &mut [u8], last: bool) -> Sum {
        let segment = &mut out[self.start..];
        let length = (segment.len() as u16).to_be_bytes();
        match self.transport {
            Transport::Tcp => {
                patch_tcp(segment, self.done as u32, last);
                if self.index > 0 && self.cwr == Cwr::First {
                    segment[13] &= !TCP_CWR;
                }
            }
            Transport::Udp => segment[4..6].copy_from_slice(&length),
        }
        let field = self.transport.checksum_offset();
        segment[field..field + 2].fill(0);
        let sum = Sum::default().add(segment);
        let mut checksum = sum.add_sum(self.pseudo).add(&length).finish();
        if self.transport == Transport::Udp {
            checksum = never_zero(checksum);
        }
        segment[field..field + 2].copy_from_slice(&checksum);
        sum.add(&checksum)
    }

    /// Patches the headers in front of the transport header. `sum` is the sum of all bytes from the transport
    /// header on.
    fn patch_layers(&self, out: &mut [u8], sum: Sum) {
        let layers = self.layers.as_slice();
        // `sum` covers the bytes from `from` on.
        let (mut sum, mut from) = (sum, self.start);
        for (index, layer) in layers.iter().enumerate().rev() {
            let at = layer.at();
            match layer.kind {
                Kind::Ipv4 => {
                    let is_constant = self.constant >> index & 1 != 0;
                    patch_ipv4(&mut out[at..], if is_constant { 0 } else { self.index });
                }
                Kind::Ipv6 => set_length(out, at + 4, at + IPV6_HEADER),
                Kind::Pppoe => set_length(out, at + 4, at + PPPOE_HEADER),
                Kind::Udp { checksum } => {
                    set_length(out, at + 4, at);
                    if checksum {
                        let length = ((out.len() - at) as u16).to_be_bytes();
                        let network = layers[index - 1];
                        out[at + 6..at + 8].fill(0);
                        sum = sum.add(&out[at..from]);
                        let pseudo = addresses(out, network)
                            .add(&[0, Transport::Udp as u8])
                            .add(&length);
                        let checksum = never_zero(sum.add_sum(pseudo).finish());
                        out[at + 6..at + 8].copy_from_slice(&checksum);
                        (sum, from) = (sum.add(&checksum), at);
                    }
                }
                Kind::Gre => {
                    out[at + 4..at + 6].fill(0);
                    sum = sum.add(&out[at..from]);
                    let checksum = sum.finish();
                    out[at + 4..at + 6].copy_from_slice(&checksum);
                    (sum, from) = (sum.add(&checksum), at);
                }
            }
        }
    }
}

/// Patches the fields that differ between the segments of a TCP super-packet. `advance` is the payload before
/// this segment.
fn patch_tcp(header: &mut [u8], advance: u32, last: bool) {
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]).wrapping_add(advance);
    header[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        header[13] &= !TCP_FIN_PSH;
    }
}

/// Writes length, identification and header checksum. `packet` begins at the IPv4 header. `advance` is added
/// to its identification.
fn patch_ipv4(packet: &mut [u8], advance: u16) {
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(advance);
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].fill(0);
    let header = usize::from(packet[0] & 0x0f) * 4;
    let checksum = Sum::default().add(&packet[..header]).finish();
    packet[10..12].copy_from_slice(&checksum);
}

/// Writes the number of bytes from `from` on to `field`.
fn set_length(out: &mut [u8], field: usize, from: usize) {
    let length = (out.len() - from) as u16;
    out[field..field + 2].copy_from_slice(&length.to_be_bytes());
}

/// Returns the sum of the addresses of an IP header, as used in a pseudo header (RFC 768, RFC 8200 section
/// 8.1).
fn addresses(out: &[u8], network: Layer) -> Sum {
    let addresses = match network.kind {
        Kind::Ipv4 => 12..20,
        _ => 8..40,
    };
    Sum::default().add(&out[network.at()..][addresses])
}
