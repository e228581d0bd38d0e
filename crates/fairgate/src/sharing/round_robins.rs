//! The round robins of a tree of classes that borrow: which classes can send, and whose turn it is.
//!
//! A *row* is the round robin of the classes of one level that can send. A *feed* is the round robin of the
//! children of an inner class that borrow from it. There is one of each for every priority in use, numbered
//! by *rank*. Priorities that no leaf has take no memory.

use alloc::vec::Vec;

use crate::sharing::index::{ClassIndex, LeafIndex, Rank, RoundRobinIndex, bits};
use crate::sharing::ordered_set::OrderedSet;
use crate::sharing::tree::ClassTree;

use super::tree::LEVELS;

/// The position after the last number. The next turn is that of the first member.
const END: u32 = u32::MAX;

/// A round robin in the order of numbers. In a row the number is a class's index, counted from the first
/// class of the level, in a feed its position among its siblings.
#[derive(Debug)]
struct RoundRobin {
    members: OrderedSet,
    /// The member whose turn it is. If it left, its number is kept, and the turn is that of the next member.
    position: u32,
    /// The size: all numbers are below it.
    size: u32,
    /// The index in [`RoundRobins::below`] for number 0.
    below: u32,
}

impl RoundRobin {
    fn new(size: usize, below: usize) -> RoundRobin {
        RoundRobin {
            members: OrderedSet::new(size),
            position: END,
            size: size as u32,
            below: below as u32,
        }
    }

    /// Continues at `position`. If all numbers are below it, continues at the first member.
    fn continue_at(&mut self, position: u32) {
        self.position = if position < self.size { position } else { END };
    }

    /// Returns whether the member whose turn it was still is one.
    #[inline]
    fn has_turn(&self) -> bool {
        self.members.contains(self.position)
    }

    /// Returns the member whose turn it is, or `None` at the end.
    #[inline]
    fn next(&self) -> Option<u32> {
        self.members.next(self.position)
    }

    /// Returns the first member.
    #[inline]
    fn first(&self) -> u32 {
        let first = self.members.first();
        first.expect("a class is a member because a leaf below it is active")
    }

    /// Goes to the next member, or to the end.
    #[inline]
    fn advance(&mut self) {
        self.position = self.members.next(self.position + 1).unwrap_or(END);
    }
}

/// What is below a member of a round robin.
#[derive(Clone, Copy, Debug)]
enum Below {
    /// The member is a leaf.
    Leaf(LeafIndex),
    /// The member is an inner class: its feed of rank 0.
    Feeds(RoundRobinIndex),
}

/// A leaf, and the round robin that selected it.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) leaf: LeafIndex,
    round_robin: RoundRobinIndex,
}

/// All rows and feeds of a tree.
#[derive(Debug)]
pub(super) struct RoundRobins {
    /// The rows by level and rank, then the feeds by inner class and rank.
    round_robins: Vec<RoundRobin>,
    /// What is below each class: by class, then by inner class and child.
    below: Vec<Below>,
    /// Bit r of a level's byte is set if its row of rank r has members.
    occupied: u64,
    /// Bit p is set if a leaf has priority p.
    priorities: u8,
    /// The number of priorities in use.
    ranks: u32,
}

