//! Memory mapped into this process, shared with the kernel. It is unmapped on drop.

use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use nix::errno::Errno;

/// A mapping that is readable and writable.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: a mapping is not tied to the thread that made it. Access to its memory is up to its users.
unsafe impl Send for Mapping {}
// SAFETY: as above. A shared reference gives its address and length only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of what `descriptor` stands for, from `offset` on. A child process does not get
    /// the mapping: it would keep the descriptor's file open.
    pub(crate) fn of(descriptor: &OwnedFd, length: NonZeroUsize, offset: i64) -> Result<Mapping, Errno> {
        let mapping = Mapping::map(length, libc::MAP_SHARED, descriptor.as_raw_fd(), offset)?;
        mapping.hide_from_children()?;
        Ok(mapping)
    }

    /// The same for the value of a BPF map, which a child process gets, too.
    pub(crate) fn of_map(map: &OwnedFd, length: NonZeroUsize) -> Result<Mapping, Errno> {
        Mapping::map(length, libc::MAP_SHARED, map.as_raw_fd(), 0)
    }

    /// Maps new memory of zeros, aligned to a page. A child process does not get it: the kernel would have to
    /// copy what devices write to.
    pub(crate) fn zeros(length: NonZeroUsize) -> Result<Mapping, Errno> {
        let mapping = Mapping::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        mapping.hide_from_children()?;
        Ok(mapping)
    }

    fn map(length: NonZeroUsize, flags: libc::c_int, descriptor: i32, offset: i64) -> Result<Mapping, Errno> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses. It invalidates no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length.get(),
                protection,
                flags,
                descriptor,
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Mapping {
            base: NonNull::new(base.cast()).expect("mmap without MAP_FIXED never maps page zero"),
            length,
        })
    }

    fn hide_from_children(&self) -> Result<(), Errno> {
        if cfg!(miri) {
            // Miri has no `madvise`, and no children.
            return Ok(());
        }
        // SAFETY: the range is this mapping. What this process sees does not change.
        let result =
            unsafe { libc::madvise(self.base.as_ptr().cast(), self.length.get(), libc::MADV_DONTFORK) };
        Errno::result(result).map(drop)
    }

    /// Returns the address of the first byte. It is valid as long as this value exists.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the number of bytes.
    pub(crate) fn length(&self) -> usize {
        self.length.get()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `mmap` made the mapping with this length. Users of its memory keep it in the same structure
        // as what points into it, and hand out no reference that outlives that structure.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length.get()) };
    }
}
