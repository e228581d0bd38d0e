//! Programs at tc's hooks (TCX, Linux 6.6) that take frames away from the kernel's own stack.
//!
//! Between two interfaces, the stack neither receives nor sends. The ingress program runs after the packet
//! sockets, and our own frames bypass the egress program (`PACKET_QDISC_BYPASS`):
//! ```text
//!   in    driver -> packet socket (the run) -> TCX: drop -> bridges, VLANs, IP
//!   out   IP, ARP, the kernel's bridge -> TCX: drop -> driver
//!         the run, frames with a tag to push -> TCX: push the tag -> driver
//!         the run -> driver
//! ```
//!
//! On one interface that the host itself uses, the stack stays where it is, and a TAP device is its other
//! end; a TUN device, if the interface carries IP packets without Ethernet headers, because the kernel drops
//! what is redirected to the other kind. No program here reads bytes of a frame. A mark tells frames that
//! have been through the run from those that have not:
//! ```text
//!   in    driver -> packet socket (the run) -> TCX: drop
//!         the run -> TAP -> TCX: mark, redirect to the interface's ingress -> TCX: clear mark, pass -> IP
//!   out   IP -> TCX: redirect to the TAP device -> the run -> driver
//! ```
//!
//! There, the kernel's stack gets the frames while the run hangs ([`Word::Waiting`]). The packet socket has a
//! program of its own, which runs first and reads the same words: so the run does not get these frames, too.
//!
//! All programs pass frames on as if they were not there until the [`Switch`] is on. They are attached by BPF
//! links, which end with their descriptors. Even a killed process leaves the interface unchanged.

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::attach::switch::{PATIENCE, Switch, Word};
use crate::sys::bpf::{Hook, Instruction, attach, load, load_for_sockets};
use crate::vlan::Tag;

/// Verdicts of programs at tc's hooks (linux/bpf.h, `enum tcx_action_base`).
const NEXT: i32 = -1;
const DROP: i32 = 2;

/// The offset of the mark in `struct __sk_buff` (linux/bpf.h).
const MARK_OFFSET: i16 = 8;

/// `bpf_ktime_get_ns()`: CLOCK_MONOTONIC.
const TIME: i32 = 5;
/// `bpf_skb_vlan_push(skb, protocol, tci)`.
const SKB_VLAN_PUSH: i32 = 18;
/// `bpf_redirect(index, flags)`.
const REDIRECT: i32 = 23;
/// The flag of [`REDIRECT`] for the ingress of an interface.
const BPF_F_INGRESS: i32 = 1;

/// The mark of frames that the run sends with a tag to push. It consists of this value, the bit [`SERVICE`]
/// for a service tag, and the tag's 16 bits. Frames with other marks belong to the kernel.
const MARK: u32 = 0xfa16_0000;
/// Shifting a mark right by this leaves the bits that identify it.
const MARK_SHIFT: i32 = 17;
/// Set for 802.1ad, clear for 802.1Q.
const SERVICE: u32 = 0x0001_0000;

/// The mark of frames that the run gives to the host's stack. Below 2^31, because immediates are
/// sign-extended.
const GIVEN: u32 = 0x0fa1_7e01;
/// The mark of the host's frames on the way to the run.
const TAKEN: u32 = 0x0fa1_7e02;

/// Programs at hooks of one interface, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hooks {
    _links: Vec<OwnedFd>,
}

impl Hooks {
    /// Keeps the stack away from an interface, in both directions.
    pub(crate) fn isolate(index: u32, switch: &Switch) -> Result<Hooks, Errno> {
        let refused = [Instruction::set(0, DROP), Instruction::exit()];
        Hooks::attach(
            index,
            &[
                (Hook::Ingress, [&if_on(switch)[..], &refused].concat()),
                (Hook::Egress, [&if_on(switch)[..], &push_tag(), &refused].concat()),
            ],
        )
    }

