//! The lines in which two texts differ.

use serde::Serialize;

/// The longest texts, lines times lines, of which the fewest differences are found: 4 MB of numbers. Beyond
/// that, all between the first and the last one differs.
const MOST: usize = 1 << 20;

/// A line that only one of the texts has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// `-` for one that the old text has, and `+` for one of the new text.
    pub(crate) sign: char,
    /// Where it is in its text, from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Returns the lines that make the new text of the old one.
pub(crate) fn between(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old
        .iter()
        .zip(&new)
        .take_while(|(one, other)| one == other)
        .count();
    let (left, right) = (&old[head..], &new[head..]);
    let tail = left.iter().rev().zip(right.iter().rev());
    let tail = tail.take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[..left.len() - tail], &right[..right.len() - tail]);
    let line = |sign, at: usize, text: &str| Line {
        sign,
        number: head + at + 1,
        text: text.to_owned(),
    };
    let common = match left.len().saturating_mul(right.len()) <= MOST {
        true => common(left, right),
        false => Vec::new(),
    };
    let (mut lines, mut at) = (Vec::new(), (0, 0));
    for (one, other) in common.into_iter().chain([(left.len(), right.len())]) {
        lines.extend((at.0..one).map(|place| line('-', place, left[place])));
        lines.extend((at.1..other).map(|place| line('+', place, right[place])));
        at = (one + 1, other + 1);
    }
    lines
}

/// Returns the places of a longest common subsequence in both.
fn common(left: &[&str], right: &[&str]) -> Vec<(usize, usize)> {
    // How many lines both have from here on.
    let width = right.len() + 1;
    let mut both = vec![0u32; (left.len() + 1) * width];
    for one in (0..left.len()).rev() {
        for other in (0..right.len()).rev() {
            both[one * width + other] = match left[one] == right[other] {
                true => both[(one + 1) * width + other + 1] + 1,
                false => both[(one + 1) * width + other].max(both[one * width + other + 1]),
            };
        }
    }
    let (mut found, mut one, mut other) = (Vec::new(), 0, 0);
    while one < left.len() && other < right.len() {
        if left[one] == right[other] {
            found.push((one, other));
            (one, other) = (one + 1, other + 1);
        } else if both[(one + 1) * width + other] >= both[one * width + other + 1] {
            one += 1;
        } else {
            other += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let lines = between(old, new).into_iter();
        lines
            .map(|line| format!("{}{} {}", line.sign, line.number, line.text))
            .collect()
    }

    #[test]
    fn a_line_that_moves_or_changes_is_one_difference() {
        assert_eq!(shown("a\nb\nc\n", "a\nB\nc\n"), ["-2 b", "+2 B"]);
        assert_eq!(shown("a\nb\nc\n", "a\nc\n"), ["-2 b"]);
        assert_eq!(shown("a\nx\nb\ny\nc", "a\nb\nc\nd"), ["-2 x", "-4 y", "+4 d"]);
        assert_eq!(shown("a", "a\n"), [""; 0]);
    }

    proptest! {
        /// Without the lines of the old text, and with those of the new one, it is the new text.
        #[test]
        fn the_new_text_is_made_of_the_old_one(
            old in proptest::collection::vec("[ab]{0,2}", 0..9),
            new in proptest::collection::vec("[ab]{0,2}", 0..9),
        ) {
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let lines = between(&text(&old), &text(&new));
            let at = |sign: char| lines.iter().filter(move |line| line.sign == sign);
            let kept = |lines: &[String], sign: char| -> Vec<String> {
                let gone: Vec<usize> = at(sign).map(|line| line.number - 1).collect();
                let kept = lines.iter().enumerate().filter(|(place, _)| !gone.contains(place));
                kept.map(|(_, line)| line.clone()).collect()
            };
            prop_assert_eq!(kept(&old, '-'), kept(&new, '+'));
            prop_assert!(at('-').all(|line| old[line.number - 1] == line.text));
            prop_assert!(at('+').all(|line| new[line.number - 1] == line.text));
        }
    }
}
