//! Numbers by ascending key. Any number can get another key, or be removed. It is a knockout tournament of
//! two players a match, in which each match stores its players.
//!
//! ```text
//!   match 0        [   2 ]            the winner of all
//!   match 1        [ 0  2 ]
//!   match 2, 3   [0  1][2  3]         the position of a number follows from the number: no index is needed
//! ```
//!
//! A key that changes is played through the matches above it as long as winners change. The positions of all
//! keys to compare with are known in advance, so no load waits for another comparison, unlike on the way down
//! a heap. The cost depends on the number of possible members, not on the number of present ones. If few of
//! many are present, [`KeyedHeap`](super::KeyedHeap) is faster.

use alloc::boxed::Box;

/// The key of a number that is not in the tournament. All other keys are smaller.
const OUT: u128 = u128::MAX;

/// The tournament. Memory for all numbers is allocated at construction.
#[derive(Debug)]
pub(crate) struct Knockout {
    /// The keys by number. Their count is a power of two.
    keys: Box<[u128]>,
    /// The players of each match. The winners of matches `2n` and `2n + 1` play match `n`. The winner of
    /// match 1 is stored in match 0.
    matches: Box<[[u32; 2]]>,
}

impl Knockout {
    /// Creates an empty tournament for numbers below `size`.
    pub(crate) fn new(size: usize) -> Knockout {
        let width = match size {
            0 => 0,
            _ => size.next_power_of_two(),
        };
        // The winner of a match, or the number itself beyond the last match. Of equal keys the lower number
        // wins.
        let winner = |at: usize| ((at << (width.ilog2() - at.ilog2())) - width) as u32;
        let players = |number: usize| match number {
            0 => [0, 0],
            _ => [winner(2 * number), winner(2 * number + 1)],
        };
        Knockout {
            keys: vec![OUT; width].into_boxed_slice(),
            matches: (0..width).map(players).collect(),
        }
    }

    /// Returns the smallest key and its number.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u128, u32)> {
        let &[_, winner] = self.matches.first()?;
        let key = self.keys[winner as usize];
        (key != OUT).then_some((key, winner))
    }

    /// Returns whether no number is in the tournament.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Returns whether a number is in the tournament.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.keys[number as usize] != OUT
    }

    /// Inserts a number, or changes its key. The key must be below `u128::MAX`.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, key: u128) {
        debug_assert!(key != OUT);
        self.play(number, key);
    }

    /// Removes a number, if it is in the tournament.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        if self.contains(number) {
            self.play(number, OUT);
        }
    }

    /// Sets a key, and plays the matches that it affects.
    fn play(&mut self, number: u32, key: u128) {
        self.keys[number as usize] = key;
        let mut at = self.keys.len() + number as usize;
        // The number moves up as long as it wins. From the match that it loses, the winner moves up as long
        // as it is new there. (Mostly the number loses, because keys mostly grow. So this branch is predicted
        // well, and costs less than code without a branch.)
        while at > 1 {
            let players = &mut self.matches[at / 2];
            players[at % 2] = number;
            let rival = players[1 - at % 2];
            at /= 2;
            if self.keys[rival as usize] < key {
                return self.pass_on(at, rival);
            }
        }
        self.matches[0][1] = number;
    }

    /// Records a new winner of match `at`.
    #[inline]
    fn pass_on(&mut self, mut at: usize, mut winner: u32) {
        let mut best = self.keys[winner as usize];
        loop {
            let players = &mut self.matches[at / 2];
            let before = core::mem::replace(&mut players[at % 2], winner);
            if before == winner || at == 1 {
                return;
            }
            let rival = players[1 - at % 2];
            let key = self.keys[rival as usize];
            if key < best {
                (winner, best) = (rival, key);
            }
            at /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_smallest_key_is_first(
            size in 0usize..40,
            operations in prop::collection::vec((0u8..4, 0u64..50, any::<prop::sample::Index>()), 0..300),
        ) {
            let mut knockout = Knockout::new(size);
            let mut model = vec![None; size];
            prop_assert!(knockout.is_empty());
            for (step, (operation, key, number)) in operations.into_iter().enumerate() {
                if size == 0 {
                    break;
                }
                let number = number.index(size);
                if operation < 3 {
                    let key = u128::from(key) << 64 | step as u128;
                    knockout.set(number as u32, key);
                    model[number] = Some(key);
                } else {
                    knockout.remove(number as u32);
                    model[number] = None;
                }
                let least = (0..size).filter_map(|number| Some((model[number]?, number as u32))).min();
                prop_assert_eq!(knockout.first(), least);
                prop_assert_eq!(knockout.is_empty(), least.is_none());
                prop_assert_eq!(knockout.contains(number as u32), model[number].is_some());
            }
        }
    }
}