impl RoundRobins {
    /// Creates empty round robins. `levels` has the level of each class, `priorities` the priority of each
    /// leaf.
    pub(super) fn new(levels: &[u8], priorities: impl Iterator<Item = u8>, tree: &ClassTree) -> RoundRobins {
        let priorities = priorities.fold(0u8, |used, priority| used | 1 << priority);
        let mut round_robins = Vec::new();
        let mut end = levels.len();
        for level in 0..LEVELS as u8 {
            let first = levels.iter().position(|other| *other == level).unwrap_or(0);
            let last = levels.iter().rposition(|other| *other == level);
            let size = last.map_or(0, |last| last + 1 - first);
            round_robins.extend(bits(priorities).map(|_| RoundRobin::new(size, first)));
        }
        let mut below = Vec::with_capacity(2 * levels.len());
        let mut leaves = 0;
        for class in tree.classes() {
            let children = tree.children(class).len();
            if children > 0 {
                below.push(Below::Feeds(RoundRobinIndex::new(round_robins.len())));
                round_robins.extend(bits(priorities).map(|_| RoundRobin::new(children, end)));
                end += children;
            } else {
                below.push(Below::Leaf(LeafIndex::new(leaves)));
                leaves += 1;
            }
        }
        for &child in tree.classes().flat_map(|class| tree.children(class)) {
            below.push(below[child.index()]);
        }
        RoundRobins {
            round_robins,
            below,
            occupied: 0,
            priorities,
            ranks: priorities.count_ones(),
        }
    }

    /// Returns the rank of a priority. For a priority that no leaf has, returns the rank that it would have.
    pub(super) fn rank(&self, priority: u8) -> Rank {
        Rank::new((self.priorities & ((1 << priority) - 1)).count_ones())
    }

    /// Returns an inner class's feed of rank 0.
    pub(super) fn first_feed(&self, class: ClassIndex) -> RoundRobinIndex {
        match self.below[class.index()] {
            Below::Feeds(first) => first,
            Below::Leaf(_) => unreachable!("a leaf has no feed"),
        }
    }

    /// Removes all members.
    pub(super) fn clear(&mut self) {
        for round_robin in &mut self.round_robins {
            round_robin.members.clear();
        }
        self.occupied = 0;
    }

    /// Returns whether a level has a class in one of its rows.
    #[inline]
    pub(super) fn has_row(&self, level: u8) -> bool {
        (self.occupied >> (8 * level)) as u8 != 0
    }

