//! What the languages of scripts share, tc's and dummynet's: words and lines, numbers as C writes them, addresses.

mod words;

use std::ops::Range;
use std::vec;

use fairgate::classify::Prefix;
use fairgate_config::language::{Given, Problems, Written};
use toml::Spanned;

pub(crate) use words::{Word, lines};

/// The words of a line that are still to be read.
pub(crate) struct Line {
    words: vec::IntoIter<Word>,
    /// Where the line ends: the place of what is missing.
    end: usize,
    /// How lines are written: the remedy.
    form: &'static str,
}

impl Line {
    pub(crate) fn new(words: Vec<Word>, end: usize, form: &'static str) -> Line {
        let words = words.into_iter();
        Line { words, end, form }
    }

    /// The place behind the last word.
    pub(crate) fn end(&self) -> Range<usize> {
        self.end..self.end
    }

    pub(crate) fn peek(&self) -> Option<&Word> {
        self.words.as_slice().first()
    }

    pub(crate) fn take(&mut self) -> Option<Word> {
        self.words.next()
    }

    /// All words that are left.
    pub(crate) fn rest(self) -> Vec<Word> {
        self.words.collect()
    }

    /// The next word; reported if there is none.
    pub(crate) fn next(&mut self, expected: &str, problems: &mut Problems) -> Option<Word> {
        let word = self.words.next();
        if word.is_none() {
            let message = format!("the line ends where {expected} is expected");
            let label = format!("{expected} is missing");
            problems.add(self.end(), message, label, self.form);
        }
        word
    }

    /// Reports a word that is another than expected.
    pub(crate) fn unexpected<T>(&self, word: &Word, expected: &str, problems: &mut Problems) -> Option<T> {
        unexpected(word, expected, self.form, problems)
    }

    /// Reports something that must stand before `at`.
    pub(crate) fn misplaced<T>(&self, at: Range<usize>, message: &str, problems: &mut Problems) -> Option<T> {
        problems.add(at, message, "something is missing", self.form);
        None
    }
}

/// Reports a word that is another than expected in a line of this form.
pub(crate) fn unexpected<T>(word: &Word, expected: &str, form: &str, problems: &mut Problems) -> Option<T> {
    let message = format!("`{}` stands where {expected} is expected", word.get_ref());
    problems.add(word.span(), message, "unexpected", form);
    None
}

/// Reports an option that has no value behind it.
pub(crate) fn no_value(option: &Word, problems: &mut Problems) {
    let name = option.get_ref();
    let message = format!("`{name}` has no value, or too few");
    let help = format!("write what `{name}` should be behind it");
    problems.add(option.span(), message, "a value is missing", help);
}

/// A number as C writes it: decimal, `0x` hexadecimal, `0` octal.
pub(crate) fn number(word: &str) -> Option<u32> {
    let (digits, radix) = match word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if word.len() > 1 && word.starts_with('0') => (&word[1..], 8),
        None => (word, 10),
    };
    match digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        true => u32::from_str_radix(digits, radix).ok(),
        false => None,
    }
}

/// An address, or a prefix: its length behind a slash. Bits behind the prefix do not count.
pub(crate) fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    Prefix::new(address, length.unwrap_or(longest)).ok()
}

/// A setting as it would stand in a file.
pub(crate) fn setting(place: &Range<usize>, name: &str, value: Given) -> Written {
    (
        Spanned::new(place.clone(), name.to_owned()),
        Spanned::new(place.clone(), value),
    )
}
