//! Finds the least of many numbers, exactly, while any of them can change at any time. It is a tournament
//! with four players per match. The leader plays no matches.
//!
//! ```text
//!   leader      3
//!   players   [ 7 - 9 4 ][ - - 8 6 ][ 5 - - - ] ...     a match is a cache line
//!               \          |          /
//!   round 1   [ 4          6          5      - ]         each entry is the winner of a match below
//!               |
//!   round 2   [ 4  -  -  - ]                             the challenger
//! ```
//!
//! A number that changes affects only the matches on its way up, and of these only the matches that it wins
//! or has won. The way ends where the winner stays the same. So most changes cost one match, and the worst
//! changes cost two matches for each power of four. A change of the leader costs one comparison while it
//! leads: a flow that is served until it is empty plays no match. Rounds that decide between unused positions
//! are not played.
//!
//! Nothing is moved, and there is no index: a player's position is the number of its flow. The number that
//! wins contains the position of its player ([`Rank`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The rank of an absent player.
const OUT: u128 = u128::MAX;

/// The number of players in a match.
const PLAYERS: usize = 4;

/// The bits of a rank for the position.
const POSITION_BITS: u32 = 24;
/// The most bytes that a rank can hold.
const MOST_BYTES: u64 = (1 << 48) - 1;
/// The bits of a rank that decide ties.
const STAMP_BITS: u32 = 56;

/// The rank of a player; the least goes first. It consists of a number of bytes below 2^48, a stamp from 1 to
/// 2^56 - 1, and the player's position below 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u128);

impl Rank {
    /// Returns a rank by which the least bytes go first, and the least stamp among equals.
    #[inline]
    pub(crate) fn least_first(bytes: u64, stamp: u64, position: u32) -> Rank {
        debug_assert!(
            bytes <= MOST_BYTES && (1..1 << STAMP_BITS).contains(&stamp) && position < 1 << POSITION_BITS
        );
        let tie = u128::from(stamp) << POSITION_BITS | u128::from(position);
        Rank(u128::from(bytes) << (POSITION_BITS + STAMP_BITS) | tie)
    }

    /// Returns a rank by which the most bytes go first, and the least stamp among equals.
    #[inline]
    pub(crate) fn most_first(bytes: u64, stamp: u64, position: u32) -> Rank {
        Rank::least_first(MOST_BYTES - bytes, stamp, position)
    }

    #[inline]
    fn position(self) -> u32 {
        self.0 as u32 & ((1 << POSITION_BITS) - 1)
    }
}

/// A match: four ranks, a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Match([u128; PLAYERS]);

impl Match {
    const EMPTY: Match = Match([OUT; PLAYERS]);

    #[inline]
    fn winner(&self) -> u128 {
        let [a, b, c, d] = self.0;
        a.min(b).min(c.min(d))
    }
}

/// A tournament.
#[derive(Debug)]
pub(crate) struct Tournament {
    /// The least of all ranks. Its position in the first round is empty.
    leader: u128,
    /// The matches of all rounds. The players' matches are first.
    matches: Box<[Match]>,
    /// The start of each round after the first.
    rounds: Box<[u32]>,
    /// The number of `rounds` that are played. The last of them has a single entry, the challenger.
    played: usize,
    /// The number of positions that these rounds decide between.
    covered: usize,
}

impl Tournament {
    /// Returns a tournament without players. Positions are 0 to `positions - 1`.
    pub(crate) fn new(positions: u32) -> Tournament {
        let mut of_round = positions.div_ceil(PLAYERS as u32).max(1);
        let mut total = of_round;
        let mut rounds = Vec::new();
        loop {
            rounds.push(total);
            let is_final = of_round == 1;
            of_round = of_round.div_ceil(PLAYERS as u32);
            total += of_round;
            if is_final {
                break;
            }
        }
        Tournament {
            leader: OUT,
            matches: vec![Match::EMPTY; total as usize].into(),
            rounds: rounds.into(),
            played: 1,
            covered: PLAYERS,
        }
    }

    /// Sets the rank of the player at `position`.
    #[inline]
    pub(crate) fn enter(&mut self, position: u32, rank: Rank) {
        debug_assert_eq!(rank.position(), position);
        if position as usize >= self.covered {
            self.cover(position as usize);
        }
        self.change(position, rank.0);
    }

    /// Removes the player at `position`. It must have a rank.
    #[inline]
    pub(crate) fn leave(&mut self, position: u32) {
        self.change(position, OUT);
    }

