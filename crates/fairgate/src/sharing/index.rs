//! A type for each kind of index, so that one cannot be taken for another.

/// The index of a class in its tree: classes are in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassIndex(u32);

impl ClassIndex {
    /// Marks a missing class. No array is long enough for it.
    pub(super) const NONE: ClassIndex = ClassIndex(u32::MAX);

    #[inline]
    pub(super) fn new(index: usize) -> ClassIndex {
        ClassIndex(index as u32)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the index as a data structure for numbers takes it.
    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// The index of a leaf among the leaves of its tree, which are in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafIndex(u32);

impl LeafIndex {
    /// Marks a missing leaf. No array is long enough for it.
    pub(super) const NONE: LeafIndex = LeafIndex(u32::MAX);

    #[inline]
    pub(super) fn new(index: usize) -> LeafIndex {
        LeafIndex(index as u32)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the index as a data structure for numbers takes it.
    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// The rank of a priority among the priorities in use. 0 is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank(u8);

impl Rank {
    #[inline]
    pub(super) fn new(rank: u32) -> Rank {
        Rank(rank as u8)
    }

    /// Returns the ranks in a set, the highest priority first. Bit r of the set is rank r.
    #[inline]
    pub(super) fn in_set(set: u8) -> impl Iterator<Item = Rank> {
        bits(set).map(Rank::new)
    }

    /// Returns the rank as a set.
    #[inline]
    pub(super) fn bit(self) -> u8 {
        1 << self.0
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0.into()
    }
}

/// The index of a round robin among all round robins of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundRobinIndex(u32);

impl RoundRobinIndex {
    #[inline]
    pub(super) fn new(index: usize) -> RoundRobinIndex {
        RoundRobinIndex(index as u32)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the round robin of a rank, if `self` is the one of rank 0.
    #[inline]
    pub(super) fn of_rank(self, rank: Rank) -> RoundRobinIndex {
        RoundRobinIndex(self.0 + rank.number())
    }
}

/// Returns the positions of the bits that are set, the lowest first.
#[inline]
pub(super) fn bits(mut set: u8) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}
