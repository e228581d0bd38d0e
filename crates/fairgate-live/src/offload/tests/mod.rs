//! Compares the segments with packets that are built one by one, by code that shares nothing with the code
//! under test.

mod identification;
mod join;
mod partial;
mod plain;
mod refused;
mod stacks;
mod tunnels;
mod wire;

use super::vnet::VnetHeader;
use super::{Identifications, Refused, Segments};

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_UDP_FRAGMENTS: u8 = 3;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Builds a virtio header as the kernel writes it.
fn vnet(flags: u8, gso_type: u8, size: u16, start: usize, offset: u16) -> VnetHeader {
    let mut bytes = vec![flags, gso_type, 0, 0];
    for word in [size, start as u16, offset] {
        bytes.extend(word.to_ne_bytes());
    }
    VnetHeader::parse(&bytes)
}

/// Returns all finished frames of `frame`.
fn finish(frame: &[u8], offload: VnetHeader) -> Result<Vec<Vec<u8>>, Refused> {
    finish_after(frame, offload, &mut Identifications::default())
}

/// Returns all finished frames of `frame`, when earlier super-packets were seen.
fn finish_after(
    frame: &[u8],
    offload: VnetHeader,
    identifications: &mut Identifications,
) -> Result<Vec<Vec<u8>>, Refused> {
    let mut segments = Segments::new(frame, offload, identifications)?;
    let mut out = vec![0xee; segments.longest()];
    let mut frames = Vec::new();
    while !segments.is_finished() {
        let length = segments.write_next(&mut out);
        frames.push(out[..length].to_vec());
    }
    Ok(frames)
}
