//! Ethernet: lengths of frames, and EtherTypes.

use crate::vlan::Tag;

/// Bytes of an Ethernet header.
pub(crate) const HEADER: usize = 14;

/// Returns the EtherType of an IP packet by its first byte.
pub(crate) fn protocol_of_ip(first: u8) -> u16 {
    match first >> 4 {
        6 => 0x86dd,
        _ => 0x0800,
    }
}

/// Returns the length of the longest frame at an MTU: with the header, and with a VLAN tag that the kernel
/// leaves in the frame.
pub(crate) fn longest_frame(mtu: usize) -> usize {
    mtu + HEADER + Tag::BYTES
}
