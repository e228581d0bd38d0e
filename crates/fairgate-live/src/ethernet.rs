//! Lengths of Ethernet frames.

use crate::vlan::Tag;

/// Bytes of an Ethernet header.
pub(crate) const HEADER: usize = 14;

/// Returns the length of the longest frame at an MTU: with the header, and with a VLAN tag that the kernel
/// leaves in the frame.
pub(crate) fn longest_frame(mtu: usize) -> usize {
    mtu + HEADER + Tag::BYTES
}
