//! Recognises a partial checksum without a virtio header.
//!
//! A sender in the same machine leaves the checksum of TCP and UDP to the interface: it writes only the sum
//! of the pseudo header. The kernel notes that beside the frame, and an XDP program does not see the note. So
//! the checksum field itself must tell.
//!
//! Completing a checksum that equals the sum of the pseudo header is sound whether the sender left it or not.
//! Let P be that sum, and S the sum of all bytes from the transport header on, modulo 65535 (RFC 1071).
//! Completing writes -S to the field. In a whole packet P + S = 0, so -S = P, which the field holds already:
//! nothing changes. In a damaged packet, the field equals P with a probability of 1 in 65,536. Such a packet
//! becomes a valid one. As many damaged packets pass any checksum anyway.
//!
//! Tunnels are looked into as for cutting (`layers.rs`). Data that only looks like a tunnel is changed with a
//! probability below 2^-43 for each packet: the lengths, versions and the checksum must fit.
//!
//! Not recognised are packets with a source route that is not finished, and SCTP, whose checksum has no sum
//! of a pseudo header.

use super::layers::Layers;
use super::vnet::VnetHeader;

impl VnetHeader {
    /// Returns what is left to do in a frame without a virtio header: nothing, or to complete a checksum.
    pub(crate) fn recognise(frame: &[u8]) -> VnetHeader {
        match Layers::partial_checksum(frame) {
            Some((start, transport)) => match u16::try_from(start) {
                Ok(start) => VnetHeader::checksum(start, transport.checksum_offset() as u16),
                Err(_) => VnetHeader::default(),
            },
            None => VnetHeader::default(),
        }
    }
}
