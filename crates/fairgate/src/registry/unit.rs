//! Units of parameters, and how values are printed.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use super::units;
use super::value::Value;
use crate::probability::Probability;
use crate::rate::Rate;

/// The unit of a parameter. It determines how users write the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A plain number of the things that the word names.
    Count(&'static str),
    /// Bytes, in tc's language: `64kb`.
    Bytes,
    /// Nanoseconds, in tc's language: `5ms`.
    Time,
    /// A list of exactly this many times, each as in [`Unit::Time`], or an empty one if none is given.
    Times(usize),
    /// Bits per second, in tc's language: `20mbit`.
    Rate,
    /// Parts of 2^32, written as a decimal: `0.02`.
    Probability,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text. The word names what it is: an interface, a file.
    Text(&'static str),
    /// A list of at most this many texts. The word names what each is.
    Texts(&'static str, usize),
    /// A list of exactly this many numbers.
    List(usize),
    /// A list of at most this many numbers.
    Numbers(usize),
    /// A plain number of the things that the word names, which may be negative, down to this least one. The
    /// range is that of the numbers from 0 on, and the value is the two's complement.
    Signed(&'static str, i64),
    /// A list of at most this many numbers that may be negative. The range is that of each without its sign,
    /// and a value is the two's complement.
    SignedNumbers(usize),
    /// A plain number of the things that the word names, or a list of them, each a plain number. Their range
    /// is the same.
    CountOrNumbers(&'static str),
    /// A service curve of two pieces: `4mbit:10ms:1mbit`. Its value is a list: bit/s, nanoseconds, bit/s.
    Curve,
}

impl Unit {
    /// The unit's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count(of) | Unit::Signed(of, _) | Unit::CountOrNumbers(of) | Unit::Text(of) => of,
            Unit::Bytes => "bytes",
            Unit::Time => "time",
            Unit::Rate => "rate",
            Unit::Probability => "probability",
            Unit::Flag => "true/false",
            Unit::Choice(_) => "word",
            Unit::List(_) | Unit::Numbers(_) | Unit::SignedNumbers(_) | Unit::Texts(..) | Unit::Times(_) => {
                "list"
            }
            Unit::Curve => "curve",
        }
    }

    /// Returns what a value of this unit is called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Unit::Count(_) | Unit::Signed(..) => "plain number",
            Unit::Bytes => "size",
            Unit::Time => "duration",
            Unit::Rate => "rate",
            Unit::Probability => "probability",
            Unit::Flag => "flag",
            Unit::Choice(_) => "word",
            Unit::Text(_) => "text",
            Unit::List(_) | Unit::Numbers(_) | Unit::SignedNumbers(_) => "list of numbers",
            Unit::Texts(..) => "list of texts",
            Unit::Times(_) => "list of durations",
            Unit::CountOrNumbers(_) => "plain number or a list of numbers",
            Unit::Curve => "service curve",
        }
    }

    /// Returns a number of this unit as users write it.
    fn show_number(self, number: u64) -> String {
        match self {
            Unit::Bytes => units::format_size(number),
            Unit::Time | Unit::Times(_) => units::format_duration(Duration::from_nanos(number)),
            Unit::Rate => match Rate::from_bits_per_second(number) {
                Ok(rate) => units::format_rate(rate),
                Err(_) => "0bit".to_owned(),
            },
            Unit::Probability => Probability::from_parts(number).to_string(),
            Unit::Signed(..) | Unit::SignedNumbers(_) => (number as i64).to_string(),
            _ => number.to_string(),
        }
    }

    /// Whether a number of this unit is within the range.
    pub fn allows(self, number: u64, range: &RangeInclusive<u64>) -> bool {
        match (self, number as i64) {
            (Unit::Signed(_, least), signed @ ..0) => least <= signed,
            (Unit::SignedNumbers(_), signed) => range.contains(&signed.unsigned_abs()),
            _ => range.contains(&number),
        }
    }

    /// Returns the number as a value of this unit. `None` if no value can hold it.
    pub fn of_number(self, number: i128) -> Option<u64> {
        match self {
            Unit::Signed(..) | Unit::SignedNumbers(_) => {
                i64::try_from(number).ok().map(|signed| signed as u64)
            }
            _ => u64::try_from(number).ok(),
        }
    }

    /// Returns a value of this unit as users write it, without quotation marks.
    pub fn show(self, value: &Value) -> String {
        match value {
            Value::Number(number) => self.show_number(*number),
            Value::Flag(flag) => flag.to_string(),
            Value::Word(word) => (*word).to_owned(),
            Value::Text(text) if text.is_empty() => "none".to_owned(),
            Value::Text(text) => text.clone(),
            Value::List(curve) if self == Unit::Curve => units::format_curve(curve),
            Value::List(times) if matches!(self, Unit::Times(_)) && times.is_empty() => "none".to_owned(),
            Value::List(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(|number| self.show_number(*number)).collect();
                format!("[{}]", numbers.join(", "))
            }
            Value::Texts(texts) if texts.is_empty() => "none".to_owned(),
            Value::Texts(texts) => format!("[{}]", texts.join(", ")),
            Value::None => "none".to_owned(),
        }
    }

    /// Returns a range of this unit as text: `1 to 65536`, `at least 1ns`.
    pub fn show_range(self, range: &RangeInclusive<u64>) -> String {
        let least = self.show_number(*range.start());
        match self {
            Unit::Flag => "true or false".to_owned(),
            Unit::Curve => "a service curve".to_owned(),
            Unit::Choice(words) => words.join(" or "),
            Unit::Text(of) => of.to_owned(),
            Unit::Texts(of, most) => format!("at most {most} of: {of}"),
            Unit::Times(length) => {
                format!("{length} times, {least} to {}", self.show_number(*range.end()))
            }
            Unit::CountOrNumbers(of) => format!("how many {of}, or a list of them"),
            Unit::List(length) => format!("{length} numbers, {least} to {}", range.end()),
            Unit::Numbers(most) => format!("at most {most} numbers, {least} to {}", range.end()),
            Unit::Signed(_, least) => format!("{least} to {}", range.end()),
            Unit::SignedNumbers(most) => {
                format!("at most {most} numbers, -{} to {}", range.end(), range.end())
            }
            _ if self.hides(*range.end()) => format!("at least {least}"),
            _ => format!("{least} to {}", self.show_number(*range.end())),
        }
    }

    /// Whether `most` is the largest number of a machine word. Such a limit is not shown to users who are
    /// below it.
    pub fn hides(self, most: u64) -> bool {
        [u64::MAX, u64::from(u32::MAX), i64::MAX as u64].contains(&most)
    }

    /// Returns what to write for this unit, as a remedy.
    pub fn example(self) -> String {
        match self {
            // The word names what the number is, not what it counts.
            Unit::Count(
                "weight" | "times" | "class" | "priority" | "threads" | "samples" | "percent" | "seed",
            ) => "write a plain number, like 3".to_owned(),
            Unit::Count(of) => format!("write a plain number of {of}, like 1000"),
            Unit::Signed(of, _) => format!("write a plain number of {of}, like 20 or -14"),
            Unit::SignedNumbers(_) => "write a list of numbers, like [-8192, 0, 8192]".to_owned(),
            Unit::Bytes => "write a size like \"64kb\", \"1514b\" or the plain number of bytes".to_owned(),
            Unit::Times(_) => {
                "write a list of durations with their units, like [\"10s\", \"60s\"]".to_owned()
            }
            Unit::Time => "write a duration with its unit, like \"5ms\", \"100us\" or \"1s\"".to_owned(),
            Unit::Rate => "write a rate like \"20mbit\" or the plain number of bit/s".to_owned(),
            Unit::Probability => "write a probability like 0.02".to_owned(),
            Unit::Flag => "write true or false".to_owned(),
            Unit::Text(of) => format!("write a text in quotation marks: the {of}"),
            Unit::CountOrNumbers(of) => format!("write how many {of}, like 5, or which ones, like [1, 2, 7]"),
            Unit::Texts(of, _) => format!("write a list of texts, [\"...\", \"...\"], each the {of}"),
            Unit::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("write {}", quoted.join(" or "))
            }
            Unit::List(length) => format!("write a list of {length} numbers, like [0, 1, 2]"),
            Unit::Curve => "write a rate, \"2mbit\"; a rate, its duration, and the rate after it, \
                            \"4mbit:10ms:1mbit\"; or a packet size, its deadline, and the rate \
                             after it, \"1500b:10ms:1mbit\""
                .to_owned(),
            Unit::Numbers(_) => "write a list of numbers, like [4, 2, 1], or [] for none".to_owned(),
        }
    }
}
