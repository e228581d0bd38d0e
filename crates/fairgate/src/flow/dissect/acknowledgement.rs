//! Reads what a TCP packet acknowledges, for filters of acknowledgements.
//!
//! As in Linux's sch_cake.c, TCP is found directly above IPv4 or IPv6, or above IPv6 in IPv4 (6in4), and not
//! behind IPv6 extension headers. Unlike there, a fragment has no acknowledgement.

use super::{bytes_at, network, u16_at};
use crate::flow::acknowledgement::{Acknowledgement, Timestamps};
use crate::flow::numbers::protocol::{IPV6_IN_IP, TCP};

/// The shortest TCP header, bytes.
const SHORTEST: usize = 20;

/// Flags of the TCP header.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE_AND_CWR: u8 = 0xc0;

/// Kinds of options (IANA, "TCP Option Kind Numbers").
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const MD5_SIGNATURE: u8 = 19;
}

/// A TCP segment and the addresses of its packet.
struct Segment<'a> {
    source: [u8; 16],
    destination: [u8; 16],
    /// The segment, which may be cut off or padded.
    bytes: &'a [u8],
    /// Its length according to the IP header.
    length: usize,
}

/// Returns the acknowledgement in an IP packet. `None` if there is no whole TCP header.
pub(super) fn acknowledgement(packet: &[u8]) -> Option<Acknowledgement> {
    let Segment {
        source,
        destination,
        bytes,
        length,
    } = match packet.first()? >> 4 {
        4 => in_v4(packet),
        6 => in_v6(packet),
        _ => None,
    }?;
    let header = bytes_at::<SHORTEST>(bytes, 0)?;
    let header_length = usize::from(header[12] >> 4) * 4;
    let options = bytes.get(..header_length)?.get(SHORTEST..)?;
    let [reserved, flags] = [header[12] & 0x0f, header[13]];
    let mut read = Acknowledgement {
        source,
        destination,
        ports: [u16_at(header, 0)?, u16_at(header, 2)?],
        number: u32::from_be_bytes(*bytes_at(header, 8)?),
        ecn_flags: flags & ECE_AND_CWR,
        is_valid: flags & (ACK | SYN) == ACK,
        is_pure: reserved == 0 && flags & !ECE_AND_CWR == ACK && length == header_length,
        ..Acknowledgement::default()
    };
    read_options(options, &mut read);
    Some(read)
}

fn in_v4(packet: &[u8]) -> Option<Segment<'_>> {
    let header = packet.first_chunk::<20>()?;
    let header_length = usize::from(header[0] & 15) * 4;
    // "More fragments", or an offset.
    let is_fragment = u16_at(header, 6)? & 0x3fff != 0;
    let above = packet
        .get(header_length..)
        .filter(|_| header_length >= 20 && !is_fragment)?;
    match header[9] {
        TCP => Some(Segment {
            source: network::mapped(*bytes_at(header, 12)?),
            destination: network::mapped(*bytes_at(header, 16)?),
            bytes: above,
            length: usize::from(u16_at(header, 2)?).checked_sub(header_length)?,
        }),
        IPV6_IN_IP => in_v6(above),
        _ => None,
    }
}

fn in_v6(packet: &[u8]) -> Option<Segment<'_>> {
    let (header, above) = packet.split_first_chunk::<40>()?;
    let is_tcp = header[0] >> 4 == 6 && header[6] == TCP;
    is_tcp.then_some(Segment {
        source: *bytes_at(header, 8)?,
        destination: *bytes_at(header, 24)?,
        bytes: above,
        length: usize::from(u16_at(header, 4)?),
    })
}

/// Reads the first SACK option and the first timestamps. Options that could say something else make the
/// packet impure. What follows a malformed option is not read.
fn read_options(mut options: &[u8], into: &mut Acknowledgement) {
    let mut has_sack = false;
    let mut has_timestamps = false;
    loop {
        let (kind, length) = match *options {
            [] | [kind::END, ..] => return,
            [kind::NO_OPERATION, ..] => {
                options = &options[1..];
                continue;
            }
            [kind, length, ..] if length >= 2 => (kind, usize::from(length)),
            _ => return,
        };
        let Some((option, rest)) = options.split_at_checked(length) else {
            return;
        };
        options = rest;
        match kind {
            kind::MD5_SIGNATURE => {}
            kind::SACK => {
                into.is_pure &= length % 8 == 2;
                if !has_sack {
                    for block in option[2..].chunks_exact(8) {
                        let (start, end) = (number_at(block, 0), number_at(block, 4));
                        into.sack.push(start, end);
                    }
                }
                has_sack = true;
            }
            kind::TIMESTAMPS => {
                let is_well_formed = length == 10;
                into.is_pure &= is_well_formed;
                if is_well_formed && !has_timestamps {
                    into.timestamps = Some(Timestamps {
                        value: number_at(option, 2),
                        echo: number_at(option, 6),
                    });
                }
                has_timestamps = true;
            }
            _ => into.is_pure = false,
        }
    }
}

fn number_at(bytes: &[u8], offset: usize) -> u32 {
    bytes_at(bytes, offset).map_or(0, |four| u32::from_be_bytes(*four))
}
