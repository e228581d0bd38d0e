//! The table by which the kernel divides frames among workers: from prefixes of addresses to workers.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use super::bpf::{Instruction, PrefixMap, load_for_sockets};

/// The helpers `bpf_map_lookup_elem` and `bpf_skb_load_bytes_relative` (linux/bpf.h).
const LOOK_UP: i32 = 1;
const LOAD_RELATIVE: i32 = 68;
/// `BPF_HDR_START_NET`: offsets begin at the network header.
const NETWORK_HEADER: i32 = 1;
/// The offset of `protocol` in `struct __sk_buff`. It is in network byte order.
const PROTOCOL: i16 = 16;
/// Registers: the result, the first arguments, one that survives calls, and the frame pointer.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const FRAME: u8 = 10;

/// Where an address is in the headers of IPv4 and of IPv6.
pub(super) type Offsets = (i32, i32);

/// Prefixes of both families, each with a worker.
#[derive(Debug)]
pub(crate) struct PrefixTable {
    ipv4: PrefixMap<4>,
    ipv6: PrefixMap<16>,
}

impl PrefixTable {
    /// Creates an empty table.
    pub(crate) fn new() -> Result<PrefixTable, Errno> {
        Ok(PrefixTable {
            ipv4: PrefixMap::new()?,
            ipv6: PrefixMap::new()?,
        })
    }

    /// Sets the worker of a prefix, given by its address and length.
    pub(crate) fn set(&self, (address, length): (IpAddr, u8), worker: u32) -> Result<(), Errno> {
        match address {
            IpAddr::V4(address) => self.ipv4.set(address.octets(), length, worker),
            IpAddr::V6(address) => self.ipv6.set(address.octets(), length, worker),
        }
    }

    /// Removes a prefix.
    pub(crate) fn remove(&self, (address, length): (IpAddr, u8)) -> Result<(), Errno> {
        match address {
            IpAddr::V4(address) => self.ipv4.remove(address.octets(), length),
            IpAddr::V6(address) => self.ipv6.remove(address.octets(), length),
        }
    }

    /// Loads the program that returns the worker of a frame, by the address at these offsets in IPv4 and IPv6
    /// headers. It returns 0 for frames without an address in the table. Tags of VLANs are not in the frame,
    /// except for a second one: then the protocol is that of VLANs.
    pub(crate) fn program(&self, (in_ipv4, in_ipv6): Offsets) -> Result<OwnedFd, Errno> {
        let ipv6 = looked_up(self.ipv6.address(R1), in_ipv6, 16);
        let ipv4 = looked_up(self.ipv4.address(R1), in_ipv4, 4);
        let on_wire = |protocol: i32| i32::from((protocol as u16).to_be());
        let mut program = vec![
            Instruction::copy(R6, R1),
            Instruction::load_word(R2, R6, PROTOCOL),
            Instruction::jump_unless_equal(R2, on_wire(libc::ETH_P_IP), ipv4.len() as i16),
        ];
        program.extend(ipv4);
        program.push(Instruction::jump_unless_equal(
            R2,
            on_wire(libc::ETH_P_IPV6),
            ipv6.len() as i16,
        ));
        program.extend(ipv6);
        program.extend([Instruction::set(R0, 0), Instruction::exit()]);
        load_for_sockets(&program)
    }
}

/// Returns the instructions that look up the address of `bytes` bytes at `offset` in the network header, and
/// return what the map has for it, or 0.
fn looked_up(map: [Instruction; 2], offset: i32, bytes: i32) -> Vec<Instruction> {
    // The key is on the stack: the length of the prefix, which is that of the address, and the address.
    let key = -(4 + bytes as i16);
    let address = key + 4;
    let mut program = vec![
        Instruction::copy(R1, R6),
        Instruction::set(R2, offset),
        Instruction::copy(R3, FRAME),
        Instruction::add(R3, address.into()),
        Instruction::set(R4, bytes),
        Instruction::set(R5, NETWORK_HEADER),
        Instruction::call(LOAD_RELATIVE),
    ];
    let found = [Instruction::load_word(R0, R0, 0), Instruction::exit()];
    let nothing = [Instruction::set(R0, 0), Instruction::exit()];
    let rest = [
        &[Instruction::store_immediate(FRAME, key, 8 * bytes)][..],
        &map,
        &[
            Instruction::copy(R2, FRAME),
            Instruction::add(R2, key.into()),
            Instruction::call(LOOK_UP),
            Instruction::jump_if_equal(R0, 0, found.len() as i16),
        ],
        &found,
    ]
    .concat();
    // A frame that ends before the address has none.
    program.push(Instruction::jump_unless_equal(R0, 0, rest.len() as i16));
    program.extend(rest);
    program.extend(nothing);
    program
}
