//! Does in software what a sender left to its hardware: checksums, and cutting super-packets into segments.
//!
//! Inside one machine (veth, containers, virtual machines) a packet travels with half a checksum and up to 64
//! KiB of TCP payload; nobody has "sent" it yet. A receiving interface merges packets to the same form (GRO).
//! A shaper must count packets as what the wire would carry, and the next host drops a packet whose checksum
//! nobody completed. The kernel tells what is missing in a virtio header in front of each frame
//! (`PACKET_VNET_HDR`).
//!
//! ```text
//!   vnet        what is missing
//!   layers      the headers up to the payload, through tunnels; udp_tunnel: those behind UDP
//!   cut         the segments, one after the other; identification: whether IPv4's counts
//! ```
//!
//! Segments are cut as the kernel cuts them (`tcp_gso_segment`, `__udp_gso_segment`, `inet_gso_segment`,
//! `gre_gso_segment`, `__skb_udp_tunnel_segment`): sequence numbers advance by the segment size, FIN and PSH
//! stay with the last segment, CWR with the first (RFC 3168) unless it counts (RFC 9768). Lengths and
//! checksums are written anew in every header that covers the payload: IPv4, IPv6, UDP and GRE around a
//! tunnel, PPPoE.
//!
//! The virtio header says nothing about tunnels but where the innermost transport header begins. A frame
//! whose headers do not lead there, one by one, is refused, and counted by the caller. So are frames over 64
//! KiB ("BIG TCP"), IPsec, UDP fragmentation offload (gone from Linux since 4.14), and lists of packets under
//! one header (`rx-gro-list`).

mod cut;
mod identification;
mod layers;
mod udp_tunnel;
mod vnet;

#[cfg(test)]
mod tests;

use crate::checksum::Sum;
use cut::Cut;
pub(crate) use identification::Identifications;
use vnet::Wanted;
pub(crate) use vnet::{VNET_HEADER, VnetHeader};

/// A frame that this module can't finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported;

#[derive(Clone, Copy, Debug)]
enum Work {
    /// One frame, one checksum to complete.
    Checksum { start: usize, field: usize },
    /// Many segments under copies of one header.
    Cut(Cut),
}

/// The finished frames that an unfinished one stands for, one after the other.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    work: Work,
    finished: bool,
}

impl<'a> Segments<'a> {
    /// Looks at what is to be done.
    pub(crate) fn new(
        frame: &'a [u8],
        offload: VnetHeader,
        identifications: &mut Identifications,
    ) -> Result<Segments<'a>, Unsupported> {
        let wanted = offload.wanted().ok_or(Unsupported)?;
        let work = match wanted {
            // The checksums around it, of UDP and GRE, are complete: senders compute them from what this one
            // will be ("local checksum offload").
            Wanted::Checksum => {
                let start = usize::from(offload.checksum_start);
                let field = start + usize::from(offload.checksum_offset);
                if field + 2 > frame.len() {
                    return Err(Unsupported);
                }
                Work::Checksum { start, field }
            }
            Wanted::Tcp { .. } | Wanted::Udp => {
                Work::Cut(Cut::new(frame, offload, wanted, identifications).ok_or(Unsupported)?)
            }
        };
        Ok(Segments {
            frame,
            work,
            finished: false,
        })
    }

    /// Length of the longest frame that will be written.
    pub(crate) fn longest(&self) -> usize {
        match &self.work {
            Work::Checksum { .. } => self.frame.len(),
            Work::Cut(cut) => cut.longest(self.frame),
        }
    }

    /// Whether all frames have been written.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes the next frame to the front of `out`, which has room for [`Segments::longest`] bytes, and
    /// returns its length. To be called until [`Segments::is_finished`].
    pub(crate) fn write_next(&mut self, out: &mut [u8]) -> usize {
        debug_assert!(!self.finished);
        match &mut self.work {
            Work::Checksum { start, field } => {
                let out = &mut out[..self.frame.len()];
                out.copy_from_slice(self.frame);
                // The field holds the sum of the pseudo header already.
                let checksum = never_zero(Sum::default().add(&out[*start..]).finish());
                out[*field..*field + 2].copy_from_slice(&checksum);
                self.finished = true;
                out.len()
            }
            Work::Cut(cut) => {
                let length = cut.write_next(self.frame, out);
                self.finished = cut.is_finished(self.frame);
                length
            }
        }
    }
}

/// All zero means "no checksum" in UDP; the other zero stands in for it (RFC 768).
fn never_zero(checksum: [u8; 2]) -> [u8; 2] {
    if checksum == [0, 0] {
        [0xff, 0xff]
    } else {
        checksum
    }
}
