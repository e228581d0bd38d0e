//! Rows and feeds: who can send, and in what turn.

use crate::bits::OrderedSet;
use crate::sharing::ClassTree;

use super::borrowing::{LEVELS, PRIORITIES};

/// Behind the last number of a round: the next turn begins at its least.
const END: u32 = u32::MAX;

/// A round robin by number.
struct Round {
    members: OrderedSet,
    /// Whose turn it is; of a member that left, its number, so that the next one follows.
    position: u32,
    /// Above all numbers.
    size: u32,
}

impl Round {
    fn new(size: usize) -> Round {
        Round {
            members: OrderedSet::new(size),
            position: END,
            size: size as u32,
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

/// The rounds of all rows, and of the feeds of all inner classes. Only priorities that some leaf has take room.
pub(super) struct Rounds {
    /// By level and priority: classes by their place.
    rows: Vec<Round>,
    /// By inner class and priority: children by their place among the siblings.
    feeds: Vec<Round>,
    /// Where the feeds of each class begin.
    first_feed: Vec<u32>,
    /// At which priorities each level's rows have members.
    occupied: [u8; LEVELS],
    /// The place of each priority among those in use.
    slots: [u8; PRIORITIES],
    used: u8,
    /// How many are in use.
    priorities: u32,
}

impl Rounds {
    /// Of classes with these levels and leaves with these priorities.
    pub(super) fn new(levels: &[u8], priorities: impl Iterator<Item = u8>, tree: &ClassTree) -> Rounds {
        let used = priorities.fold(0u8, |used, priority| used | 1 << priority);
        let mut slots = [0; PRIORITIES];
        for (slot, priority) in (0..).zip(bits(used)) {
            slots[priority as usize] = slot;
        }
        let rows = (0..LEVELS as u8).flat_map(|level| {
            let size = match levels.contains(&level) {
                true => levels.len(),
                false => 0,
            };
            bits(used).map(move |_| Round::new(size))
        });
        let (mut feeds, mut first_feed) = (Vec::new(), Vec::with_capacity(levels.len()));
        for place in 0..levels.len() {
            first_feed.push(feeds.len() as u32);
            let children = tree.children(place).len();
            if children > 0 {
                feeds.extend(bits(used).map(|_| Round::new(children)));
            }
        }
        Rounds {
            rows: rows.collect(),
            feeds,
            first_feed,
            occupied: [0; LEVELS],
            slots,
            used,
            priorities: used.count_ones(),
        }
    }

    pub(super) fn clear(&mut self) {
        for round in self.rows.iter_mut().chain(&mut self.feeds) {
            round.members.clear();
        }
        self.occupied = [0; LEVELS];
    }

    /// The priorities at which a level has classes in its row.
    #[inline]
    pub(super) fn of_row(&self, level: u8) -> u8 {
        self.occupied[usize::from(level)]
    }

    #[inline]
    pub(super) fn row_has(&self, level: u8, priority: u32) -> bool {
        self.of_row(level) >> priority & 1 == 1
    }

    #[inline]
    pub(super) fn add_to_row(&mut self, level: u8, place: u32, priorities: u8) {
        self.occupied[usize::from(level)] |= priorities;
        for priority in bits(priorities) {
            self.row(level, priority).members.insert(place);
        }
    }

    #[inline]
    pub(super) fn remove_from_row(&mut self, level: u8, place: u32, priorities: u8) {
        for priority in bits(priorities) {
            let row = self.row(level, priority);
            row.members.remove(place);
            if row.position == place {
                row.advance();
            }
            if row.members.is_empty() {
                self.occupied[usize::from(level)] &= !(1 << priority);
            }
        }
    }

    /// Puts child `sibling` into its parent's feeds. Gives the priorities at which it is the first.
    #[inline]
    pub(super) fn add_to_feed(&mut self, parent: u32, sibling: u32, priorities: u8) -> u8 {
        let mut first = 0;
        for priority in bits(priorities) {
            let feed = self.feed(parent, priority);
            first |= u8::from(feed.members.is_empty()) << priority;
            feed.members.insert(sibling);
        }
        first
    }

    /// Takes child `sibling` out of its parent's feeds. Gives the priorities at which it was the last. If it was its turn,
    /// the position remembers it.
    #[inline]
    pub(super) fn remove_from_feed(&mut self, parent: u32, sibling: u32, priorities: u8) -> u8 {
        let mut last = 0;
        for priority in bits(priorities) {
            let feed = self.feed(parent, priority);
            feed.members.remove(sibling);
            last |= u8::from(feed.members.is_empty()) << priority;
        }
        last
    }

    /// The leaf whose turn it is in a row that isn't empty. A feed that has come to its end begins anew, but first it is
    /// the turn of the next class above.
    #[inline]
    pub(super) fn look_up(&mut self, level: u8, priority: u32, tree: &ClassTree) -> u32 {
        let mut above = [END; LEVELS];
        let mut depth = 0;
        loop {
            let round = match depth {
                0 => self.row(level, priority),
                _ => self.feed(above[depth], priority),
            };
            if round.position != END {
                round.position = round.members.next(round.position).unwrap_or(END);
            }
            if round.position == END {
                round.position = round
                    .members
                    .next(0)
                    .expect("a class is here because a leaf below is");
                match depth {
                    0 => {}
                    1 => {
                        depth = 0;
                        self.row(level, priority).advance();
                    }
                    _ => {
                        depth -= 1;
                        self.feed(above[depth], priority).advance();
                    }
                }
                continue;
            }
            let place = match depth {
                0 => round.position,
                _ => tree.children(above[depth] as usize)[round.position as usize],
            };
            if tree.is_leaf(place as usize) {
                return place;
            }
            depth += 1;
            above[depth] = place;
        }
    }

    /// The turn of leaf `place`, served from `level`, is over.
    #[inline]
    pub(super) fn advance(&mut self, level: u8, priority: u32, place: u32, parent: u32, sibling: u32) {
        let (round, turn) = match level {
            0 => (self.row(0, priority), place),
            _ => (self.feed(parent, priority), sibling),
        };
        debug_assert_eq!(round.position, turn);
        round.advance();
    }

    /// Takes over whose turn it is from the rounds before a change: `row` and `feed` give a number's new one, or where it
    /// would be.
    pub(super) fn follow(
        &mut self,
        before: &Rounds,
        places: impl Iterator<Item = (u32, u32)>,
        row: impl Fn(u32) -> u32,
        feed: impl Fn(u32, u32) -> u32,
    ) {
        let shared = self.used & before.used;
        for level in 0..LEVELS as u8 {
            for priority in bits(shared) {
                let position = before.rows[before.row_place(level, priority)].position;
                if position != END {
                    self.row(level, priority).go_on_from(row(position));
                }
            }
        }
        for (old, new) in places {
            for priority in bits(shared) {
                let position = before.feeds[before.feed_place(old, priority)].position;
                if position != END {
                    self.feed(new, priority).go_on_from(feed(old, position));
                }
            }
        }
    }

    #[inline]
    fn row_place(&self, level: u8, priority: u32) -> usize {
        (u32::from(level) * self.priorities + u32::from(self.slots[priority as usize])) as usize
    }

    #[inline]
    fn feed_place(&self, parent: u32, priority: u32) -> usize {
        (self.first_feed[parent as usize] + u32::from(self.slots[priority as usize])) as usize
    }

    #[inline]
    fn row(&mut self, level: u8, priority: u32) -> &mut Round {
        let place = self.row_place(level, priority);
        &mut self.rows[place]
    }

    #[inline]
    fn feed(&mut self, parent: u32, priority: u32) -> &mut Round {
        let place = self.feed_place(parent, priority);
        &mut self.feeds[place]
    }
}

/// The bits that are set, lowest first.
#[inline]
pub(super) fn bits(mut set: u8) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(lowest)
    })
}
