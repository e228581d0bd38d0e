//! The difference between two texts as one replaced range. Of a list of thousands of lines in which one cell
//! has changed, it is that cell.

use serde::{Deserialize, Serialize};

/// What makes one text of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splice {
    /// Where the texts begin to differ, in bytes.
    at: usize,
    /// How many bytes of the other text are not in the one.
    take: usize,
    /// What is there instead.
    put: String,
}

impl Splice {
    /// Returns what makes `one` of `other`.
    pub(crate) fn between(other: &str, one: &str) -> Splice {
        let same = other
            .bytes()
            .zip(one.bytes())
            .take_while(|(one, other)| one == other);
        let mut at = same.count();
        while !one.is_char_boundary(at) {
            at -= 1;
        }
        let (left, put) = (&other[at..], &one[at..]);
        let same = left.bytes().rev().zip(put.bytes().rev());
        let mut tail = same.take_while(|(one, other)| one == other).count();
        while !put.is_char_boundary(put.len() - tail) {
            tail -= 1;
        }
        Splice {
            at,
            take: left.len() - tail,
            put: put[..put.len() - tail].to_owned(),
        }
    }

    /// Returns the one text of the other. None if it is not that of this difference.
    pub(crate) fn of(&self, other: &str) -> Option<String> {
        let (begin, end) = (
            other.get(..self.at)?,
            other.get(self.at.checked_add(self.take)?..)?,
        );
        Some([begin, &self.put, end].concat())
    }

    /// Returns how many bytes it keeps.
    pub(crate) fn size(&self) -> usize {
        self.put.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_a_long_text_the_part_that_differs_is_kept() {
        let line = |number: u32| format!("{number},192.0.2.{number},home,\n");
        let text: String = (0..200).map(line).collect();
        let changed = text.replace("2.77,home,", "2.77,home,5mbit");
        let splice = Splice::between(&changed, &text);
        assert_eq!((splice.size(), splice.take), (0, 5));
        assert_eq!(splice.of(&changed).unwrap(), text);
        assert_eq!(splice.of("short"), None);
    }

    proptest! {
        #[test]
        fn each_text_is_made_of_the_other(one in "[abé€😀\n]{0,12}", other in "[abé€😀\n]{0,12}") {
            let splice = Splice::between(&other, &one);
            prop_assert_eq!(splice.of(&other), Some(one.clone()));
            prop_assert!(splice.size() <= one.len());
        }

        /// What comes from a file can be anything.
        #[test]
        fn a_difference_of_other_texts_is_refused_or_used(
            at in any::<usize>(), take in any::<usize>(), text in "[aé😀]{0,6}",
        ) {
            let splice = Splice { at: at % 9, take: take % 9, put: "x".to_owned() };
            let _ = splice.of(&text);
            let _ = Splice { at, take, ..splice }.of(&text);
        }
    }
}
