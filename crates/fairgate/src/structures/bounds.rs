//! Finds the flow with the most bytes, exactly. It keeps upper bounds for blocks of flows, because the flow
//! is rarely needed.
//!
//! ```text
//!   flows      3 0 7 1 2 0 0 4 | 9 2 0 ...     their bytes, wherever they are
//!   blocks     7                 12            no flow in the block has more
//!   above      12                              no flow in these eight blocks has more
//! ```
//!
//! When a flow grows, the bounds above it that it exceeds are raised. Usually there are none. When a flow
//! shrinks, no bound changes. A search goes down to the block with the highest bound and reads the sizes of
//! its flows. If no flow in the block is as large as the bound, the bound is corrected and the search starts
//! again.
//!
//! A bound can only be too high after the largest flow of its block shrank. It is then corrected once, in
//! O(log n). So the amortised cost is O(log n) per packet, and nothing while no buffer overflows.

use alloc::boxed::Box;

use crate::pool::Table;

/// The number of flows in a block, and of blocks in a block of the next level. The bounds of a block fill a
/// cache line.
const BLOCK: usize = 8;

/// The upper bounds.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The bounds of all levels, one level after the other. The last level has one bound for all flows.
    bounds: Box<[u64]>,
    /// The start of each level in `bounds`, and after them the end of the last level.
    levels: Box<[u32]>,
    flows: u32,
}

impl Table for Bounds {
    fn of_size(flows: u32) -> Bounds {
        Bounds::new(flows)
    }
}

impl Bounds {
    /// Returns the bounds for `flows` flows of size 0.
    pub(crate) fn new(flows: u32) -> Bounds {
        let mut levels = vec![0];
        let mut of_level = flows;
        while of_level > 1 || levels.len() == 1 {
            of_level = of_level.div_ceil(BLOCK as u32);
            levels.push(levels[levels.len() - 1] + of_level);
        }
        Bounds {
            bounds: vec![0; levels[levels.len() - 1] as usize].into(),
            levels: levels.into(),
            flows,
        }
    }

    /// Whether there are no bounds: of no flows, or before those of a discipline are made.
    pub(crate) fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// Returns whether a flow of this size is within its bounds.
    #[inline]
    pub(crate) fn hold(&self, flow: u32, size: u64) -> bool {
        let bound = self.bounds.get(flow as usize / BLOCK);
        bound.is_some_and(|bound| size <= *bound)
    }

    /// Reports that a flow has grown to `size`.
    #[inline]
    pub(crate) fn grew(&mut self, flow: u32, size: u64) {
        if self.bounds[flow as usize / BLOCK] < size {
            self.raise(flow, size);
        }
    }

    #[cold]
    #[inline(never)]
    fn raise(&mut self, flow: u32, size: u64) {
        let mut block = flow as usize;
        for level in &self.levels[..self.levels.len() - 1] {
            block /= BLOCK;
            let bound = &mut self.bounds[*level as usize + block];
            if *bound >= size {
                return;
            }
            *bound = size;
        }
    }

    /// Returns the flow with the greatest size, and the size. Of equal flows it returns the first. Returns
    /// `None` if all sizes are 0.
    ///
    /// `size_of` must return the current size of a flow: the size last reported by `grew`, minus what the
    /// flow has lost since then.
    pub(crate) fn largest(&mut self, size_of: impl Fn(u32) -> u64) -> Option<(u32, u64)> {
        let top = self.levels.len() - 2;
        loop {
            let highest = self.bounds[self.levels[top] as usize];
            let mut block = 0;
            for level in (0..top).rev() {
                block = self.highest(level, block, highest);
            }
            let first = (block * BLOCK) as u32;
            let flows = first..(first + BLOCK as u32).min(self.flows);
            // `max_by_key` returns the last of equal elements, so the order is reversed.
            let (flow, size) = flows
                .rev()
                .map(|flow| (flow, size_of(flow)))
                .max_by_key(|(_, size)| *size)?;
            if size == highest {
                return (size > 0).then_some((flow, size));
            }
            self.correct(block, size);
        }
    }

    /// Returns the block of `level` with the bound `bound`, among the blocks that belong to block `above` of
    /// the next level.
    fn highest(&self, level: usize, above: usize, bound: u64) -> usize {
        let of_block = self.of_block(level, above);
        let position = self.bounds[of_block.clone()]
            .iter()
            .position(|known| *known == bound);
        let position = position.expect("a bound is the highest bound of the level below");
        of_block.start - self.levels[level] as usize + position
    }

    /// Returns the indices of the bounds of `level` that belong to block `above` of the next level.
    fn of_block(&self, level: usize, above: usize) -> core::ops::Range<usize> {
        let first = self.levels[level] as usize + above * BLOCK;
        first..(first + BLOCK).min(self.levels[level + 1] as usize)
    }

    /// Sets the bound of a block of flows to `size`, and corrects the bounds above it.
    #[inline(never)]
    fn correct(&mut self, mut block: usize, size: u64) {
        self.bounds[block] = size;
        for level in 1..self.levels.len() - 1 {
            block /= BLOCK;
            let bounds = &self.bounds[self.of_block(level - 1, block)];
            let bound = bounds.iter().copied().max().expect("a block isn't empty");
            self.bounds[self.levels[level] as usize + block] = bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the result with a search of all flows, with one to four levels.
        #[test]
        fn the_largest_is_found(
            flows in prop_oneof![1u32..10, 60u32..70, 510u32..520],
            operations in prop::collection::vec((any::<u32>(), 0u64..50, 0u8..8), 0..400),
        ) {
            let mut bounds = Bounds::new(flows);
            let mut sizes = vec![0u64; flows as usize];
            for (flow, size, kind) in operations {
                let flow = flow % flows;
                let known = &mut sizes[flow as usize];
                if size > *known {
                    *known = size;
                    bounds.grew(flow, size);
                } else {
                    *known -= size.min(*known);
                }
                if kind == 0 {
                    let most = sizes.iter().copied().max().unwrap_or(0);
                    let first = sizes.iter().position(|size| *size == most).unwrap_or(0);
                    let expected = (most > 0).then_some((first as u32, most));
                    prop_assert_eq!(bounds.largest(|flow| sizes[flow as usize]), expected);
                }
            }
        }
    }
}
