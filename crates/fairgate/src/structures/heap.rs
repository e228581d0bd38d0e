//! Flows by rising key: a heap in which the children of an entry are one cache line, and keys are wrapping times.
//!
//! ```text
//!   line 0  [ -  -  - root ]
//!   line 1  [ a  b  c  d ]      the children of the root, at place 3
//!   line 2  [ .  .  .  . ]      those of a, at place 4
//!   line 3  [ .  .  .  . ]      those of b, at place 5      so those of the entry at place p are line p + 2 - 4
//! ```
//!
//! A line holds four entries of 16 bytes ([`Heap`]: the whole key) or eight of 8 ([`NarrowHeap`]: 44 bits of the key and
//! the flow). The way down takes one line a level, and the least of a line is found without a branch that could be
//! guessed wrong. The way up is mostly one step: new keys are late ones.
//!
//! Keys are compared by their wrapping difference, so all that are in the heap at a time must lie within half of their
//! range of one another. Among equal keys the lower flow number goes first.

use alloc::vec::Vec;
use core::hint::select_unpredictable;

/// What a heap holds: a key and a flow.
pub(crate) trait Ordered: Copy + Default {
    /// Whether it comes before `other`.
    fn is_before(self, other: Self) -> bool;
}

/// A key and a flow.
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

/// A key of 44 bits above a flow of 20.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrow(u64);

/// Bits of a flow's number in a narrow entry.
const FLOW_BITS: u32 = 20;

impl Narrow {
    /// Something to fill places with that are not in use.
    pub(crate) const LEAST: Narrow = Narrow(0);

    /// The low 44 bits of `key`, and `flow`, below 2^20.
    #[inline]
    pub(crate) const fn new(key: u64, flow: u32) -> Narrow {
        debug_assert!(flow >> FLOW_BITS == 0, "flows are at most 2^20");
        Narrow(key << FLOW_BITS | flow as u64)
    }

    /// The flow.
    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.0 as u32 & ((1 << FLOW_BITS) - 1)
    }

    /// Whether its key is less than that of `other`.
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

/// Entries with whole keys.
pub(crate) type Heap = LineHeap<Entry, 4>;

/// Entries with short keys.
pub(crate) type NarrowHeap = LineHeap<Narrow, 8>;

/// A cache line of entries.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line<E, const WIDTH: usize>([E; WIDTH]);

/// A heap of `WIDTH` children. Room for as many entries as there are flows is made at construction.
#[derive(Debug)]
pub(crate) struct LineHeap<E, const WIDTH: usize> {
    lines: Vec<Line<E, WIDTH>>,
    len: usize,
}

impl<const WIDTH: usize> LineHeap<Entry, WIDTH> {
    /// Puts a flow in that isn't in.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, flow: u32) {
        self.insert(Entry { key, flow });
    }

    /// Gives the first flow another key. The heap isn't empty.
    #[inline]
    pub(crate) fn rekey_first(&mut self, key: u64) {
        let flow = self.at(Self::ROOT).flow;
        self.sink(Entry { key, flow });
    }
}

impl<E: Ordered, const WIDTH: usize> LineHeap<E, WIDTH> {
    /// The place of the first entry.
    const ROOT: usize = WIDTH - 1;

    /// An empty heap without room.
    pub(crate) const fn new() -> LineHeap<E, WIDTH> {
        LineHeap {
            lines: Vec::new(),
            len: 0,
        }
    }

    /// Makes room for `flows` entries, allocating.
    pub(crate) fn make_room(&mut self, flows: usize) {
        let lines = (Self::ROOT + flows).div_ceil(WIDTH);
        self.lines
            .resize(lines.max(self.lines.len()), Line([E::default(); WIDTH]));
    }

    /// Puts an entry in whose flow isn't in.
    #[inline]
    pub(crate) fn insert(&mut self, entry: E) {
        let place = Self::ROOT + self.len;
        self.len += 1;
        self.rise(place, entry);
    }

    /// The first entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<E> {
        (self.len > 0).then(|| self.at(Self::ROOT))
    }

    /// Takes the first entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        let first = self.first()?;
        self.len -= 1;
        if self.len > 0 {
            self.sink(self.at(Self::ROOT + self.len));
        }
        Some(first)
    }

    /// Puts an entry into the place of the first, which goes out. The heap isn't empty.
    #[inline]
    pub(crate) fn replace_first(&mut self, entry: E) {
        debug_assert!(self.len > 0);
        self.sink(entry);
    }

    /// Takes all flows out.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether no flow is in.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many flows are in.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn at(&self, place: usize) -> E {
        self.lines[place / WIDTH].0[place % WIDTH]
    }

    #[inline]
    fn put(&mut self, place: usize, entry: E) {
        self.lines[place / WIDTH].0[place % WIDTH] = entry;
    }

    #[inline]
    fn rise(&mut self, mut place: usize, entry: E) {
        while place > Self::ROOT {
            let above = place / WIDTH + WIDTH - 2;
            let parent = self.at(above);
            if !entry.is_before(parent) {
                break;
            }
            self.put(place, parent);
            place = above;
        }
        self.put(place, entry);
    }

    /// Puts `entry` where it belongs, from the root on, whose own is overwritten.
    fn sink(&mut self, entry: E) {
        let end = Self::ROOT + self.len;
        let mut place = Self::ROOT;
        loop {
            let below = place + 2 - WIDTH;
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
            self.put(place, least);
            place = below * WIDTH + child;
        }
        self.put(place, entry);
    }

    /// The least entry of a line that has none or not all of its places taken.
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

/// The least entry of a full line.
#[inline]
fn least<E: Ordered, const WIDTH: usize>(line: &[E; WIDTH]) -> (usize, E) {
    let mut entries = *line;
    let mut places: [usize; WIDTH] = core::array::from_fn(|place| place);
    let mut half = WIDTH / 2;
    while half > 0 {
        for place in 0..half {
            let is_other = entries[place + half].is_before(entries[place]);
            entries[place] = select_unpredictable(is_other, entries[place + half], entries[place]);
            places[place] = select_unpredictable(is_other, places[place + half], places[place]);
        }
        half /= 2;
    }
    (places[0], entries[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// A heap against an ordered set, with keys on both sides of the wrap; enough flows for three levels.
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
        fn short_keys_are_compared_with_whole_ones(key in any::<u64>(), ahead in 0u64..1 << 42, flow in 0u32..1 << 20) {
            let entry = Narrow::new(key, flow);
            prop_assert_eq!(entry.flow(), flow);
            prop_assert!(entry.is_at_most(key) && entry.is_at_most(key.wrapping_add(ahead)));
            prop_assert!(!entry.is_at_most(key.wrapping_sub(ahead + 1)));
        }
    }
}
