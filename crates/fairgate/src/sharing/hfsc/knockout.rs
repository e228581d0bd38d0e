//! Numbers by rising key, any of which can get another key or leave: a knockout tournament of two a match, in which each
//! match remembers who won it.
//!
//! ```text
//!   match 0        [   2 ]            the first of all
//!   match 1        [ 0  2 ]
//!   match 2, 3   [0  1][2  3]         each number plays for itself: there is no index to keep
//! ```
//!
//! A key that changes is played through the matches above it as far as a winner changes. The keys of all that it may meet lie
//! where is known beforehand: none waits for what another comparison fetches, as on the way down a heap. The cost goes by how
//! many numbers there may be, not by how many are in: where few of many are, [`KeyedHeap`](super::KeyedHeap) is quicker.

use alloc::boxed::Box;

/// The key of a number that is out; no other is as great.
const OUT: u128 = u128::MAX;

/// The tournament. Room for all numbers is made at construction.
#[derive(Debug)]
pub(crate) struct Knockout {
    /// As many as a power of two.
    keys: Box<[u128]>,
    /// Who plays. The winners of matches `2n` and `2n + 1` meet in match `n`, the winner of match 1 is noted in match 0.
    matches: Box<[[u32; 2]]>,
}

impl Knockout {
    /// For numbers below `size`, none of them in.
    pub(crate) fn new(size: usize) -> Knockout {
        let width = match size {
            0 => 0,
            _ => size.next_power_of_two(),
        };
        // The winner of a match, of those beyond the last match the number itself: among equals the first.
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

    /// The least key, and whose it is.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u128, u32)> {
        let &[_, winner] = self.matches.first()?;
        let key = self.keys[winner as usize];
        (key != OUT).then_some((key, winner))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Whether a number is in.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.keys[number as usize] != OUT
    }

    /// Puts a number in, or gives it another key, below the greatest that there is.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, key: u128) {
        debug_assert!(key != OUT);
        self.play(number, key);
    }

    /// Takes a number out, if it is in.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        if self.contains(number) {
            self.play(number, OUT);
        }
    }

    fn play(&mut self, number: u32, key: u128) {
        self.keys[number as usize] = key;
        let mut at = self.keys.len() + number as usize;
        // As far as the number itself wins, then from where another one does up to where that one did before. (The one who
        // comes up mostly loses, for keys mostly grow: a branch that is guessed right costs less here than none.)
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

    /// Enters another winner of match `at`.
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
        fn the_least_key_is_first(
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
