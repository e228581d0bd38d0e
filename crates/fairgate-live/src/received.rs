//! A received frame, as every back end shows it.

use crate::offload::VnetHeader;
use crate::vlan::Tag;

/// A received frame, in memory of the back end.
#[derive(Clone, Copy)]
pub(crate) struct Received<'a> {
    /// The captured bytes, starting with the Ethernet header.
    pub(crate) bytes: &'a [u8],
    /// The length of the frame on the link. It is larger than `bytes.len()` if the back end had no room for
    /// all of it.
    pub(crate) length: usize,
    /// The VLAN tag that the kernel removed from the frame.
    pub(crate) tag: Option<Tag>,
    /// What the sender left to the hardware.
    pub(crate) offload: VnetHeader,
}
