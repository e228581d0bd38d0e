//! Groups of packet sockets among which the kernel divides arriving frames (PACKET_FANOUT, packet(7)).
//!
//! A member receives what the group's rule gives to it, and nothing else. All members have the same rule.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;

use super::prefix_table::{Offsets, PrefixTable};
use super::socket::{get_option, instruction, program_of, set_option};

/// The rule of a group.
#[derive(Clone, Debug)]
pub(crate) enum Division {
    /// The kernel's flow hash.
    Flows,
    /// A hash of the IP source address, with this odd factor.
    Sources(u32),
    /// The same of the destination address.
    Destinations(u32),
    /// What a table says of the source address.
    SourcesOf(Arc<PrefixTable>),
    /// What a table says of the destination address.
    DestinationsOf(Arc<PrefixTable>),
}

/// `PACKET_FANOUT_HASH` of linux/if_packet.h, and the other constants from there.
const HASH: u32 = 0;
const CBPF: u32 = 6;
const EBPF: u32 = 7;
/// The kernel chooses the number of the group.
const UNIQUE_ID: u32 = 0x2000;
/// Frames that are sent do not come to the group (Linux 5.16): each would be forwarded again.
const IGNORE_OUTGOING: u32 = 0x4000;
const SOURCE: Offsets = (12, 8);
const DESTINATION: Offsets = (16, 24);

const PACKET_FANOUT: libc::c_int = 18;
const PACKET_FANOUT_DATA: libc::c_int = 22;

/// Makes a group of a bound socket. Returns the number of the group.
pub(crate) fn found(socket: &OwnedFd, division: &Division) -> Result<u16, Errno> {
    set_option(socket, PACKET_FANOUT, &((rule(division) | UNIQUE_ID) << 16))?;
    match division {
        Division::Flows => {}
        Division::Sources(factor) => divide(socket, *factor, SOURCE)?,
        Division::Destinations(factor) => divide(socket, *factor, DESTINATION)?,
        Division::SourcesOf(table) => divide_by_table(socket, table, SOURCE)?,
        Division::DestinationsOf(table) => divide_by_table(socket, table, DESTINATION)?,
    }
    let mut group: u32 = 0;
    get_option(socket, libc::SOL_PACKET, PACKET_FANOUT, &mut group)?;
    Ok(group as u16)
}

/// Adds a bound socket to a group of the same rule.
pub(crate) fn join(socket: &OwnedFd, division: &Division, group: u16) -> Result<(), Errno> {
    set_option(socket, PACKET_FANOUT, &(u32::from(group) | rule(division) << 16))
}

fn rule(division: &Division) -> u32 {
    let kind = match division {
        Division::Flows => HASH,
        Division::Sources(_) | Division::Destinations(_) => CBPF,
        Division::SourcesOf(_) | Division::DestinationsOf(_) => EBPF,
    };
    kind | IGNORE_OUTGOING
}

/// Gives a group the program that looks an address up.
fn divide_by_table(socket: &OwnedFd, table: &PrefixTable, offsets: Offsets) -> Result<(), Errno> {
    let program = table.program(offsets)?;
    // The group keeps the program, and the program its table.
    set_option(socket, PACKET_FANOUT_DATA, &program.as_raw_fd())
}

/// Gives a group its program of classic BPF: it hashes an address at these offsets in IPv4 and IPv6 headers.
/// The member is the result modulo their number. The tags of VLANs are not in the frame, except for a second
/// one: then there is no IP header where it is looked for, and the result is 0.
fn divide(socket: &OwnedFd, factor: u32, (in_ipv4, in_ipv6): Offsets) -> Result<(), Errno> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const GO: u32 = libc::BPF_JMP | libc::BPF_JA;
    const MULTIPLY: u32 = libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K;
    const SHIFT: u32 = libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K;
    const XOR: u32 = libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X;
    const TO_X: u32 = libc::BPF_MISC;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const RETURN_A: u32 = libc::BPF_RET | libc::BPF_A;
    let field = |offset: i32| (libc::SKF_NET_OFF + offset) as u32;
    let protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    // Multiplied and folded, so that the low bits of the result depend on all bits.
    let mix = [
        instruction(MULTIPLY, 0, 0, factor),
        instruction(TO_X, 0, 0, 0),
        instruction(SHIFT, 0, 0, 15),
        instruction(XOR, 0, 0, 0),
    ];
    // a = a ^ the next word of an IPv6 address
    let word = |number: i32| {
        [
            instruction(TO_X, 0, 0, 0),
            instruction(LOAD, 0, 0, field(in_ipv6 + 4 * number)),
            instruction(XOR, 0, 0, 0),
        ]
    };
    let ipv6 = [
        &[instruction(LOAD, 0, 0, field(in_ipv6))][..],
        &mix,
        &word(1),
        &mix,
        &word(2),
        &mix,
        &word(3),
    ]
    .concat();
    let ipv4 = [
        instruction(LOAD, 0, 0, field(in_ipv4)),
        instruction(GO, 0, 0, ipv6.len() as u32),
    ];
    let mut program = vec![
        instruction(LOAD, 0, 0, protocol),
        instruction(EQUAL, 2, 0, libc::ETH_P_IP as u32),
        instruction(EQUAL, 1 + ipv4.len() as u8, 0, libc::ETH_P_IPV6 as u32),
        instruction(RETURN, 0, 0, 0),
    ];
    // The first jump leads over the second one and the return.
    program.extend(ipv4);
    program.extend(ipv6);
    program.extend(mix);
    program.extend(mix);
    program.push(instruction(RETURN_A, 0, 0, 0));
    // The kernel copies the program during the call.
    set_option(socket, PACKET_FANOUT_DATA, &program_of(&mut program))
}
