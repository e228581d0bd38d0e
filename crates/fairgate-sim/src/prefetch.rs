//! Fetches memory before it is needed. With thousands of flows the state of the next packet's flow is in no
//! cache, and no prefetcher of a processor can guess it.

use prefetch_index::prefetch_index;

/// The length of a cache line, bytes.
const LINE: usize = 64;

/// The place where a value begins in memory: its first field, together with `#[repr(C)]`. It takes no memory
/// itself.
pub(crate) type Start = [u8; 0];

/// Prefetches `bytes` bytes, from `offset` bytes after `start` on.
#[inline]
pub(crate) fn prefetch(start: &Start, offset: usize, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch_index(start, offset + line);
    }
}
