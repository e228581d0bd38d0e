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

/// Flips a bit of a frame: bit `number % 8`, counted from the lowest one, of byte `number / 8`. Checksums
/// stay as they are, so that the receiver finds the error. Returns false and writes nothing if the frame has
/// no such bit, as for `FAIRGATE_NO_BIT`.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_frame_flip(frame: *mut u8, size: usize, number: u64) -> bool {
    let flip = |bytes: &mut [u8]| {
        let byte = usize::try_from(number / 8)
            .ok()
            .and_then(|place| bytes.get_mut(place));
        byte.map(|byte| *byte ^= 1 << (number % 8)).is_some()
    };
    // SAFETY: as the caller promises.
    unsafe { with_bytes(frame, size, flip) }
}

/// Calls `write` with the bytes of a frame of a known link layer.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
unsafe fn with(
    frame: *mut u8,
    size: usize,
    link_type: u32,
    write: impl FnOnce(&mut [u8], LinkType) -> bool,
) -> bool {
    let Some(link) = link_type_of(link_type) else {
        return false;
    };
    // SAFETY: as the caller promises.
    unsafe { with_bytes(frame, size, |bytes| write(bytes, link)) }
}

/// Calls `write` with the bytes of a frame, if there is one.
///
/// # Safety
/// `frame` must be valid for reads and writes of `size` bytes, or NULL.
unsafe fn with_bytes(frame: *mut u8, size: usize, write: impl FnOnce(&mut [u8]) -> bool) -> bool {
    if frame.is_null() {
        return false;
    }
    // SAFETY: as the caller promises; it is not NULL.
    let bytes = unsafe { slice::from_raw_parts_mut(frame, size) };
    or(false, || write(bytes))
}
