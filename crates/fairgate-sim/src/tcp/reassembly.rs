//! The segments that the receiver holds behind holes, and the SACK blocks that report them (RFC 2018, RFC
//! 2883).

use std::collections::VecDeque;

use super::segment::{MAX_SACK_BLOCKS, Range, SackBlocks};

/// How many recently changed ranges are remembered.
const RECENT: usize = MAX_SACK_BLOCKS + 1;

/// The ranges received out of order. Once it has grown to the largest number of holes, it allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// Disjoint, not adjacent, in ascending order.
    ranges: VecDeque<Range>,
    /// The ranges that changed last, newest first. The next SACK option reports them. As in Linux, this is
    /// one more than fits into an option. A range that four others have displaced is reported again only
    /// after it changes.
    recent: [Range; RECENT],
    bytes: u64,
}

impl Reassembly {
    /// Adds a range. Returns false if all of it was already there.
    pub(super) fn insert(&mut self, new: Range) -> bool {
        // Search the ranges that touch the new one from the back: even behind a hole, data usually comes in
        // order.
        let mut end = self.ranges.len();
        while end > 0 && self.ranges[end - 1].start > new.end {
            end -= 1;
        }
        let mut begin = end;
        let mut merged = new;
        let mut known = 0;
        while begin > 0 && self.ranges[begin - 1].end >= new.start {
            begin -= 1;
            let range = self.ranges[begin];
            known += range.len();
            merged.start = merged.start.min(range.start);
            merged.end = merged.end.max(range.end);
        }
        let is_new = merged.len() > known;
        self.bytes += merged.len() - known;
        if begin == end {
            self.ranges.insert(begin, merged);
        } else {
            self.ranges[begin] = merged;
            self.ranges.drain(begin + 1..end);
        }
        self.remember(merged);
        is_new
    }

    fn remember(&mut self, changed: Range) {
        let mut kept = [Range::default(); RECENT];
        kept[0] = changed;
        let others = self
            .recent
            .iter()
            .filter(|range| !range.is_empty() && !changed.contains(**range));
        for (slot, range) in kept[1..].iter_mut().zip(others) {
            *slot = *range;
        }
        self.recent = kept;
    }

    /// Handles that everything below `next` has arrived. Returns where the contiguous data now ends.
    pub(super) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(range) = self.ranges.front()
            && range.start <= next
        {
            next = next.max(range.end);
            self.bytes -= range.len();
            self.ranges.pop_front();
        }
        let mut kept = [Range::default(); RECENT];
        for (slot, range) in kept
            .iter_mut()
            .zip(self.recent.iter().filter(|range| range.end > next))
        {
            *slot = *range;
        }
        self.recent = kept;
        next
    }

    /// Appends the most recently changed ranges to `option` while there is room.
    pub(super) fn report(&self, option: &mut SackBlocks) {
        for range in self.recent.iter().filter(|range| !range.is_empty()) {
            if !option.push(*range) {
                return;
            }
        }
    }

    /// Releases memory if there is no hole.
    pub(super) fn release_memory(&mut self) {
        if self.ranges.is_empty() {
            self.ranges = VecDeque::new();
        }
    }

    /// Returns the number of bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether there is no hole.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn newest_block_comes_first() {
        let mut reassembly = Reassembly::default();
        for start in [10, 30, 50, 70] {
            assert!(reassembly.insert(Range {
                start,
                end: start + 5
            }));
        }
        assert!(reassembly.insert(Range { start: 35, end: 40 }));
        let mut option = SackBlocks::NONE;
        reassembly.report(&mut option);
        let starts: Vec<u64> = option.as_slice().iter().map(|block| block.start).collect();
        assert_eq!(starts, [30, 70, 50]);
    }

    proptest! {
        /// Compares with a set of single numbers.
        #[test]
        fn contains_the_same_numbers_as_a_set(
            steps in prop::collection::vec((1u64..200, 1u64..30, any::<bool>()), 1..80),
        ) {
            let mut reassembly = Reassembly::default();
            let mut model = BTreeSet::new();
            let mut next = 0u64;
            for (offset, length, fill) in steps {
                if fill {
                    next += length;
                    model = model.split_off(&next);
                    let reached = reassembly.advance(next);
                    while model.remove(&next) {
                        next += 1;
                    }
                    prop_assert_eq!(reached, next);
                } else {
                    let range = Range { start: next + offset, end: next + offset + length };
                    let before = model.len();
                    model.extend(range.start..range.end);
                    prop_assert_eq!(reassembly.insert(range), model.len() > before);
                }
                prop_assert_eq!(reassembly.bytes(), model.len() as u64);
                let mut option = SackBlocks::NONE;
                reassembly.report(&mut option);
                prop_assert!(!fill || option.as_slice().iter().all(|block| block.start > next));
                prop_assert!(fill || !option.is_empty());
                for block in option.as_slice() {
                    prop_assert!((block.start..block.end).all(|n| model.contains(&n)));
                    prop_assert!(!model.contains(&block.end));
                    prop_assert!(block.start == 0 || !model.contains(&(block.start - 1)));
                }
            }
        }
    }
}
