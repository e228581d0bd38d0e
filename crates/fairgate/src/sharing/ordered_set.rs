//! A set of numbers that finds the next member in order: bitmaps over bitmaps.
//!
//! There is a bit for each number. Above every 64 words there is a word that shows which of them are not
//! empty. An insertion or removal changes the upper words only if a word becomes occupied or empty. Three
//! levels are enough for 262,144 numbers. For at most 64 numbers a single word is enough, which is stored in
//! the set itself.

use alloc::boxed::Box;

/// The bits of a word.
const WORD: u32 = 64;

/// The set. Memory for all numbers is allocated at construction.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSet {
    /// Which words of the level below are occupied. For at most 64 numbers, the numbers themselves.
    top: u64,
    /// A bit for each number. For more than 4096 numbers, then a bit for each word before, set if it is
    /// occupied.
    words: Box<[u64]>,
    /// The number of words that hold numbers.
    lowest: u32,
}

impl OrderedSet {
    /// Creates an empty set for numbers below `size`, which is at most 2^18.
    pub(crate) fn new(size: usize) -> OrderedSet {
        assert!(
            size <= 1 << 18,
            "two levels of words and the top hold at most 2^18 numbers"
        );
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

    /// Returns whether the set is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0
    }

    /// Removes all numbers.
    pub(crate) fn clear(&mut self) {
        self.top = 0;
        self.words.fill(0);
    }

    /// Returns whether there is a level between the words that hold numbers and the top.
    #[inline]
    fn has_middle(&self) -> bool {
        self.words.len() > self.lowest as usize
    }

    /// Inserts a number.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        match self.lowest {
            0 => self.top |= 1 << number,
            _ => self.insert_below(number),
        }
    }

    // This and the functions like it are not inlined, so that a set of one word takes two or three
    // instructions.
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

    /// Removes a number.
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

    /// Returns whether a number is a member. The numbers above all that were inserted are not.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        let word = match self.lowest {
            0 if number < WORD => self.top,
            0 => 0,
            _ => self.words.get((number / WORD) as usize).copied().unwrap_or(0),
        };
        word & 1 << (number % WORD) != 0
    }

    /// Returns the smallest member.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        let first = self.next_at_top(0)?;
        Some(match self.lowest {
            0 => first,
            _ => self.first_below(first),
        })
    }

    /// Returns the smallest member below the first one of the top.
    #[inline(never)]
    fn first_below(&self, mut word: u32) -> u32 {
        if self.has_middle() {
            word = word * WORD + self.words[(self.lowest + word) as usize].trailing_zeros();
        }
        word * WORD + self.words[word as usize].trailing_zeros()
    }

    /// Returns the smallest member that is at least `number`.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> Option<u32> {
        match self.lowest {
            0 => self.next_at_top(number),
            _ => self.next_below(number),
        }
    }

    #[inline]
    fn next_at_top(&self, number: u32) -> Option<u32> {
        let rest = self.top & u64::MAX.checked_shl(number)?;
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

    /// Returns the first occupied word that is at least `word`.
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

/// Sets the bit of a number in its word. Returns whether the word was occupied before.
#[inline]
fn occupy(word: &mut u64, number: u32) -> bool {
    let before = *word;
    *word |= 1 << (number % WORD);
    before != 0
}

/// Clears the bit of a number in its word. Returns whether the word is still occupied.
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
        /// Compares with a set of the standard library, over one to three levels.
        #[test]
        fn the_next_member_is_found(
            size in prop_oneof![1usize..70, 1usize..5000, 250_000usize..262_145],
            operations in prop::collection::vec((0u8..3, any::<u32>()), 0..300),
        ) {
            let mut set = OrderedSet::new(size);
            let mut model = BTreeSet::new();
            for (operation, number) in operations {
                // Small numbers are frequent, so that operations often use the same or adjacent numbers.
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
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.contains(number), model.contains(&number));
                prop_assert!(!set.contains(u32::MAX));
                prop_assert_eq!(set.next(size as u32), None);
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