    /// Returns the lowest level that has a class in one of its rows.
    #[inline]
    pub(super) fn lowest_row(&self) -> Option<u8> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as u8 / 8)
    }

    /// Returns the level, up to `top`, whose rows have the class of the highest priority. Of several, the
    /// lowest.
    pub(super) fn row_of_highest_priority(&self, top: u8) -> Option<u8> {
        let ranks = |level: u8| (self.occupied >> (8 * level)) as u8;
        let levels = (0..=top).filter(|&level| ranks(level) != 0);
        levels.min_by_key(|&level| ranks(level).trailing_zeros())
    }

    /// Adds a class to a row.
    #[inline]
    pub(super) fn add_to_row(&mut self, level: u8, rank: Rank, class: ClassIndex) {
        self.occupied |= 1 << (8 * u32::from(level) + rank.number());
        let row = self.row(level, rank);
        let row = &mut self.round_robins[row.index()];
        row.members.insert(class.number() - row.below);
    }

    /// Removes a class from a row. If it was its turn, the turn is the next class's.
    #[inline]
    pub(super) fn remove_from_row(&mut self, level: u8, rank: Rank, class: ClassIndex) {
        let row = self.row(level, rank);
        let row = &mut self.round_robins[row.index()];
        let number = class.number() - row.below;
        row.members.remove(number);
        if row.position == number {
            row.advance();
        }
        if row.members.is_empty() {
            self.occupied &= !(1 << (8 * u32::from(level) + rank.number()));
        }
    }

    /// Adds a class to a feed of its parent. Returns whether the feed was empty.
    #[inline]
    pub(super) fn add_to_feed(&mut self, feed: RoundRobinIndex, sibling: u32) -> bool {
        let members = &mut self.round_robins[feed.index()].members;
        let is_first = members.is_empty();
        members.insert(sibling);
        is_first
    }

    /// Removes a class from a feed of its parent. Returns whether the feed is now empty. If it was the
    /// class's turn, the position still names it.
    #[inline]
    pub(super) fn remove_from_feed(&mut self, feed: RoundRobinIndex, sibling: u32) -> bool {
        let members = &mut self.round_robins[feed.index()].members;
        members.remove(sibling);
        members.is_empty()
    }

    /// Returns the leaf whose turn it is at a level that has a row with members. The row of the highest
    /// priority is used. A feed that is at its end starts again, but the turn goes to the next class above.
    #[inline(always)]
    pub(super) fn look_up(&mut self, level: u8) -> Turn {
        let rank = Rank::new((self.occupied >> (8 * level)).trailing_zeros());
        let row = self.row(level, rank);
        let mut round_robin = &mut self.round_robins[row.index()];
        if !round_robin.has_turn() {
            round_robin.position = round_robin.next().unwrap_or_else(|| round_robin.first());
        }
        // Mostly all on the way down have a turn, so the way back is not noted.
        let mut current = row;
        loop {
            match self.below[(round_robin.below + round_robin.position) as usize] {
                Below::Leaf(leaf) => {
                    return Turn {
                        leaf,
                        round_robin: current,
                    };
                }
                Below::Feeds(first) => current = first.of_rank(rank),
            }
            round_robin = &mut self.round_robins[current.index()];
            if !round_robin.has_turn() {
                return self.look_up_from(row, rank);
            }
        }
    }

    /// Returns the leaf whose turn it is from a row, if members have left the feeds below.
    #[inline(never)]
    fn look_up_from(&mut self, row: RoundRobinIndex, rank: Rank) -> Turn {
        let (mut current, mut above, mut depth) = (row, [row; LEVELS], 0);
        loop {
            let round_robin = &mut self.round_robins[current.index()];
            let Some(number) = round_robin.next() else {
                round_robin.position = round_robin.first();
                if depth > 0 {
                    depth -= 1;
                    current = above[depth];
                    self.round_robins[current.index()].advance();
                }
                continue;
            };
            round_robin.position = number;
            match self.below[(round_robin.below + number) as usize] {
                Below::Leaf(leaf) => {
                    return Turn {
                        leaf,
                        round_robin: current,
                    };
                }
                Below::Feeds(first) => {
                    above[depth] = current;
                    depth += 1;
                    current = first.of_rank(rank);
                }
            }
        }
    }

    /// Ends a leaf's turn.
    #[inline]
    pub(super) fn end(&mut self, turn: Turn) {
        self.round_robins[turn.round_robin.index()].advance();
    }

    /// Takes over the positions of `old`, the round robins before a change of classes. `inner_classes` has
    /// the old and new index of each inner class that is kept. `in_row` returns the new index of a class for
    /// an old one, and `in_feed` the new number. If the class no longer exists, they return those that it
    /// would have.
    pub(super) fn follow(
        &mut self,
        old: &RoundRobins,
        inner_classes: impl Iterator<Item = (ClassIndex, ClassIndex)>,
        in_row: impl Fn(u32) -> u32,
        in_feed: impl Fn(ClassIndex, u32) -> u32,
    ) {
        let ranks = |priority: u32| (old.rank(priority as u8), self.rank(priority as u8));
        let shared: Vec<(Rank, Rank)> = bits(self.priorities & old.priorities).map(ranks).collect();
        for level in 0..LEVELS as u8 {
            for &(before, after) in &shared {
                let old = &old.round_robins[old.row(level, before).index()];
                if old.position != END {
                    let row = self.row(level, after);
                    let row = &mut self.round_robins[row.index()];
                    row.continue_at(in_row(old.below + old.position).saturating_sub(row.below));
                }
            }
        }
        for (class_before, class_after) in inner_classes {
            for &(before, after) in &shared {
                let feed = old.first_feed(class_before).of_rank(before);
                let position = old.round_robins[feed.index()].position;
                if position != END {
                    let feed = self.first_feed(class_after).of_rank(after);
                    self.round_robins[feed.index()].continue_at(in_feed(class_before, position));
                }
            }
        }
    }

    /// Returns the index of a row.
    #[inline]
    fn row(&self, level: u8, rank: Rank) -> RoundRobinIndex {
        RoundRobinIndex::new((u32::from(level) * self.ranks + rank.number()) as usize)
    }
}
