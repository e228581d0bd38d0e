//! A set of numbers that finds the next of them in order: bitmaps over bitmaps.
//!
//! A bit for each number, and above every 64 words a word that tells which of them aren't empty. Going in and out
//! touches the upper words only when a word becomes occupied or empty; three levels are enough for 262,144 numbers, and a
//! single word for 64, which is at hand without a look elsewhere.

/// Bits of a word.
const WORD: usize = 64;

/// The most levels below the single word at the top.
const LEVELS: usize = 3;

/// The set. Room for all numbers is made at construction.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSet {
    top: u64,
    /// The levels below, the lowest first.
    words: Box<[u64]>,
    /// Where each of them begins, and where the last one ends.
    starts: [u32; LEVELS + 1],
    levels: u32,
}

impl OrderedSet {
    /// An empty set of numbers below `size`, at most 2^24.
    pub(crate) fn new(size: usize) -> OrderedSet {
        assert!(size <= 1 << 24, "three levels of bitmaps and the top");
        let mut starts = [0; LEVELS + 1];
        let (mut levels, mut total) = (0, 0);
        let mut width = size;
        while width > WORD {
            width = width.div_ceil(WORD);
            total += width;
            levels += 1;
            starts[levels] = total as u32;
        }
        OrderedSet {
            top: 0,
            words: vec![0; total].into_boxed_slice(),
            starts,
            levels: levels as u32,
        }
    }

    /// Whether nothing is in.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0
    }

    /// Takes all numbers out.
    pub(crate) fn clear(&mut self) {
        self.top = 0;
        self.words.fill(0);
    }

    /// Puts a number in.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        match self.levels {
            0 => self.top |= 1 << number,
            _ => self.insert_below(number),
        }
    }

    // Out of line, like its kin: of a word there should be no more than two or three instructions.
    #[inline(never)]
    fn insert_below(&mut self, number: u32) {
        let mut place = number;
        for level in 0..self.levels as usize {
            let word = &mut self.words[(self.starts[level] + place / 64) as usize];
            let before = *word;
            *word |= 1 << (place % 64);
            if before != 0 {
                return;
            }
            place /= 64;
        }
        self.top |= 1 << place;
    }

    /// Takes a number out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        match self.levels {
            0 => self.top &= !(1 << number),
            _ => self.remove_below(number),
        }
    }

    #[inline(never)]
    fn remove_below(&mut self, number: u32) {
        let mut place = number;
        for level in 0..self.levels as usize {
            let word = &mut self.words[(self.starts[level] + place / 64) as usize];
            *word &= !(1 << (place % 64));
            if *word != 0 {
                return;
            }
            place /= 64;
        }
        self.top &= !(1 << place);
    }

    /// The least number that is in and at least `number`.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> Option<u32> {
        match self.levels {
            0 => self.next_at_top(number),
            _ => self.next_below(number),
        }
    }

    #[inline]
    fn next_at_top(&self, place: u32) -> Option<u32> {
        let rest = self.top & u64::MAX.checked_shl(place)?;
        (rest != 0).then(|| rest.trailing_zeros())
    }

    #[inline(never)]
    fn next_below(&self, number: u32) -> Option<u32> {
        let mut place = number;
        for level in 0..self.levels as usize {
            let word = self.starts[level] + place / 64;
            if word >= self.starts[level + 1] {
                return None;
            }
            let rest = self.words[word as usize] & (u64::MAX << (place % 64));
            if rest != 0 {
                return Some(self.descend(level, place / 64 * 64 + rest.trailing_zeros()));
            }
            place = place / 64 + 1;
        }
        let place = self.next_at_top(place)?;
        Some(self.descend(self.levels as usize, place))
    }

    /// The least number under the bit at `place` of `level`.
    #[inline]
    fn descend(&self, level: usize, mut place: u32) -> u32 {
        for below in (0..level).rev() {
            let word = self.words[(self.starts[below] + place) as usize];
            place = place * 64 + word.trailing_zeros();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of the standard library, over one to three levels.
        #[test]
        fn the_next_is_found(
            size in prop_oneof![1usize..70, 1usize..5000, 250_000usize..262_145],
            operations in prop::collection::vec((0u8..3, any::<u32>()), 0..300),
        ) {
            let mut set = OrderedSet::new(size);
            let mut model = BTreeSet::new();
            for (operation, number) in operations {
                // Neighbours meet more often near the beginning.
                let number = (number >> (number % 32)) % size as u32;
                match operation {
                    0 => {
                        set.insert(number);
                        model.insert(number);
                    }
                    1 => {
                        set.remove(number);
                        model.remove(&number);
                    }
                    _ => {}
                }
                prop_assert_eq!(set.next(number), model.range(number..).next().copied());
                prop_assert_eq!(set.next(0), model.first().copied());
                prop_assert_eq!(set.next(size as u32), None);
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
