//! A set of numbers that finds the next of them in order: bitmaps over bitmaps.
//!
//! A bit for each number, and above every 64 words a word that tells which of them aren't empty. Going in and out
//! touches the upper words only when a word becomes occupied or empty; three levels are enough for 262,144 numbers.

/// Bits of a word.
const WORD: usize = 64;

/// The set. Room for all numbers is made at construction.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSet {
    /// The lowest level first, the last level a single word.
    words: Box<[u64]>,
    /// Where each level begins; unused levels are left at 0.
    starts: [u32; 4],
    levels: u32,
}

impl OrderedSet {
    /// An empty set of numbers below `size`, at most 2^24.
    pub(crate) fn new(size: usize) -> OrderedSet {
        assert!(size <= 1 << 24, "four levels of bitmaps");
        let (mut starts, mut levels, mut total) = ([0; 4], 0, 0);
        let mut width = size.max(1);
        loop {
            width = width.div_ceil(WORD);
            starts[levels] = total as u32;
            total += width;
            levels += 1;
            if width == 1 {
                break;
            }
        }
        OrderedSet {
            words: vec![0; total].into_boxed_slice(),
            starts,
            levels: levels as u32,
        }
    }

    /// Whether nothing is in.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words[self.words.len() - 1] == 0
    }

    /// Takes all numbers out.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Puts a number in.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
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
    }

    /// Takes a number out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let mut place = number;
        for level in 0..self.levels as usize {
            let word = &mut self.words[(self.starts[level] + place / 64) as usize];
            *word &= !(1 << (place % 64));
            if *word != 0 {
                return;
            }
            place /= 64;
        }
    }

    /// The least number that is in and at least `number`.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> Option<u32> {
        let mut place = number;
        for level in 0..self.levels as usize {
            let start = self.starts[level];
            let end = self.end(level);
            let word = start + place / 64;
            if word >= end {
                return None;
            }
            let rest = self.words[word as usize] & (u64::MAX << (place % 64));
            if rest != 0 {
                return Some(self.descend(level, place / 64 * 64 + rest.trailing_zeros()));
            }
            place = place / 64 + 1;
        }
        None
    }

    fn end(&self, level: usize) -> u32 {
        match self.starts.get(level + 1) {
            Some(&end) if level + 1 < self.levels as usize => end,
            _ => self.words.len() as u32,
        }
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
