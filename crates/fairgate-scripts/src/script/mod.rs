//! The common parts of tc's and dummynet's languages: words and lines, numbers in C's notation, addresses.

pub(crate) mod drafts;
pub(crate) mod notes;
pub(crate) mod weight;
mod words;

use std::ops::Range;
use std::vec;

use fairgate::classify::Prefix;
use fairgate_config::language::{Given, Problems, Written};
use toml::Spanned;

pub(crate) use words::{Word, lines};

/// The rest of a line, as words.
pub(crate) struct Line {
    words: vec::IntoIter<Word>,
    /// The end of the line: the location of a missing word.
    end: usize,
    /// The syntax of a line, for remedies.
    form: &'static str,
}

impl Line {
    pub(crate) fn new(words: Vec<Word>, end: usize, form: &'static str) -> Line {
        let words = words.into_iter();
        Line { words, end, form }
    }

    /// Returns the location after the last word.
    pub(crate) fn end(&self) -> Range<usize> {
        self.end..self.end
    }

    pub(crate) fn peek(&self) -> Option<&Word> {
        self.words.as_slice().first()
    }

    pub(crate) fn take(&mut self) -> Option<Word> {
        self.words.next()
    }

    /// Returns all remaining words.
    pub(crate) fn rest(self) -> Vec<Word> {
        self.words.collect()
    }

    /// Takes the next word. Reports if there is none.
    pub(crate) fn next(&mut self, expected: &str, problems: &mut Problems) -> Option<Word> {
        let word = self.words.next();
        if word.is_none() {
            let message = format!("the line ends where {expected} is expected");
            let label = format!("{expected} is missing");
            problems.add(self.end(), message, label, self.form);
        }
        word
    }

    /// Reports a word that is not the expected one.
    pub(crate) fn unexpected<T>(&self, word: &Word, expected: &str, problems: &mut Problems) -> Option<T> {
        unexpected(word, expected, self.form, problems)
    }

    /// Reports that something is missing before `at`.
    pub(crate) fn misplaced<T>(&self, at: Range<usize>, message: &str, problems: &mut Problems) -> Option<T> {
        problems.add(at, message, "something is missing", self.form);
        None
    }
}

/// Reports a word that is not the expected one in a line of this syntax.
pub(crate) fn unexpected<T>(word: &Word, expected: &str, form: &str, problems: &mut Problems) -> Option<T> {
    let message = format!("expected {expected}, but found `{}`", word.get_ref());
    problems.add(word.span(), message, "unexpected", form);
    None
}

/// Reports an option without a value.
pub(crate) fn no_value(option: &Word, problems: &mut Problems) {
    let name = option.get_ref();
    let message = format!("`{name}` has no value, or too few");
    let help = format!("write the value after `{name}`");
    problems.add(option.span(), message, "a value is missing", help);
}

/// Reads a number in C's notation: decimal, `0x` hexadecimal, `0` octal.
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

/// Reads an address, or a prefix with its length or its mask after a slash. Bits after the prefix are
/// ignored.
pub(crate) fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => longest,
        Some(mask) if mask.contains('.') && address.is_ipv4() => {
            let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
            let is_of_a_prefix = mask.leading_ones() + mask.trailing_zeros() >= 32;
            is_of_a_prefix.then_some(mask.leading_ones() as u8)?
        }
        Some(length) => length.parse::<u8>().ok()?,
    };
    Prefix::new(address, length).ok()
}

/// Returns a setting as if it were written in a file.
pub(crate) fn setting(location: &Range<usize>, name: &str, value: Given) -> Written {
    (
        Spanned::new(location.clone(), name.to_owned()),
        Spanned::new(location.clone(), value),
    )
}
