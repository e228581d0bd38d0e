//! Computes where the slots of a packet ring are. It does not access the memory.
//!
//! ```text
//!   block 0                          block 1
//!   [ slot 0 ][ slot 1 ] ... [pad]   [ slot n ] ...       packet_mmap(7): slots never straddle a block
//! ```
//!
//! The length of a slot is a power of two, and the length of a block a multiple of it. There is no padding,
//! and slot `i` begins at `i * slot`.

/// The bytes in front of a frame in its slot: `tpacket2_hdr` and `sockaddr_ll` (52), room for the link-layer
/// header (16), both aligned to 16, and the virtio header (10), rounded up.
const HEAD_ROOM: usize = 96;

/// The length of the smallest slot: half a page. A full-sized Ethernet frame fits.
const SMALLEST_SLOT: usize = 2048;

/// The length of a block. The kernel allocates a block contiguously; larger pieces may be unavailable on a
/// machine that has run for long.
const BLOCK: usize = 64 * 1024;

/// The shape of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The length of a slot in bytes: a power of two.
    pub(crate) slot: usize,
    /// The number of slots: a power of two.
    pub(crate) slots: usize,
    /// The length of a block in bytes: a multiple of the slot and of the page.
    pub(crate) block: usize,
}

impl Layout {
    /// The longest frame that fits into the largest possible slot.
    pub(crate) const LONGEST_FRAME: usize = BLOCK - HEAD_ROOM;

    /// Creates the layout of `slots` slots, a power of two, for frames of up to `longest` bytes. Returns
    /// `None` if frames are longer than [`Layout::LONGEST_FRAME`].
    pub(crate) fn new(longest: usize, slots: usize) -> Option<Layout> {
        assert!(
            slots.is_power_of_two(),
            "the number of slots must be a power of two"
        );
        if longest > Layout::LONGEST_FRAME {
            return None;
        }
        let slot = (longest + HEAD_ROOM).next_power_of_two().max(SMALLEST_SLOT);
        // A ring has at least one block.
        let slots = slots.max(BLOCK / slot);
        Some(Layout {
            slot,
            slots,
            block: BLOCK,
        })
    }

    /// Returns the length of the whole ring in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.slot * self.slots
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.bytes() / self.block
    }

    /// Returns the offset at which slot `index` begins.
    pub(crate) fn offset(&self, index: usize) -> usize {
        debug_assert!(index < self.slots);
        index * self.slot
    }

    /// Returns the slot after `index`.
    pub(crate) fn next(&self, index: usize) -> usize {
        (index + 1) & (self.slots - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_ethernet_frame_fits_the_smallest_slot_and_a_jumbo_frame_a_larger_one() {
        assert_eq!(Layout::new(1522, 4096).unwrap().slot, 2048);
        assert_eq!(Layout::new(9022, 4096).unwrap().slot, 16 * 1024);
        assert_eq!(Layout::new(Layout::LONGEST_FRAME + 1, 4096), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Checks what the kernel requires of a ring, and what `ring.rs` relies on: slots fill the mapping
        /// without gaps.
        #[test]
        fn slots_fill_the_ring_without_gaps(longest in 1..=Layout::LONGEST_FRAME, order in 0u32..13) {
            let layout = Layout::new(longest, 1 << order).unwrap();
            prop_assert_eq!(layout.block % 4096, 0);
            prop_assert_eq!(layout.block % layout.slot, 0);
            prop_assert_eq!(layout.slot % 16, 0);
            prop_assert_eq!(layout.blocks() * (layout.block / layout.slot), layout.slots);
            prop_assert!(longest + HEAD_ROOM <= layout.slot);
            let mut index = 0;
            for step in 0..layout.slots {
                prop_assert_eq!(layout.offset(index), step * layout.slot);
                index = layout.next(index);
            }
            prop_assert_eq!(index, 0);
            prop_assert_eq!(layout.offset(layout.slots - 1) + layout.slot, layout.bytes());
        }
    }
}
