//! Memory in chunks of equal length: each holds one frame.
//!
//! A frame store and the AF_XDP sockets of a run have the same chunks, so that a frame can stay where it is
//! from the interface that received it to the interface that sends it. Each chunk is used by one of them at a
//! time. The store keeps the books (`frames.rs`).

use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::errno::Errno;

use crate::sys::mapping::Mapping;

/// A range of chunks in a memory.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    memory: Arc<Mapping>,
    /// The address of the first chunk in the memory, bytes.
    begin: usize,
    /// The bytes of a chunk.
    length: usize,
    count: u32,
}

impl Chunks {
    /// Returns `count` chunks of `length` bytes in a memory of their own. What is never written to takes no
    /// memory.
    ///
    /// # Errors
    /// Fails if this machine does not have that much memory.
    pub(crate) fn new(count: u32, length: usize) -> Result<Chunks, Errno> {
        let bytes = (count as usize).checked_mul(length).ok_or(Errno::ENOMEM)?;
        let bytes = NonZeroUsize::new(bytes).expect("there are chunks, and they have bytes");
        Ok(Chunks {
            memory: Arc::new(Mapping::zeros(bytes)?),
            begin: 0,
            length,
            count,
        })
    }

    /// Returns two ranges of chunks that follow each other in one memory.
    ///
    /// # Errors
    /// The errors of [`Chunks::new`].
    pub(crate) fn side_by_side(counts: [u32; 2], length: usize) -> Result<[Chunks; 2], Errno> {
        let all = counts[0].checked_add(counts[1]).ok_or(Errno::ENOMEM)?;
        let all = Chunks::new(all, length)?;
        let second = Chunks {
            begin: counts[0] as usize * length,
            count: counts[1],
            ..all.clone()
        };
        let first = Chunks {
            count: counts[0],
            ..all
        };
        Ok([first, second])
    }

    /// Returns the memory that these and other chunks are in.
    pub(crate) fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Returns the bytes of a chunk.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns the number of chunks.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the address of a chunk in the memory, bytes.
    #[inline]
    pub(crate) fn address(&self, number: u32) -> u64 {
        assert!(number < self.count, "there is no chunk {number}");
        (self.begin + number as usize * self.length) as u64
    }

    /// Returns the chunk in which an address of the memory is, and the position there. `None` if it is in
    /// none of these chunks. The length of a chunk must be a power of two.
    #[inline]
    pub(crate) fn chunk_at(&self, address: u64) -> Option<(u32, usize)> {
        debug_assert!(self.length.is_power_of_two());
        let offset = (address as usize).wrapping_sub(self.begin);
        if offset >= self.count as usize * self.length {
            return None;
        }
        // A shift instead of a division.
        let number = offset >> self.length.trailing_zeros();
        Some((number as u32, offset & (self.length - 1)))
    }

    /// Returns the address in the memory where `bytes` begin, if all of them are in one of these chunks. The
    /// length of a chunk must be a power of two.
    #[inline]
    pub(crate) fn address_of(&self, bytes: &[u8]) -> Option<u64> {
        let address = bytes
            .as_ptr()
            .addr()
            .wrapping_sub(self.memory.base().addr().get());
        let offset = address.wrapping_sub(self.begin);
        if offset >= self.count as usize * self.length {
            return None;
        }
        let within = offset & (self.length - 1);
        (within + bytes.len() <= self.length).then_some(address as u64)
    }

    /// Returns a pointer to a position in a chunk. The rest of the chunk may be accessed by it.
    #[inline]
    fn pointer(&self, number: u32, position: usize) -> NonNull<u8> {
        assert!(
            number < self.count && position <= self.length,
            "chunk {number} has no byte {position}"
        );
        // SAFETY: the chunk is in the memory, because constructors make it so, and the position is in the
        // chunk.
        unsafe {
            self.memory
                .base()
                .add(self.begin + number as usize * self.length + position)
        }
    }

    /// Returns `length` bytes of a chunk from `start` on.
    ///
    /// # Safety
    /// Nothing writes to them while the result is used, neither this process nor the kernel.
    #[inline]
    pub(crate) unsafe fn get(&self, number: u32, start: usize, length: usize) -> &[u8] {
        let pointer = self.pointer(number, start);
        assert!(start + length <= self.length, "the bytes are in one chunk");
        // SAFETY: the bytes are in one chunk, so they are mapped and initialised as long as `self` is. The
        // caller promises that nothing writes to them.
        unsafe { std::slice::from_raw_parts(pointer.as_ptr(), length) }
    }

    /// Returns `length` bytes of a chunk from `start` on, to be written to.
    ///
    /// # Safety
    /// Nothing else accesses them while the result is used, neither this process nor the kernel.
    // The chunk is what is borrowed, and not the range of all.
    #[expect(clippy::mut_from_ref)]
    #[inline]
    pub(crate) unsafe fn get_mut(&self, number: u32, start: usize, length: usize) -> &mut [u8] {
        let pointer = self.pointer(number, start);
        assert!(start + length <= self.length, "the bytes are in one chunk");
        // SAFETY: as in `get`, and the caller promises that nothing else accesses them.
        unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_both_ranges_are_told_apart() {
        let [first, second] = Chunks::side_by_side([3, 2], 64).unwrap();
        assert_eq!((first.address(2), second.address(0)), (128, 192));
        assert_eq!(first.chunk_at(130), Some((2, 2)));
        assert_eq!(first.chunk_at(192), None);
        assert_eq!(second.chunk_at(192 + 64), Some((1, 0)));
        assert_eq!(second.chunk_at(191), None);
        assert_eq!(second.chunk_at(320), None);
    }

    #[test]
    fn bytes_are_found_in_their_chunk() {
        let [first, second] = Chunks::side_by_side([3, 2], 64).unwrap();
        // SAFETY: no other slice of this chunk exists.
        let bytes = unsafe { second.get_mut(1, 4, 60) };
        bytes.fill(7);
        assert_eq!(second.address_of(bytes), Some(192 + 64 + 4));
        assert_eq!(first.address_of(bytes), None);
        assert_eq!(first.address_of(&[0; 10]), None);
        // SAFETY: nothing writes to the chunk from here on.
        let again = unsafe { second.get(1, 63, 1) };
        assert_eq!(again, [7]);
    }

    #[test]
    #[should_panic(expected = "the bytes are in one chunk")]
    fn no_slice_reaches_into_the_next_chunk() {
        let chunks = Chunks::new(2, 64).unwrap();
        // SAFETY: it panics before there is a slice.
        let _ = unsafe { chunks.get(0, 10, 55) };
    }
}
