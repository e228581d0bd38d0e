//! A 4-ary heap of 128-bit numbers. It has half the depth of a binary heap, and the four children of a node
//! are one cache line.
//!
//! The upper and the lower halves of the children are stored apart, because mostly the upper ones alone
//! decide. Choosing between two values avoids a branch that the processor could not predict. That halves are
//! equal is rare, and is a branch.
//!
//! Most events schedule a successor of the same kind at once (a link's next arrival, a source's next packet).
//! When the least entry is taken, the root is therefore only marked vacant. The next insertion fills it with
//! one sift down, instead of one down and one up.

use super::NOTHING;

/// The number of children of a node.
const CHILDREN: usize = 4;

/// The children of a node: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Siblings {
    upper: [u64; CHILDREN],
    lower: [u64; CHILDREN],
}

impl Siblings {
    /// The upper halves differ, so that empty places are not taken for equal entries.
    const NONE: Siblings = Siblings {
        // The upper half of any entry is less, by 4 at least.
        upper: [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3],
        lower: [u64::MAX; CHILDREN],
    };

    #[inline]
    fn set(&mut self, offset: usize, entry: u128) {
        let offset = offset % CHILDREN;
        self.upper[offset] = (entry >> 64) as u64;
        self.lower[offset] = entry as u64;
    }

    #[inline]
    fn get(&self, offset: usize) -> u128 {
        let offset = offset % CHILDREN;
        u128::from(self.upper[offset]) << 64 | u128::from(self.lower[offset])
    }

    /// Returns the least of the four, with its offset.
    #[inline(always)]
    fn least(&self) -> (usize, u128) {
        let [a, b, c, d] = self.upper;
        let (first, second) = (usize::from(b < a), 2 + usize::from(d < c));
        let (x, y) = (self.upper[first], self.upper[second]);
        if a == b || c == d || x == y {
            return self.least_of_equals();
        }
        let offset = if y < x { second } else { first };
        (offset, self.get(offset))
    }

    #[cold]
    #[inline(never)]
    fn least_of_equals(&self) -> (usize, u128) {
        let entries = (0..CHILDREN).map(|offset| (offset, self.get(offset)));
        entries
            .min_by_key(|&(_, entry)| entry)
            .expect("a node has children")
    }
}

/// A heap of numbers below [`NOTHING`]. That is what an empty one has as its root.
#[derive(Debug)]
pub(super) struct Heap {
    root: u128,
    /// The children of the root are line 0. Those of entry `offset` of line `n` are line `4 n + offset + 1`.
    lines: Vec<Siblings>,
    /// The number of entries below the root.
    below: usize,
    /// Whether the root's entry has been taken and the root is not filled again.
    vacant: bool,
}

impl Heap {
    pub(super) fn new() -> Heap {
        Heap {
            root: NOTHING,
            lines: Vec::new(),
            below: 0,
            vacant: false,
        }
    }

    /// Inserts an entry.
    pub(super) fn insert(&mut self, entry: u128) {
        if self.vacant {
            self.vacant = false;
            self.sift_down(entry);
        } else {
            self.push(entry);
        }
    }

    /// Returns the least entry, or [`NOTHING`].
    #[inline]
    pub(super) fn least(&mut self) -> u128 {
        if self.vacant {
            self.fill();
        }
        self.root
    }

    /// Removes the entry that [`least`](Heap::least) has just returned.
    #[inline]
    pub(super) fn take(&mut self) {
        debug_assert!(!self.vacant && self.root != NOTHING, "there is an entry to take");
        self.vacant = true;
    }

    /// Fills the vacant root with the last entry.
    #[inline(never)]
    fn fill(&mut self) {
        self.vacant = false;
        let Some(last) = self.below.checked_sub(1) else {
            self.root = NOTHING;
            return;
        };
        self.below = last;
        let (line, offset) = (last / CHILDREN, last % CHILDREN);
        let entry = self.lines[line].get(offset);
        self.lines[line].upper[offset] = Siblings::NONE.upper[offset];
        self.sift_down(entry);
    }

    /// Puts `entry` at the vacant root and sifts it down.
    #[inline(always)]
    fn sift_down(&mut self, entry: u128) {
        let Some(children) = self.lines.first() else {
            self.root = entry;
            return;
        };
        let (mut offset, least) = children.least();
        if entry < least {
            self.root = entry;
            return;
        }
        self.root = least;
        let mut line = 0;
        loop {
            let next = line * CHILDREN + offset + 1;
            let Some(children) = self.lines.get(next) else {
                break;
            };
            let (lower_offset, least) = children.least();
            if entry < least {
                break;
            }
            self.lines[line].set(offset, least);
            (line, offset) = (next, lower_offset);
        }
        self.lines[line].set(offset, entry);
    }

    /// Appends an entry and sifts it up.
    #[inline]
    fn push(&mut self, mut entry: u128) {
        if entry < self.root {
            std::mem::swap(&mut entry, &mut self.root);
            if entry == NOTHING {
                return;
            }
        }
        let (mut line, mut offset) = (self.below / CHILDREN, self.below % CHILDREN);
        self.below += 1;
        if line == self.lines.len() {
            self.lines.push(Siblings::NONE);
        }
        while let Some(parent) = line.checked_sub(1) {
            let (above_line, above_offset) = (parent / CHILDREN, parent % CHILDREN);
            let above = self.lines[above_line].get(above_offset);
            if above < entry {
                break;
            }
            self.lines[line].set(offset, above);
            (line, offset) = (above_line, above_offset);
        }
        self.lines[line].set(offset, entry);
    }
}
