//! Keeps the kernel's own stack away from an interface: it neither sees what arrives there nor sends by it.
//!
//! Two small BPF programs at tc's hooks (TCX, Linux 6.6). They run behind the packet sockets on the way in, and our own
//! frames pass beside them on the way out (`PACKET_QDISC_BYPASS`):
//!
//! ```text
//!   in   driver -> packet socket (the bridge) -> TCX: drop -> bridges, VLANs, IP
//!   out  IP, ARP, the kernel's bridge -> TCX: drop -> driver
//!        the bridge, frames with a tag to push -> TCX: push the tag -> driver
//!        the bridge -> driver
//! ```
//!
//! The programs are attached by links, which are gone with their descriptors: also a killed process leaves the
//! interface as it was.

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::error::LiveError;
use crate::sys::bpf::{Hook, Instruction, attach, load};
use crate::sys::interface::Interface;
use crate::vlan::Tag;

/// A verdict of programs at tc's hooks (linux/bpf.h, `enum tcx_action_base`). 0 lets the frame pass.
const DROP: i32 = 2;

/// Where the mark is in `struct __sk_buff` (linux/bpf.h).
const MARK_OFFSET: i16 = 8;

/// `bpf_skb_vlan_push(skb, protocol, tci)`.
const SKB_VLAN_PUSH: i32 = 18;

/// The marks of frames that the bridge sends with a tag to push: this, the bit [`SERVICE`] for a service tag, and the
/// tag's 16 bits. Other marks are of the kernel's own frames.
const MARK: u32 = 0xfa16_0000;
/// How far right to shift a mark to leave the bits that tell it.
const MARK_SHIFT: i32 = 17;
/// Set for 802.1ad, clear for 802.1Q.
const SERVICE: u32 = 0x0001_0000;

/// Programs at both hooks of an interface.
#[derive(Debug)]
pub(crate) struct Isolation {
    _links: [OwnedFd; 2],
}

impl Isolation {
    /// Attaches the programs.
    ///
    /// # Errors
    /// If this kernel has no TCX, or privileges are missing.
    pub(crate) fn of(interface: &Interface) -> Result<Isolation, LiveError> {
        let failed = |errno| match errno {
            // No such command, no such hook, or BPF is not built in.
            Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP => LiveError::NoIsolation {
                interface: interface.name.clone(),
            },
            errno => LiveError::system(format!("isolating `{}`", interface.name))(errno),
        };
        let link = |hook, program: &[Instruction]| -> Result<OwnedFd, Errno> {
            attach(&load(program)?, interface.index, hook)
        };
        Ok(Isolation {
            _links: [
                link(Hook::Ingress, &incoming()).map_err(failed)?,
                link(Hook::Egress, &outgoing()).map_err(failed)?,
            ],
        })
    }
}

/// The mark by which the outgoing program pushes `tag`.
pub(crate) fn mark_of(tag: Tag) -> u32 {
    let service = if tag.tpid == Tag::SERVICE { SERVICE } else { 0 };
    MARK | service | u32::from(tag.tci)
}

/// Drops everything.
fn incoming() -> [Instruction; 2] {
    [Instruction::set(0, DROP), Instruction::exit()]
}

/// Pushes the tag of frames with our mark, and drops all others.
fn outgoing() -> [Instruction; 16] {
    [
        // r1 is the frame. r6 = mark
        Instruction::load_word(6, 1, MARK_OFFSET),
        // 32-bit immediates are extended with their sign, words are not: compare the upper half shifted down.
        Instruction::copy(7, 6),
        Instruction::shift_right(7, MARK_SHIFT),
        Instruction::jump_if_equal(7, (MARK >> MARK_SHIFT) as i32, 2),
        Instruction::set(0, DROP),
        Instruction::exit(),
        // r3 = the tag's 16 bits
        Instruction::copy(3, 6),
        Instruction::and(3, 0xffff),
        // r2 = its protocol, as it is on the wire
        Instruction::and(6, SERVICE as i32),
        Instruction::set(2, i32::from(Tag::CUSTOMER.to_be())),
        Instruction::jump_if_equal(6, 0, 1),
        Instruction::set(2, i32::from(Tag::SERVICE.to_be())),
        Instruction::call(SKB_VLAN_PUSH),
        Instruction::jump_if_equal(0, 0, 1),
        Instruction::set(0, DROP),
        // 0, that of the helper, lets the frame pass.
        Instruction::exit(),
    ]
}
