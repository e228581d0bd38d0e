//! The program that redirects received frames to AF_XDP sockets.
//!
//! ```text
//!   switch off        -> pass
//!   note of the tag   -> in front of the frame, if the interface keeps VLAN tags beside frames
//!   queue             -> the queue's socket; without one, pass
//! ```
//! A frame that passes goes to the kernel's stack as if the program were not there. The program is attached
//! by a BPF link, which ends with its descriptor: even a killed process leaves the interface unchanged.

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::attach::{Switch, Word};
use crate::sys::bpf::{Instruction, SocketMap, attach_xdp, load_xdp};
use crate::sys::xdp_socket::NOTE;
use crate::vlan::Tag;

/// Verdict of an XDP program (linux/bpf.h, `enum xdp_action`).
const PASS: i32 = 2;

/// Offsets in `struct xdp_md` (linux/bpf.h).
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;

/// `bpf_redirect_map(map, key, flags)`: the flags are the verdict if the map has no such key.
const REDIRECT_MAP: i32 = 51;
/// `bpf_xdp_adjust_meta(frame, delta)`.
const ADJUST_META: i32 = 54;

/// The kernel function that returns the tag of a frame (Linux 6.8): `bpf_xdp_metadata_rx_vlan_tag(frame,
/// &protocol, &tci)`. The protocol is in network byte order. It fails if the frame has no tag.
pub(super) const TAG_FUNCTION: &str = "bpf_xdp_metadata_rx_vlan_tag";

/// Loads the program and attaches it. `tag_function` is the number of [`TAG_FUNCTION`], if tags are to be
/// noted.
pub(super) fn attach(
    interface: u32,
    switch: Option<&Switch>,
    sockets: &SocketMap,
    tag_function: Option<i32>,
) -> Result<OwnedFd, Errno> {
    let mut program = vec![Instruction::copy(6, 1)];
    if let Some(switch) = switch {
        program.extend(if_on(switch));
    }
    if let Some(function) = tag_function {
        program.extend(note_tag(function));
    }
    program.extend(redirect(sockets));
    let program = load_xdp(&program, tag_function.map(|_| interface))?;
    attach_xdp(&program, interface)
}

/// Reads the note in front of a frame.
#[inline]
pub(super) fn tag_of(note: &[u8; NOTE]) -> Option<Tag> {
    let [high, low, tci @ ..] = *note;
    match u16::from_be_bytes([high, low]) {
        0 => None,
        tpid => Some(Tag {
            tpid,
            tci: u16::from_ne_bytes(tci),
        }),
    }
}

/// Ends the program with [`PASS`] unless the switch is on.
fn if_on(switch: &Switch) -> [Instruction; 6] {
    let [first, second] = switch.address(2, Word::On);
    [
        first,
        second,
        Instruction::load(3, 2, 0),
        Instruction::jump_unless_equal(3, 0, 2),
        Instruction::set(0, PASS),
        Instruction::exit(),
    ]
}

/// Writes the protocol and the 16 bits of the frame's tag, or zeros, to the bytes in front of the frame. A
/// frame without room there passes; drivers keep 256 bytes free.
fn note_tag(function: i32) -> [Instruction; 26] {
    // Places on the stack.
    const PROTOCOL: i16 = -4;
    const TCI: i16 = -8;
    [
        Instruction::copy(1, 6),
        Instruction::set(2, -(NOTE as i32)),
        Instruction::call(ADJUST_META),
        Instruction::jump_if_equal(0, 0, 2),
        Instruction::set(0, PASS),
        Instruction::exit(),
        Instruction::set(2, 0),
        Instruction::store_word(10, PROTOCOL, 2),
        Instruction::store_word(10, TCI, 2),
        Instruction::copy(1, 6),
        Instruction::copy(2, 10),
        Instruction::add(2, PROTOCOL as i32),
        Instruction::copy(3, 10),
        Instruction::add(3, TCI as i32),
        Instruction::call_function(function),
        // r2 = the note, r3 = the frame. The verifier wants to see that the note ends before the frame.
        Instruction::load_word(2, 6, DATA_META),
        Instruction::load_word(3, 6, DATA),
        Instruction::copy(4, 2),
        Instruction::add(4, NOTE as i32),
        Instruction::jump_unless_above(4, 3, 2),
        Instruction::set(0, PASS),
        Instruction::exit(),
        // Without a tag the function fails, and leaves the protocol zero.
        Instruction::load_half(5, 10, PROTOCOL),
        Instruction::store_half(2, 0, 5),
        Instruction::load_half(5, 10, TCI),
        Instruction::store_half(2, 2, 5),
    ]
}

/// Redirects the frame to the socket of its queue.
fn redirect(sockets: &SocketMap) -> [Instruction; 6] {
    let [first, second] = sockets.address(1);
    [
        Instruction::load_word(2, 6, QUEUE),
        first,
        second,
        Instruction::set(3, PASS),
        Instruction::call(REDIRECT_MAP),
        Instruction::exit(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_holds_a_tag_or_none() {
        let [low, high] = 0xe005u16.to_ne_bytes();
        let tag = tag_of(&[0x88, 0xa8, low, high]);
        assert_eq!(
            tag,
            Some(Tag {
                tpid: Tag::SERVICE,
                tci: 0xe005
            })
        );
        assert_eq!(tag_of(&[0; NOTE]), None);
    }
}
