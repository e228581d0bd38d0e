//! A heap of flows by rising key. The children of an entry share one cache line, and keys are wrapping times.
//!
//! ```text
//!   line 0  [ -  -  - root ]
//!   line 1  [ a  b  c  d ]      the children of the root, which is at position 3
//!   line 2  [ .  .  .  . ]      the children of a, which is at position 4
//!   line 3  [ .  .  .  . ]      the children of b, which is at position 5
//!                               the children of the entry at position p are in line p + 2 - 4
//! ```
//!
//! A line holds four entries of 16 bytes ([`Heap`]: the whole key) or eight entries of 8 bytes
//! ([`NarrowHeap`]: 44 bits of the key, and the flow). The way down reads one line per level. The least entry
//! of a line is found without a branch that could be mispredicted. The way up usually takes one step, because
//! new keys are usually late.
//!
//! Keys are compared by their wrapping difference. So all keys in the heap must differ by less than half of
//! their range. If keys are equal, the lower flow number goes first.

use alloc::vec::Vec;
use core::hint::select_unpredictable;

/// An entry of a heap: a key and a flow.
pub(crate) trait Ordered: Copy + Default {
    /// Whether the entry comes before `other`.
    fn is_before(self, other: Self) -> bool;
}

/// A whole key and a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: u64,
    /// The flow.
    pub(crate) flow: u32,
}

impl Ordered for Entry {
    #[inline]
    fn is_before(self, other: Entry) -> bool {
        let whole = |entry: Entry| u128::from(entry.key) << 64 | u128::from(entry.flow);
        (whole(self).wrapping_sub(whole(other)) as i128) < 0
    }
}

/// A key of 44 bits in the high bits, and a flow of 20 bits in the low bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrow(u64);

/// The number of bits of a flow's number in a narrow entry.
const FLOW_BITS: u32 = 20;

impl Narrow {
    /// A value for unused positions.
    pub(crate) const LEAST: Narrow = Narrow(0);

    /// Returns an entry of the low 44 bits of `key` and of `flow`, which is below 2^20.
    #[inline]
    pub(crate) const fn new(key: u64, flow: u32) -> Narrow {
        debug_assert!(flow >> FLOW_BITS == 0, "there are at most 2^20 flows");
        Narrow(key << FLOW_BITS | flow as u64)
    }

    /// The flow.
    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.0 as u32 & ((1 << FLOW_BITS) - 1)
    }

    /// Whether its key is less than the key of `other`.
    #[inline]
    pub(crate) const fn is_earlier(self, other: Narrow) -> bool {
        ((self.0 | ((1 << FLOW_BITS) - 1)).wrapping_sub(other.0) as i64) < 0
    }

    /// Whether its key is at most `key`.
    #[inline]
    pub(crate) const fn is_at_most(self, key: u64) -> bool {
        let last = key << FLOW_BITS | ((1 << FLOW_BITS) - 1);
        (last.wrapping_sub(self.0) as i64) >= 0
    }
}

impl Ordered for Narrow {
    #[inline]
    fn is_before(self, other: Narrow) -> bool {
        (self.0.wrapping_sub(other.0) as i64) < 0
    }
}

/// A heap of entries with whole keys.
pub(crate) type Heap = LineHeap<Entry, 4>;

/// A heap of entries with short keys.
pub(crate) type NarrowHeap = LineHeap<Narrow, 8>;

/// One cache line of entries.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line<E, const WIDTH: usize>([E; WIDTH]);

/// A heap in which an entry has `WIDTH` children. `make_room` allocates it for all flows before they are
/// used.
#[derive(Debug)]
pub(crate) struct LineHeap<E, const WIDTH: usize> {
    lines: Vec<Line<E, WIDTH>>,
    len: usize,
}

impl<const WIDTH: usize> LineHeap<Entry, WIDTH> {
    /// Inserts a flow that is not in the heap.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, flow: u32) {
        self.insert(Entry { key, flow });
    }

    /// Changes the key of the first flow. The heap must not be empty.
    #[inline]
    pub(crate) fn rekey_first(&mut self, key: u64) {
        let flow = self.at(Self::ROOT).flow;
        self.sink(Entry { key, flow });
    }
}

impl<E: Ordered, const WIDTH: usize> LineHeap<E, WIDTH> {
    /// The position of the first entry.
    const ROOT: usize = WIDTH - 1;

    /// Returns an empty heap without capacity.
    pub(crate) const fn new() -> LineHeap<E, WIDTH> {
        LineHeap {
            lines: Vec::new(),
            len: 0,
        }
    }

    /// Allocates capacity for `flows` entries.
    pub(crate) fn make_room(&mut self, flows: usize) {
        let lines = (Self::ROOT + flows).div_ceil(WIDTH);
        self.lines
            .resize(lines.max(self.lines.len()), Line([E::default(); WIDTH]));
    }

    /// Inserts an entry. Its flow must not be in the heap.
    #[inline]
    pub(crate) fn insert(&mut self, entry: E) {
        let position = Self::ROOT + self.len;
        self.len += 1;
        self.rise(position, entry);
    }