    /// Takes the frames that arrive at an interface, the frames that the host sends there, or both.
    pub(crate) fn divert(index: u32, taken: [bool; 2], switch: &Switch) -> Result<Hooks, Errno> {
        let programs = [
            (Hook::Ingress, [&if_on(switch)[..], &pass_given(switch)].concat()),
            (
                Hook::Egress,
                [&if_on(switch)[..], &push_tag(), &to_host_end(switch)].concat(),
            ),
        ];
        let programs = programs.into_iter().zip(taken).filter(|(_, taken)| *taken);
        let programs: Vec<_> = programs.map(|(program, _)| program).collect();
        Hooks::attach(index, &programs)
    }

    /// Loads the program of the packet socket, which decides which received frames the run gets. The run does
    /// not get the frames that it has given to the stack itself. While the run hangs, it gets no frames: the
    /// kernel's stack has them.
    pub(crate) fn receiver(switch: &Switch) -> Result<OwnedFd, Errno> {
        /// What it keeps of a frame, in bytes.
        const NOTHING: i32 = 0;
        const ALL: i32 = -1;
        let skip = [Instruction::set(0, NOTHING), Instruction::exit()];
        let program = [
            &[
                Instruction::load_word(7, 1, MARK_OFFSET),
                Instruction::jump_unless_equal(7, GIVEN as i32, skip.len() as i16),
            ][..],
            &skip,
            &if_passed_by(switch, true, &skip),
            &[Instruction::set(0, ALL), Instruction::exit()],
        ];
        load_for_sockets(&program.concat())
    }

    /// Makes a TAP device the other end of the host's stack. Nothing else of the kernel may use the device.
    pub(crate) fn host_end(index: u32, switch: &Switch) -> Result<Hooks, Errno> {
        Hooks::attach(
            index,
            &[
                (Hook::Ingress, give(switch)),
                (Hook::Egress, pass_taken().to_vec()),
            ],
        )
    }

