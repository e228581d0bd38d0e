//! A 4-ary heap of 128-bit numbers. It has half the depth of a binary heap, a comparison takes two
//! instructions and no branch, and the four children of a node are one cache line.
//!
//! Most events schedule a successor of the same kind at once (a link's next arrival, a source's next packet).
//! When the least entry is taken, the root is therefore only marked vacant. The next insertion fills it with
//! one sift down, instead of one down and one up.

/// The number of children of a node.
const CHILDREN: usize = 4;
/// The index of the root. With it the children of a node begin at a multiple of four.
const ROOT: usize = CHILDREN - 1;

/// The children of a node: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Siblings([u128; CHILDREN]);

/// A heap of numbers below [`Heap::NOTHING`].
#[derive(Debug)]
pub(super) struct Heap {
    /// The first line has only the root, as its last entry. The children of entry `n` are line `n - 2`.
    lines: Vec<Siblings>,
    /// The index after the last entry.
    length: usize,
    /// Whether the root's entry has been taken and the root is not filled again.
    vacant: bool,
}

impl Heap {
    /// What an empty heap and the places after the last entry hold.
    pub(super) const NOTHING: u128 = u128::MAX;

    pub(super) fn new() -> Heap {
        Heap {
            lines: vec![Siblings([Heap::NOTHING; CHILDREN])],
            length: ROOT,
            vacant: false,
        }
    }

    /// Inserts an entry.
    #[inline]
    pub(super) fn insert(&mut self, entry: u128) {
        if self.vacant {
            self.vacant = false;
            self.sift_down(entry);
        } else {
            self.push(entry);
        }
    }

    /// Returns the least entry, or [`Heap::NOTHING`].
    #[inline]
    pub(super) fn least(&mut self) -> u128 {
        if self.vacant {
            self.fill();
        }
        *self.entry(ROOT)
    }

    /// Removes the entry that [`least`](Heap::least) has just returned.
    #[inline]
    pub(super) fn take(&mut self) {
        debug_assert!(!self.vacant && self.length > ROOT, "there is an entry to take");
        self.vacant = true;
    }

    /// Fills the vacant root with the last entry.
    fn fill(&mut self) {
        self.vacant = false;
        self.length -= 1;
        let last = core::mem::replace(self.entry(self.length), Heap::NOTHING);
        if self.length > ROOT {
            self.sift_down(last);
        }
    }

    #[inline]
    fn entry(&mut self, index: usize) -> &mut u128 {
        &mut self.lines[index / CHILDREN].0[index % CHILDREN]
    }

    /// Puts `entry` at the root and sifts it down.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let mut hole = ROOT;
        while let Some(siblings) = self.lines.get(hole - 2) {
            let (offset, least) = least_of(siblings);
            if entry <= least {
                break;
            }
            *self.entry(hole) = least;
            hole = (hole - 2) * CHILDREN + offset;
        }
        *self.entry(hole) = entry;
    }

    /// Appends an entry and sifts it up.
    #[inline]
    fn push(&mut self, entry: u128) {
        let mut hole = self.length;
        self.length += 1;
        if hole / CHILDREN == self.lines.len() {
            self.lines.push(Siblings([Heap::NOTHING; CHILDREN]));
        }
        while hole > ROOT {
            let parent = hole / CHILDREN + 2;
            let above = *self.entry(parent);
            if above <= entry {
                break;
            }
            *self.entry(hole) = above;
            hole = parent;
        }
        *self.entry(hole) = entry;
    }
}

/// Returns the least of four siblings, with its offset.
///
/// The order of a heap's children is unpredictable for the processor. Choosing between two values avoids a
/// branch.
#[inline]
fn least_of(&Siblings([a, b, c, d]): &Siblings) -> (usize, u128) {
    let lesser = |a: (usize, u128), b: (usize, u128)| if b.1 < a.1 { b } else { a };
    lesser(lesser((0, a), (1, b)), lesser((2, c), (3, d)))
}
