//! The receiver's segments behind holes, and the SACK blocks that tell of them (RFC 2018, RFC 2883).

use std::collections::VecDeque;

use super::segment::{MAX_SACK_BLOCKS, Range, SackBlocks};

/// How many ranges are remembered as recent.
const RECENT: usize = MAX_SACK_BLOCKS + 1;

/// Ranges received out of order. Once grown to the largest number of holes it allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// Disjoint, not adjacent, ascending.
    ranges: VecDeque<Range>,
    /// The ranges that changed last, newest first: what the next SACK option says. As in Linux one more than fits into
    /// an option, and a range that four others have pushed out is told of again only when it changes.
    recent: [Range; RECENT],
    bytes: u64,
}

impl Reassembly {
    /// Takes a range in. False if all of it was there already.
    pub(super) fn insert(&mut self, new: Range) -> bool {
        // The ranges that touch the new one, from the back: data usually comes in order even behind a hole.
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
        for (place, range) in kept[1..].iter_mut().zip(others) {
            *place = *range;
        }
        self.recent = kept;
    }

    /// Everything below `next` has arrived: returns where the data without a hole now ends.
    pub(super) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(range) = self.ranges.front()
            && range.start <= next
        {
            next = next.max(range.end);
            self.bytes -= range.len();
            self.ranges.pop_front();
        }
        let mut kept = [Range::default(); RECENT];
        for (place, range) in kept
            .iter_mut()
            .zip(self.recent.iter().filter(|range| range.end > next))
        {
            *place = *range;
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

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is no hole.
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
        /// Against a set of single numbers.
        #[test]
        fn holds_what_a_set_holds(steps in prop::collection::vec((1u64..200, 1u64..30, any::<bool>()), 1..80)) {
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
