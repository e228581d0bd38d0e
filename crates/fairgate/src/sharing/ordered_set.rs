//! A set of numbers that finds the next of them in order: bitmaps over bitmaps.
//!
//! A bit for each number, and above every 64 words a word that tells which of them aren't empty. Going in and out
//! touches the upper words only when a word becomes occupied or empty; three levels are enough for 262,144 numbers, and a
//! single word for 64, which is at hand without a look elsewhere.

use alloc::boxed::Box;

/// Bits of a word.
const WORD: u32 = 64;

/// The set. Room for all numbers is made at construction.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSet {
    /// Which words of the level below are occupied; or, of at most 64 numbers, the numbers themselves.
    top: u64,
    /// A bit for each number, and behind them, of more than 4096, which of the words before are occupied.
    words: Box<[u64]>,
    /// How many words hold numbers.
    lowest: u32,
}

impl OrderedSet {
    /// An empty set of numbers below `size`, at most 2^18.
    pub(crate) fn new(size: usize) -> OrderedSet {
        assert!(size <= 1 << 18, "two levels of words and the top");
        let over = |width: u32| match width > WORD {
            true => width.div_ceil(WORD),
            false => 0,
        };
        let lowest = over(size as u32);
        OrderedSet {
            top: 0,
            words: vec![0; (lowest + over(lowest)) as usize].into_boxed_slice(),
            lowest,
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

    /// Whether there is a level between the words that hold numbers and the top.
    #[inline]
    fn has_middle(&self) -> bool {
        self.words.len() > self.lowest as usize
    }

    /// Puts a number in.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        match self.lowest {
            0 => self.top |= 1 << number,
            _ => self.insert_below(number),
        }
    }

    // Out of line, like its kin: of a word there should be no more than two or three instructions.
    #[inline(never)]
    fn insert_below(&mut self, number: u32) {
        let word = number / WORD;
        if occupy(&mut self.words[word as usize], number) {
            return;
        }
        if !self.has_middle() {
            self.top |= 1 << word;
        } else if !occupy(&mut self.words[(self.lowest + word / WORD) as usize], word) {
            self.top |= 1 << (word / WORD);
        }
    }

    /// Takes a number out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        match self.lowest {
            0 => self.top &= !(1 << number),
            _ => self.remove_below(number),
        }
    }

    #[inline(never)]
    fn remove_below(&mut self, number: u32) {
        let word = number / WORD;
        if vacate(&mut self.words[word as usize], number) {
            return;
        }
        if !self.has_middle() {
            self.top &= !(1 << word);
        } else if !vacate(&mut self.words[(self.lowest + word / WORD) as usize], word) {
            self.top &= !(1 << (word / WORD));
        }
    }

    /// The least number that is in and at least `number`.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> Option<u32> {
        match self.lowest {
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
        let word = number / WORD;
        if word >= self.lowest {
            return None;
        }
        let rest = self.words[word as usize] & (u64::MAX << (number % WORD));
        if rest != 0 {
            return Some(word * WORD + rest.trailing_zeros());
        }
        let word = match self.has_middle() {
            false => self.next_at_top(word + 1)?,
            true => self.next_in_middle(word + 1)?,
        };
        Some(word * WORD + self.words[word as usize].trailing_zeros())
    }

    /// The least word that is occupied and at least `word`.
    fn next_in_middle(&self, word: u32) -> Option<u32> {
        let middle = &self.words[self.lowest as usize..];
        let rest = middle.get((word / WORD) as usize)? & (u64::MAX << (word % WORD));
        if rest != 0 {
            return Some(word / WORD * WORD + rest.trailing_zeros());
        }
        let above = self.next_at_top(word / WORD + 1)?;
        Some(above * WORD + middle[above as usize].trailing_zeros())
    }
}

/// Sets the bit of a number in its word. Whether the word was occupied.
#[inline]
fn occupy(word: &mut u64, number: u32) -> bool {
    let before = *word;
    *word |= 1 << (number % WORD);
    before != 0
}

/// Clears the bit of a number in its word. Whether the word is still occupied.
#[inline]
fn vacate(word: &mut u64, number: u32) -> bool {
    *word &= !(1 << (number % WORD));
    *word != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

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
