//! The flow with the most bytes, exactly, for the few times that it is wanted: upper bounds over blocks of flows.
//!
//! ```text
//!   flows      3 0 7 1 2 0 0 4 | 9 2 0 ...     their bytes, wherever they are
//!   blocks     7                 12            no flow of the block has more
//!   above      12                              nor any flow of eight blocks
//! ```
//!
//! A flow that grows raises the bounds above it that it exceeds, mostly none; a flow that shrinks leaves them. A search
//! goes down to the block with the highest bound and counts; if no flow of it has so many bytes, the bound is corrected
//! and the search begins anew. A bound is wrong only after a flow shrank that had been the largest of its block, and is
//! corrected once, at O(log n): so a packet costs O(log n) in all, amortised, and nothing while no buffer overflows.

use alloc::boxed::Box;

/// Flows of a block, blocks of a block above: bounds of a block fill a cache line.
const BLOCK: usize = 8;

/// The bounds.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Level by level; the last is one for all flows.
    bounds: Box<[u64]>,
    /// Where each level begins, and after them where the last one ends.
    levels: Box<[u32]>,
    flows: u32,
}

impl Bounds {
    /// Of `flows` flows that have nothing.
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

    /// A flow has grown to `size`.
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

    /// The flow with the greatest size, the first of them, and the size; `size_of` must tell those that `grew` was told, less
    /// what the flow lost since. `None` if all are 0.
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
            // The last of equals is what max_by_key finds: so backwards.
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

    /// The block of `level` that has the bound `bound`, of those that make up block `above` of the next level.
    fn highest(&self, level: usize, above: usize, bound: u64) -> usize {
        let of_block = self.of_block(level, above);
        let place = self.bounds[of_block.clone()]
            .iter()
            .position(|known| *known == bound);
        let place = place.expect("a bound above others is that of one of them");
        of_block.start - self.levels[level] as usize + place
    }

    /// The bounds of `level` that make up block `above` of the next level.
    fn of_block(&self, level: usize, above: usize) -> core::ops::Range<usize> {
        let first = self.levels[level] as usize + above * BLOCK;
        first..(first + BLOCK).min(self.levels[level + 1] as usize)
    }

    /// The bound of a block of flows is `size`, and those above it what follows.
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
        /// Against a search of all flows, with one to four levels.
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
