//! Does in software what a sender left to its hardware: checksums, and cutting super-packets into segments.
//!
//! Inside one machine (veth, containers, virtual machines) a packet travels with a partial checksum and up to
//! 64 KiB of TCP payload. It has never been on a real link. A receiving interface merges packets to the same
//! form (GRO). A shaper must count packets as a link would carry them, and the next host drops a packet with
//! an incomplete checksum. The kernel reports what is missing in a virtio header in front of each frame
//! (`PACKET_VNET_HDR`).
//!
//! ```text
//!   vnet            what is missing
//!   layers          the headers up to the payload, through tunnels
//!   udp_tunnel      the tunnel headers after UDP
//!   cut             writes the segments one by one
//!   identification  whether the IPv4 identification counts up
//!   allowance       how many segments super-packets may become
//!   partial         recognises a partial checksum if nothing reports it
//!   join            puts segments that leave together into a super-packet again
//! ```
//!
//! Segments are cut as the kernel cuts them (`tcp_gso_segment`, `__udp_gso_segment`, `inet_gso_segment`,
//! `gre_gso_segment`, `__skb_udp_tunnel_segment`). Sequence numbers advance by the segment size. FIN and PSH
//! stay with the last segment. CWR stays with the first segment (RFC 3168) unless it is part of a counter
//! (RFC 9768). Lengths and checksums are written anew in every header that covers the payload: IPv4, IPv6,
//! PPPoE, and the UDP and GRE headers of a tunnel.
//!
//! About tunnels, the virtio header only says where the innermost transport header begins. A frame whose
//! chain of headers does not lead there is rejected, and the caller counts it. Frames over 64 KiB ("BIG
//! TCP"), IPsec, UDP fragmentation offload (removed in Linux 4.14), and lists of packets under one header
//! (`rx-gro-list`) are rejected, too.
//!
//! The work is bounded by the bytes that arrive ([`Allowance`]). A frame of 64 KiB with segments of one byte
//! would be 65,000 packets.

mod allowance;
mod cut;
mod identification;
mod join;
mod layers;
mod partial;
mod protocol;
mod udp_tunnel;
mod vnet;

#[cfg(test)]
mod tests;

use crate::checksum::Sum;
pub(crate) use allowance::Allowance;
use cut::Cut;
pub(crate) use identification::Identifications;
pub(crate) use join::{LONGEST_HEADERS, Part};
use vnet::Wanted;
pub(crate) use vnet::{VNET_HEADER, VnetHeader};

/// Why a frame is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// This module can't do it.
    Unsupported,
    /// It would become more segments than the bytes that have arrived allow.
    TinySegments,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// Complete the checksum of one frame.
    Checksum { start: usize, field: usize },
    /// Cut the frame into segments.
    Cut(Cut),
}

/// Writes the finished frames of an unfinished one, one after the other.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    work: Work,
    finished: bool,
}

impl<'a> Segments<'a> {
    /// Finds out what has to be done.
    pub(crate) fn new(
        frame: &'a [u8],
        offload: VnetHeader,
        identifications: &mut Identifications,
    ) -> Result<Segments<'a>, Refused> {
        let wanted = offload.wanted().ok_or(Refused::Unsupported)?;
        let work = match wanted {
            // The checksums of outer UDP and GRE headers are complete: senders compute them from the final
            // value of this checksum ("local checksum offload").
            Wanted::Checksum => {
                let start = usize::from(offload.checksum_start);
                let field = start + usize::from(offload.checksum_offset);
                if field + 2 > frame.len() {
                    return Err(Refused::Unsupported);
                }
                Work::Checksum { start, field }
            }
            Wanted::Tcp { .. } | Wanted::Udp => Work::Cut(Cut::new(frame, offload, wanted, identifications)?),
        };
        Ok(Segments {
            frame,
            work,
            finished: false,
        })
    }

    /// Has `allowance` pay for the segments.
    ///
    /// # Errors
    /// If they are more than the bytes that have arrived allow.
    pub(crate) fn paid_by(&self, allowance: &mut Allowance) -> Result<(), Refused> {
        let count = match &self.work {
            Work::Checksum { .. } => 1,
            Work::Cut(cut) => cut.count(self.frame),
        };
        match allowance.pays(count) {
            true => Ok(()),
            false => Err(Refused::TinySegments),
        }
    }

    /// Returns the length of the longest frame that will be written.
    pub(crate) fn longest(&self) -> usize {
        match &self.work {
            Work::Checksum { .. } => self.frame.len(),
            Work::Cut(cut) => cut.longest(self.frame),
        }
    }

    /// Returns the next frame's place in the super-packet of this number, if the frames may be joined again.
    pub(crate) fn next_part(&self, super_packet: u32) -> Option<Part> {
        match &self.work {
            Work::Checksum { .. } => None,
            Work::Cut(cut) => cut.next_part(super_packet),
        }
    }

    /// Returns whether all frames have been written.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes the next frame to the front of `out` and returns its length. `out` must have room for
    /// [`Segments::longest`] bytes. Call this until [`Segments::is_finished`].
    pub(crate) fn write_next(&mut self, out: &mut [u8]) -> usize {
        debug_assert!(!self.finished);
        match &mut self.work {
            Work::Checksum { start, field } => {
                let out = &mut out[..self.frame.len()];
                out.copy_from_slice(self.frame);
                // The field already holds the sum of the pseudo header.
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

/// In UDP, zero means "no checksum". A computed zero is sent as 0xffff, which is equivalent (RFC 768).
fn never_zero(checksum: [u8; 2]) -> [u8; 2] {
    if checksum == [0, 0] {
        [0xff, 0xff]
    } else {
        checksum
    }
}
