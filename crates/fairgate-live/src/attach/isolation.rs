//! Isolates an interface from the kernel's own stack: the stack neither receives from it nor sends to it.
//!
//! Two small BPF programs at tc's hooks (TCX, Linux 6.6) drop the frames. On the way in they run after the
//! packet sockets. On the way out our own frames bypass them (`PACKET_QDISC_BYPASS`):
//! ```text
//!   in   driver -> packet socket (the bridge) -> TCX: drop -> bridges, VLANs, IP
//!   out  IP, ARP, the kernel's bridge -> TCX: drop -> driver
//!        the bridge, frames with a tag to push -> TCX: push the tag -> driver
//!        the bridge -> driver
//! ```
//!
//! The programs are attached by BPF links, which end with their descriptors. Even a killed process leaves the
//! interface unchanged.

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::error::LiveError;
use crate::sys::bpf::{Hook, Instruction, attach, load};
use crate::sys::interface::Interface;
use crate::vlan::Tag;

/// A verdict of programs at tc's hooks (linux/bpf.h, `enum tcx_action_base`). The verdict 0 lets the frame
/// pass.
const DROP: i32 = 2;

/// The offset of the mark in `struct __sk_buff` (linux/bpf.h).
const MARK_OFFSET: i16 = 8;

/// `bpf_skb_vlan_push(skb, protocol, tci)`.
const SKB_VLAN_PUSH: i32 = 18;

/// The mark of frames that the bridge sends with a tag to push. It consists of this value, the bit
/// [`SERVICE`] for a service tag, and the tag's 16 bits. Frames with other marks belong to the kernel.
const MARK: u32 = 0xfa16_0000;
/// Shifting a mark right by this leaves the bits that identify it.
const MARK_SHIFT: i32 = 17;
/// Set for 802.1ad, clear for 802.1Q.
const SERVICE: u32 = 0x0001_0000;

/// The programs at both hooks of an interface.
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
            // This kernel lacks the command or the hook, or BPF is not built in.
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

/// Returns the mark that makes the outgoing program push `tag`.
pub(crate) fn mark_of(tag: Tag) -> u32 {
    let service = if tag.tpid == Tag::SERVICE { SERVICE } else { 0 };
    MARK | service | u32::from(tag.tci)
}

/// The program for received frames. It drops all of them.
fn incoming() -> [Instruction; 2] {
    [Instruction::set(0, DROP), Instruction::exit()]
}

/// The program for sent frames. It pushes the tag of frames with our mark, and drops all others.
fn outgoing() -> [Instruction; 16] {
    [
        // r1 = the frame. r6 = the mark
        Instruction::load_word(6, 1, MARK_OFFSET),
        // 32-bit immediates are sign-extended, but words are not. So compare the upper half, shifted down.
        Instruction::copy(7, 6),
        Instruction::shift_right(7, MARK_SHIFT),
        Instruction::jump_if_equal(7, (MARK >> MARK_SHIFT) as i32, 2),
        Instruction::set(0, DROP),
        Instruction::exit(),
        // r3 = the tag's 16 bits
        Instruction::copy(3, 6),
        Instruction::and(3, 0xffff),
        // r2 = the tag's protocol in network byte order
        Instruction::and(6, SERVICE as i32),
        Instruction::set(2, i32::from(Tag::CUSTOMER.to_be())),
        Instruction::jump_if_equal(6, 0, 1),
        Instruction::set(2, i32::from(Tag::SERVICE.to_be())),
        Instruction::call(SKB_VLAN_PUSH),
        Instruction::jump_if_equal(0, 0, 1),
        Instruction::set(0, DROP),
        // r0 is 0, the helper's result. It lets the frame pass.
        Instruction::exit(),
    ]
}
