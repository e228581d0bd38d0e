//! The least of many numbers, exactly, while any of them changes at any time: a tournament with four players a match, and
//! its leader, who plays no matches.
//!
//! ```text
//!   leader      3
//!   players   [ 7 - 9 4 ][ - - 8 6 ][ 5 - - - ] ...     a match is a cache line
//!               \          |          /
//!   round 1   [ 4          6          5      - ]         each entry the winner of a match below
//!               |
//!   round 2   [ 4  -  -  - ]                             the challenger
//! ```
//!
//! A number that changes concerns only the matches on its way up, and of them only those that it wins or had won: the way
//! ends where the winner stays the same. So most changes cost one match, the worst ones two for each power of four.
//! The leader's own changes cost one comparison as long as it leads: a flow that is served until it is empty comes
//! into no match. Rounds that decide between places not yet used are not played.
//!
//! There is nothing to move about and no index to keep: a player's place is the flow's own number. Whose number it
//! is that wins is part of the number ([`Rank`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The rank of nobody.
const OUT: u128 = u128::MAX;

/// Players of a match.
const PLAYERS: usize = 4;

/// Bits of a rank for the place.
const PLACE_BITS: u32 = 24;
/// The most that a rank can hold.
const MOST_BYTES: u64 = (1 << 48) - 1;
/// Bits of a rank for what settles ties.
const STAMP_BITS: u32 = 56;

/// What players are compared by, the least first: a number of bytes below 2^48, then a stamp from 1 to 2^56 - 1. It also
/// says whose it is: a place below 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u128);

impl Rank {
    /// The least bytes go first, and among equals the least stamp.
    #[inline]
    pub(crate) fn least_first(bytes: u64, stamp: u64, place: u32) -> Rank {
        debug_assert!(
            bytes <= MOST_BYTES && (1..1 << STAMP_BITS).contains(&stamp) && place < 1 << PLACE_BITS
        );
        let tie = u128::from(stamp) << PLACE_BITS | u128::from(place);
        Rank(u128::from(bytes) << (PLACE_BITS + STAMP_BITS) | tie)
    }

    /// The most bytes go first, and among equals the least stamp.
    #[inline]
    pub(crate) fn most_first(bytes: u64, stamp: u64, place: u32) -> Rank {
        Rank::least_first(MOST_BYTES - bytes, stamp, place)
    }

    #[inline]
    fn place(self) -> u32 {
        self.0 as u32 & ((1 << PLACE_BITS) - 1)
    }
}

/// Four ranks: a cache line.
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

/// The tournament.
#[derive(Debug)]
pub(crate) struct Tournament {
    /// The least of all ranks. Its place in the first round is empty.
    leader: u128,
    /// Round by round, the players' matches first.
    matches: Box<[Match]>,
    /// Where each round after the first begins.
    rounds: Box<[u32]>,
    /// How many of `rounds` are played: the last of them is a single entry, the challenger.
    played: usize,
    /// Places that these decide between.
    covered: usize,
}

impl Tournament {
    /// Nobody plays yet; places are 0 to `places - 1`.
    pub(crate) fn new(places: u32) -> Tournament {
        let mut of_round = places.div_ceil(PLAYERS as u32).max(1);
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

    /// Player `place` has this rank from now on.
    #[inline]
    pub(crate) fn enter(&mut self, place: u32, rank: Rank) {
        debug_assert_eq!(rank.place(), place);
        if place as usize >= self.covered {
            self.cover(place as usize);
        }
        self.change(place, rank.0);
    }

    /// Player `place`, who plays, does so no longer.
    #[inline]
    pub(crate) fn leave(&mut self, place: u32) {
        self.change(place, OUT);
    }

    /// The place with the least rank.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.leader != OUT).then(|| Rank(self.leader).place())
    }

    /// Plays as many rounds as it takes to decide between place 0 and `place`.
    #[cold]
    fn cover(&mut self, place: usize) {
        while place >= self.covered {
            // So far the challenger was alone in its match.
            let challenger = self.challenger();
            self.matches[self.rounds[self.played] as usize].0[0] = challenger;
            self.played += 1;
            self.covered *= PLAYERS;
        }
    }

    /// The least rank but for the leader's.
    #[inline]
    fn challenger(&self) -> u128 {
        self.matches[self.rounds[self.played - 1] as usize].0[0]
    }

    #[inline]
    fn change(&mut self, place: u32, new: u128) {
        let leads = self.leader != OUT && Rank(self.leader).place() == place;
        if leads {
            let challenger = self.challenger();
            if new <= challenger {
                self.leader = new;
            } else {
                self.leader = challenger;
                if new != OUT {
                    self.play(place, new);
                }
                self.promote(Rank(challenger).place());
            }
        } else if new < self.leader {
            let deposed = core::mem::replace(&mut self.leader, new);
            self.play(place, OUT);
            if deposed != OUT {
                self.play(Rank(deposed).place(), deposed);
            }
        } else {
            self.play(place, new);
        }
    }

    /// The challenger, player `place`, leads from now on, and plays no longer.
    #[inline(never)]
    fn promote(&mut self, place: u32) {
        let mut place = place as usize;
        let mut below = place / PLAYERS;
        self.matches[below].0[place % PLAYERS] = OUT;
        // It had won all its matches.
        for &round in &self.rounds[..self.played] {
            let winner = self.matches[below].winner();
            place /= PLAYERS;
            below = round as usize + place / PLAYERS;
            self.matches[below].0[place % PLAYERS] = winner;
        }
    }

    /// Player `place` comes to its first match with another number.
    #[inline(never)]
    fn play(&mut self, place: u32, mut new: u128) {
        let mut place = place as usize;
        let mut below = place / PLAYERS;
        let mut old = core::mem::replace(&mut self.matches[below].0[place % PLAYERS], new);
        for &round in &self.rounds[..self.played] {
            place /= PLAYERS;
            let index = round as usize + place / PLAYERS;
            let known = self.matches[index].0[place % PLAYERS];
            if new >= known {
                if old != known {
                    return;
                }
                // The winner of the match below fell back.
                new = self.matches[below].winner();
            }
            if new == known {
                return;
            }
            self.matches[index].0[place % PLAYERS] = new;
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
        /// Against a sorted set, with as many places as make one to five rounds.
        #[test]
        fn the_first_is_the_least(
            places in prop_oneof![1u32..6, 15u32..18, 63u32..70, 255u32..300],
            operations in prop::collection::vec((any::<u32>(), 0u64..4), 0..400),
            most_first in any::<bool>(),
        ) {
            let mut tournament = Tournament::new(places);
            let mut ranks = vec![None; places as usize];
            let mut sorted = BTreeSet::new();
            for (stamp, (place, bytes)) in (1..).zip(operations) {
                let place = place % places;
                if let Some(old) = ranks[place as usize].take() {
                    sorted.remove(&old);
                }
                if bytes == 0 {
                    tournament.leave(place);
                } else {
                    let rank = match most_first {
                        true => Rank::most_first(bytes, stamp, place),
                        false => Rank::least_first(bytes, stamp, place),
                    };
                    tournament.enter(place, rank);
                    ranks[place as usize] = Some(rank);
                    sorted.insert(rank);
                }
                prop_assert_eq!(tournament.first(), sorted.first().map(|rank| rank.place()));
            }
        }
    }
}
