//! Writes into frames what a tree decided about them.

use std::slice;

use fairgate::flow::{LinkType, set_ce, set_dscp};

use crate::call::or;
use crate::packet::link_type_of;

/// Marks a frame with congestion experienced, and updates IPv4's checksum. Returns whether the frame is now
/// marked. If it is no IP packet of a sender that supports ECN, returns false and writes nothing.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_frame_set_ce(frame: *mut u8, size: usize, link_type: u32) -> bool {
    // SAFETY: as the caller promises.
    unsafe { with(frame, size, link_type, set_ce) }
}

/// Sets the DSCP of a frame, 0 to 63, and updates IPv4's checksum. Returns false and writes nothing if it is
/// no IP packet, or if an argument is wrong.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_frame_set_dscp(
    frame: *mut u8,
    size: usize,
    link_type: u32,
    dscp: u8,
) -> bool {
    // SAFETY: as the caller promises.
    dscp <= 63 && unsafe { with(frame, size, link_type, |bytes, link| set_dscp(bytes, link, dscp)) }
}

/// Calls `write` with the bytes of a frame.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
unsafe fn with(
    frame: *mut u8,
    size: usize,
    link_type: u32,
    write: impl FnOnce(&mut [u8], LinkType) -> bool,
) -> bool {
    let Some(link) = link_type_of(link_type).filter(|_| !frame.is_null()) else {
        return false;
    };
    // SAFETY: as the caller promises; it is not NULL.
    let bytes = unsafe { slice::from_raw_parts_mut(frame, size) };
    or(false, || write(bytes, link))
}