    /// Returns the first entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<E> {
        (self.len > 0).then(|| self.at(Self::ROOT))
    }

    /// Removes and returns the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        let first = self.first()?;
        self.len -= 1;
        if self.len > 0 {
            self.sink(self.at(Self::ROOT + self.len));
        }
        Some(first)
    }

    /// Replaces the first entry. The heap must not be empty.
    #[inline]
    pub(crate) fn replace_first(&mut self, entry: E) {
        debug_assert!(self.len > 0);
        self.sink(entry);
    }

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether the heap is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of flows in the heap.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn at(&self, position: usize) -> E {
        self.lines[position / WIDTH].0[position % WIDTH]
    }

    #[inline]
    fn put(&mut self, position: usize, entry: E) {
        self.lines[position / WIDTH].0[position % WIDTH] = entry;
    }

    #[inline]
    fn rise(&mut self, mut position: usize, entry: E) {
        while position > Self::ROOT {
            let above = position / WIDTH + WIDTH - 2;
            let parent = self.at(above);
            if !entry.is_before(parent) {
                break;
            }
            self.put(position, parent);
            position = above;
        }
        self.put(position, entry);
    }

    /// Overwrites the root and moves `entry` down from there to its position.
    fn sink(&mut self, entry: E) {
        let end = Self::ROOT + self.len;
        let mut position = Self::ROOT;
        loop {
            let below = position + 2 - WIDTH;
            let (child, least) = if below < end / WIDTH {
                least(&self.lines[below].0)
            } else {
                match self.least_of_last(below, end) {
                    Some(found) => found,
                    None => break,
                }
            };
            if !least.is_before(entry) {
                break;
            }
            self.put(position, least);
            position = below * WIDTH + child;
        }
        self.put(position, entry);
    }

    /// Returns the least entry of a line that is empty or partly filled.
    fn least_of_last(&self, below: usize, end: usize) -> Option<(usize, E)> {
        let taken = end.checked_sub(below * WIDTH)?;
        let line = self.lines.get(below)?.0;
        let taken = line[..taken].iter().copied().enumerate();
        taken.reduce(|first, second| {
            if second.1.is_before(first.1) {
                second
            } else {
                first
            }
        })
    }
}

/// Returns the least entry of a full line, and its position in the line.
#[inline]
fn least<E: Ordered, const WIDTH: usize>(line: &[E; WIDTH]) -> (usize, E) {
    let mut entries = *line;
    let mut positions: [usize; WIDTH] = core::array::from_fn(|position| position);
    let mut half = WIDTH / 2;
    while half > 0 {
        for position in 0..half {
            let is_other = entries[position + half].is_before(entries[position]);
            entries[position] = select_unpredictable(is_other, entries[position + half], entries[position]);
            positions[position] =
                select_unpredictable(is_other, positions[position + half], positions[position]);
        }
        half /= 2;
    }
    (positions[0], entries[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// Compares a heap with an ordered set. The keys are on both sides of the wrap. There are enough flows
    /// for three levels.
    fn check<E: Ordered, const WIDTH: usize>(
        operations: Vec<(u8, u64, u32)>,
        new: fn(u64, u32) -> E,
        flow_of: fn(E) -> u32,
    ) {
        let origin = u64::MAX - 25;
        let entry = |key: u64, flow| new(origin.wrapping_add(key), flow);
        let mut heap = LineHeap::<E, WIDTH>::new();
        heap.make_room(200);
        let mut model = BTreeSet::new();
        let mut is_in = [false; 200];
        for (operation, key, flow) in operations {
            let is_in = &mut is_in;
            match operation {
                0..=4 if !is_in[flow as usize] => {
                    heap.insert(entry(key, flow));
                    model.insert((key, flow));
                    is_in[flow as usize] = true;
                }
                5 => {
                    let popped = heap.pop().map(flow_of);
                    let expected = model.pop_first().map(|(_, flow)| flow);
                    assert_eq!(popped, expected);
                    popped.into_iter().for_each(|flow| is_in[flow as usize] = false);
                }
                6 => {
                    if let Some((least, flow)) = model.pop_first() {
                        heap.replace_first(entry(least + key, flow));
                        model.insert((least + key, flow));
                    }
                }
                _ => {}
            }
            assert_eq!(heap.first().map(flow_of), model.first().map(|&(_, flow)| flow));
            assert_eq!(heap.len(), model.len());
        }
    }

    fn operations() -> impl Strategy<Value = Vec<(u8, u64, u32)>> {
        prop::collection::vec((0u8..7, 0u64..50, 0u32..200), 0..600)
    }

    proptest! {
        #[test]
        fn the_least_key_is_first(operations in operations()) {
            check::<Entry, 4>(operations, |key, flow| Entry { key, flow }, |entry| entry.flow);
        }

        #[test]
        fn the_least_short_key_is_first(operations in operations()) {
            check::<Narrow, 8>(operations, Narrow::new, Narrow::flow);
        }

        #[test]
        fn short_keys_are_compared_with_whole_ones(
            key in any::<u64>(),
            ahead in 0u64..1 << 42,
            flow in 0u32..1 << 20,
        ) {
            let entry = Narrow::new(key, flow);
            prop_assert_eq!(entry.flow(), flow);
            prop_assert!(entry.is_at_most(key) && entry.is_at_most(key.wrapping_add(ahead)));
            prop_assert!(!entry.is_at_most(key.wrapping_sub(ahead + 1)));
        }
    }
}