    /// Returns the position with the least rank.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.leader != OUT).then(|| Rank(self.leader).position())
    }

    /// Adds the rounds that are needed to decide between position 0 and `position`.
    #[cold]
    fn cover(&mut self, position: usize) {
        while position >= self.covered {
            // Until now the challenger was alone in its match.
            let challenger = self.challenger();
            self.matches[self.rounds[self.played] as usize].0[0] = challenger;
            self.played += 1;
            self.covered *= PLAYERS;
        }
    }

    /// Returns the least rank except the leader's.
    #[inline]
    fn challenger(&self) -> u128 {
        self.matches[self.rounds[self.played - 1] as usize].0[0]
    }

    #[inline]
    fn change(&mut self, position: u32, new: u128) {
        let leads = self.leader != OUT && Rank(self.leader).position() == position;
        if leads {
            let challenger = self.challenger();
            if new <= challenger {
                self.leader = new;
            } else {
                self.leader = challenger;
                if new != OUT {
                    self.play(position, new);
                }
                self.promote(Rank(challenger).position());
            }
        } else if new < self.leader {
            let deposed = core::mem::replace(&mut self.leader, new);
            self.play(position, OUT);
            if deposed != OUT {
                self.play(Rank(deposed).position(), deposed);
            }
        } else {
            self.play(position, new);
        }
    }

    /// Removes the challenger, the player at `position`, from the matches. It is the new leader.
    #[inline(never)]
    fn promote(&mut self, position: u32) {
        let mut position = position as usize;
        let mut below = position / PLAYERS;
        self.matches[below].0[position % PLAYERS] = OUT;
        // It had won all its matches.
        for &round in &self.rounds[..self.played] {
            let winner = self.matches[below].winner();
            position /= PLAYERS;
            below = round as usize + position / PLAYERS;
            self.matches[below].0[position % PLAYERS] = winner;
        }
    }

    /// Sets the number of the player at `position` in its first match, and plays the matches above.
    #[inline(never)]
    fn play(&mut self, position: u32, mut new: u128) {
        let mut position = position as usize;
        let mut below = position / PLAYERS;
        let mut old = core::mem::replace(&mut self.matches[below].0[position % PLAYERS], new);
        for &round in &self.rounds[..self.played] {
            position /= PLAYERS;
            let index = round as usize + position / PLAYERS;
            let known = self.matches[index].0[position % PLAYERS];
            if new >= known {
                if old != known {
                    return;
                }
                // The winner of the match below is now greater.
                new = self.matches[below].winner();
            }
            if new == known {
                return;
            }
            self.matches[index].0[position % PLAYERS] = new;
            old = known;
            below = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn a_match_is_a_cache_line() {
        assert_eq!(core::mem::size_of::<Match>(), 64);
    }

    #[test]
    fn ranks_compare_by_bytes_then_stamp() {
        let ordered = [
            Rank::least_first(0, 1, 9),
            Rank::least_first(0, 2, 3),
            Rank::least_first(1, 1, 0),
        ];
        assert!(ordered.is_sorted());
        let most_first = [
            Rank::most_first(2, 1, 9),
            Rank::most_first(2, 2, 3),
            Rank::most_first(1, 1, 0),
        ];
        assert!(most_first.is_sorted());
    }

    proptest! {
        /// Compares with a sorted set, with enough positions for one to five rounds.
        #[test]
        fn the_first_has_the_least_rank(
            positions in prop_oneof![1u32..6, 15u32..18, 63u32..70, 255u32..300],
            operations in prop::collection::vec((any::<u32>(), 0u64..4), 0..400),
            most_first in any::<bool>(),
        ) {
            let mut tournament = Tournament::new(positions);
            let mut ranks = vec![None; positions as usize];
            let mut sorted = BTreeSet::new();
            for (stamp, (position, bytes)) in (1..).zip(operations) {
                let position = position % positions;
                if let Some(old) = ranks[position as usize].take() {
                    sorted.remove(&old);
                }
                if bytes == 0 {
                    tournament.leave(position);
                } else {
                    let rank = match most_first {
                        true => Rank::most_first(bytes, stamp, position),
                        false => Rank::least_first(bytes, stamp, position),
                    };
                    tournament.enter(position, rank);
                    ranks[position as usize] = Some(rank);
                    sorted.insert(rank);
                }
                prop_assert_eq!(tournament.first(), sorted.first().map(|rank| rank.position()));
            }
        }
    }
}
