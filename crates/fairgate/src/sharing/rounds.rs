//! Rows and feeds: who can send, and in what turn.

use alloc::vec::Vec;

use crate::sharing::ClassTree;
use crate::sharing::ordered_set::OrderedSet;

use super::borrowing::LEVELS;

/// Behind the last number of a round: the next turn begins at its least.
const END: u32 = u32::MAX;

/// A round robin by number.
struct Round {
    members: OrderedSet,
    /// Whose turn it is; of a member that left, its number, so that the next one follows.
    position: u32,
    /// Above all numbers.
    size: u32,
    /// Where that which is below its members begins.
    below: u32,
}

impl Round {
    fn new(size: usize, below: usize) -> Round {
        Round {
            members: OrderedSet::new(size),
            position: END,
            size: size as u32,
            below: below as u32,
        }
    }

    /// Goes on from `position`, or where that is above all numbers from the least.
    fn go_on_from(&mut self, position: u32) {
        self.position = if position < self.size { position } else { END };
    }

    /// Goes on to the next member, or to the end.
    #[inline]
    fn advance(&mut self) {
        self.position = self.members.next(self.position + 1).unwrap_or(END);
    }
}

/// What is below a member of a round.
#[derive(Clone, Copy)]
enum Below {
    /// It is a leaf: its place among the leaves.
    Leaf(u32),
    /// Where the feeds of an inner class begin.
    Feeds(u32),
}

/// A leaf, and the round in which it is its turn.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) leaf: u32,
    round: u32,
}

/// The rounds of all rows, and of the feeds of all inner classes. Only priorities that some leaf has take room: all is
/// by their *ranks*, 0 the highest priority in use.
pub(super) struct Rounds {
    /// Rows by level and rank: classes by their place among those of the level. Then feeds by inner class and rank: children
    /// by their place among the siblings.
    rounds: Vec<Round>,
    /// What is below each class, by place; then the same by level, and by inner class and child.
    below: Vec<Below>,
    /// Bit r of the byte of a level is set if its row of rank r has members.
    occupied: u64,
    /// The priorities in use, and how many they are.
    priorities: u8,
    ranks: u32,
}

impl Rounds {
    /// Of classes with these levels and leaves with these priorities.
    pub(super) fn new(levels: &[u8], priorities: impl Iterator<Item = u8>, tree: &ClassTree) -> Rounds {
        let priorities = priorities.fold(0u8, |used, priority| used | 1 << priority);
        let of_level = |level: u8| (0..levels.len()).filter(move |&place| levels[place] == level);
        let mut rounds = Vec::new();
        let mut behind = levels.len();
        for level in 0..LEVELS as u8 {
            let size = of_level(level).count();
            rounds.extend(bits(priorities).map(|_| Round::new(size, behind)));
            behind += size;
        }
        let mut below = Vec::with_capacity(behind + levels.len());
        let mut leaves = 0;
        for place in 0..levels.len() {
            let children = tree.children(place).len();
            if children > 0 {
                below.push(Below::Feeds(rounds.len() as u32));
                rounds.extend(bits(priorities).map(|_| Round::new(children, behind)));
                behind += children;
            } else {
                below.push(Below::Leaf(leaves));
                leaves += 1;
            }
        }
        for place in (0..LEVELS as u8).flat_map(of_level) {
            below.push(below[place]);
        }
        for &child in (0..levels.len()).flat_map(|place| tree.children(place)) {
            below.push(below[child as usize]);
        }
        Rounds {
            rounds,
            below,
            occupied: 0,
            priorities,
            ranks: priorities.count_ones(),
        }
    }

    /// The rank of a priority that a leaf has.
    pub(super) fn rank(&self, priority: u8) -> u8 {
        (self.priorities & ((1 << priority) - 1)).count_ones() as u8
    }

    /// Where the feeds of an inner class begin.
    pub(super) fn first_feed(&self, place: u32) -> u32 {
        match self.below[place as usize] {
            Below::Feeds(first) => first,
            Below::Leaf(_) => unreachable!("a leaf feeds nobody"),
        }
    }

    pub(super) fn clear(&mut self) {
        self.rounds.iter_mut().for_each(|round| round.members.clear());
        self.occupied = 0;
    }