    fn attach(index: u32, programs: &[(Hook, Vec<Instruction>)]) -> Result<Hooks, Errno> {
        let links = programs
            .iter()
            .map(|(hook, program)| attach(&load(program)?, index, *hook));
        Ok(Hooks {
            _links: links.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the mark that makes the egress program push `tag`.
pub(crate) fn mark_of(tag: Tag) -> u32 {
    let service = if tag.tpid == Tag::SERVICE { SERVICE } else { 0 };
    MARK | service | u32::from(tag.tci)
}

/// Ends the program with [`NEXT`] unless the switch is on. Afterwards r6 = the frame, r7 = its mark.
fn if_on(switch: &Switch) -> [Instruction; 8] {
    let [first, second] = switch.address(2, Word::On);
    [
        Instruction::copy(6, 1),
        first,
        second,
        Instruction::load(3, 2, 0),
        Instruction::jump_unless_equal(3, 0, 2),
        Instruction::set(0, NEXT),
        Instruction::exit(),
        Instruction::load_word(7, 6, MARK_OFFSET),
    ]
}

/// Pushes the tag of frames with our mark and lets them pass. Others go on to the next instruction.
fn push_tag() -> [Instruction; 14] {
    [
        // 32-bit immediates are sign-extended, but words are not. So compare the upper half, shifted down.
        Instruction::copy(2, 7),
        Instruction::shift_right(2, MARK_SHIFT),
        Instruction::jump_unless_equal(2, (MARK >> MARK_SHIFT) as i32, 11),
        Instruction::copy(1, 6),
        // r3 = the tag's 16 bits
        Instruction::copy(3, 7),
        Instruction::and(3, 0xffff),
        // r2 = the tag's protocol in network byte order
        Instruction::and(7, SERVICE as i32),
        Instruction::set(2, i32::from(Tag::CUSTOMER.to_be())),
        Instruction::jump_if_equal(7, 0, 1),
        Instruction::set(2, i32::from(Tag::SERVICE.to_be())),
        Instruction::call(SKB_VLAN_PUSH),
        Instruction::jump_if_equal(0, 0, 1),
        Instruction::set(0, DROP),
        // r0 is 0, the helper's result. It lets the frame pass.
        Instruction::exit(),
    ]
}

/// Runs `passing`, which must end the program, if frames pass by the run. `notes` says that this program is
/// the first to see the frame, and notes when the run was given one. Changes r0 to r5 and r8.
fn if_passed_by(switch: &Switch, notes: bool, passing: &[Instruction]) -> Vec<Instruction> {
    let [host_end, host_end_2] = switch.address(2, Word::HostEnd);
    let [waiting, waiting_2] = switch.address(8, Word::Waiting);
    let end = passing.len() as i16;
    let note = match notes {
        true => Instruction::store(8, 0, 0),
        false => Instruction::set(2, 0),
    };
    let decision = [
        waiting,
        waiting_2,
        Instruction::call(TIME),
        Instruction::load(2, 8, 0),
        Instruction::jump_unless_equal(2, 0, 2),
        note,
        Instruction::jump(end + 2),
        // Another processor may have noted a time that is later by a little: so with sign.
        Instruction::subtract(0, 2),
        Instruction::jump_unless_greater(0, PATIENCE as i32, end),
    ];
    let mut program = vec![
        host_end,
        host_end_2,
        Instruction::load(2, 2, 0),
        Instruction::jump_if_equal(2, 0, decision.len() as i16),
    ];
    program.extend(decision);
    program.extend(passing);
    program
}

/// Counts a frame, and passes it as if there were no program.
fn count_and_pass(switch: &Switch, word: Word) -> [Instruction; 6] {
    let [first, second] = switch.address(2, word);
    [
        first,
        second,
        Instruction::set(3, 1),
        Instruction::add_to_memory(2, 0, 3),
        Instruction::set(0, NEXT),
        Instruction::exit(),
    ]
}

/// Passes frames that the run gives to the stack. The packet socket has all others, or they pass by the run.
fn pass_given(switch: &Switch) -> Vec<Instruction> {
    let given = [
        Instruction::set(2, 0),
        Instruction::store_word(6, MARK_OFFSET, 2),
        Instruction::set(0, NEXT),
        Instruction::exit(),
    ];
    [
        &[Instruction::jump_unless_equal(
            7,
            GIVEN as i32,
            given.len() as i16,
        )][..],
        &given,
        &if_passed_by(switch, false, &count_and_pass(switch, Word::PassedReceived)),
        &[Instruction::set(0, DROP), Instruction::exit()],
    ]
    .concat()
}

/// Redirects the host's frames to the TAP device, unless they pass by the run.
fn to_host_end(switch: &Switch) -> Vec<Instruction> {
    let [first, second] = switch.address(2, Word::HostEnd);
    let redirect = [
        Instruction::set(3, TAKEN as i32),
        Instruction::store_word(6, MARK_OFFSET, 3),
        first,
        second,
        Instruction::load(1, 2, 0),
        Instruction::set(2, 0),
        Instruction::call(REDIRECT),
        Instruction::exit(),
    ];
    let passing = count_and_pass(switch, Word::PassedSent);
    [&if_passed_by(switch, true, &passing)[..], &redirect].concat()
}

/// Gives frames that the run has written to the TAP device to the stack, as if the interface had just
/// received them.
fn give(switch: &Switch) -> Vec<Instruction> {
    let [first, second] = switch.address(2, Word::Interface);
    vec![
        Instruction::set(3, GIVEN as i32),
        Instruction::store_word(1, MARK_OFFSET, 3),
        first,
        second,
        Instruction::load(1, 2, 0),
        Instruction::set(2, BPF_F_INGRESS),
        Instruction::call(REDIRECT),
        Instruction::exit(),
    ]
}

/// Passes the host's frames on the way to the run. The kernel's own frames on the TAP device (neighbour
/// discovery) would leave by the interface, so they are dropped.
fn pass_taken() -> [Instruction; 8] {
    [
        Instruction::load_word(7, 1, MARK_OFFSET),
        Instruction::jump_if_equal(7, TAKEN as i32, 2),
        Instruction::set(0, DROP),
        Instruction::exit(),
        Instruction::set(2, 0),
        Instruction::store_word(1, MARK_OFFSET, 2),
        Instruction::set(0, NEXT),
        Instruction::exit(),
    ]
}