    /// The ranks at which a level has classes in its row.
    #[inline]
    pub(super) fn of_row(&self, level: u8) -> u8 {
        (self.occupied >> (8 * level)) as u8
    }

    /// The lowest level that has classes in its row.
    #[inline]
    pub(super) fn lowest_row(&self) -> Option<u8> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as u8 / 8)
    }

    #[inline]
    pub(super) fn add_to_row(&mut self, level: u8, rank: u32, number: u32) {
        self.occupied |= 1 << (8 * u32::from(level) + rank);
        let row = self.row(level, rank);
        self.rounds[row].members.insert(number);
    }

    #[inline]
    pub(super) fn remove_from_row(&mut self, level: u8, rank: u32, number: u32) {
        let row = self.row(level, rank);
        let row = &mut self.rounds[row];
        row.members.remove(number);
        if row.position == number {
            row.advance();
        }
        if row.members.is_empty() {
            self.occupied &= !(1 << (8 * u32::from(level) + rank));
        }
    }

    /// Puts a child into a feed of its parent's. Whether it is the first.
    #[inline]
    pub(super) fn add_to_feed(&mut self, feed: u32, sibling: u32) -> bool {
        let members = &mut self.rounds[feed as usize].members;
        let is_first = members.is_empty();
        members.insert(sibling);
        is_first
    }

    /// Takes a child out of a feed of its parent's. Whether it was the last. If it was its turn, the position remembers it.
    #[inline]
    pub(super) fn remove_from_feed(&mut self, feed: u32, sibling: u32) -> bool {
        let members = &mut self.rounds[feed as usize].members;
        members.remove(sibling);
        members.is_empty()
    }

    /// The leaf whose turn it is in the row of a level that isn't empty, at the highest priority. A feed that has come to its
    /// end begins anew, but first it is the turn of the next class above.
    #[inline]
    pub(super) fn look_up(&mut self, level: u8) -> Turn {
        let rank = (self.occupied >> (8 * level)).trailing_zeros();
        let mut at = self.row(level, rank) as u32;
        let (mut above, mut depth) = ([0; LEVELS], 0);
        loop {
            let round = &mut self.rounds[at as usize];
            let Some(turn) = round.members.next(round.position) else {
                let least = round.members.next(0);
                round.position = least.expect("a class is here because a leaf below is");
                if depth > 0 {
                    depth -= 1;
                    at = above[depth];
                    self.rounds[at as usize].advance();
                }
                continue;
            };
            round.position = turn;
            match self.below[(round.below + turn) as usize] {
                Below::Leaf(leaf) => return Turn { leaf, round: at },
                Below::Feeds(first) => {
                    above[depth] = at;
                    depth += 1;
                    at = first + rank;
                }
            }
        }
    }

    /// The leaf's turn is over.
    #[inline]
    pub(super) fn end(&mut self, turn: Turn) {
        self.rounds[turn.round as usize].advance();
    }

    /// Takes over whose turn it is from the rounds before a change: `row` and `feed` give a number's new one, or where it
    /// would be.
    pub(super) fn follow(
        &mut self,
        before: &Rounds,
        places: impl Iterator<Item = (u32, u32)>,
        row: impl Fn(u8, u32) -> u32,
        feed: impl Fn(u32, u32) -> u32,
    ) {
        let ranks = |priority: u32| {
            (
                before.rank(priority as u8).into(),
                self.rank(priority as u8).into(),
            )
        };
        let shared: Vec<(u32, u32)> = bits(self.priorities & before.priorities).map(ranks).collect();
        for level in 0..LEVELS as u8 {
            for &(was, is) in &shared {
                let position = before.rounds[before.row(level, was)].position;
                if position != END {
                    let place = self.row(level, is);
                    self.rounds[place].go_on_from(row(level, position));
                }
            }
        }
        for (old, new) in places {
            for &(was, is) in &shared {
                let position = before.rounds[(before.first_feed(old) + was) as usize].position;
                if position != END {
                    let place = self.first_feed(new) + is;
                    self.rounds[place as usize].go_on_from(feed(old, position));
                }
            }
        }
    }

    /// The place of a row among the rounds.
    #[inline]
    fn row(&self, level: u8, rank: u32) -> usize {
        (u32::from(level) * self.ranks + rank) as usize
    }
}

/// The bits that are set, lowest first.
#[inline]
pub(super) fn bits(mut set: u8) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}
