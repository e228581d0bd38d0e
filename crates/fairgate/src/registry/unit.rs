//! Units of parameters, and how values are printed.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use super::units::{self, UnitError};
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
    /// A duration as in [`Unit::Time`], or `false` for none.
    TimeOrFalse,
    /// Bits per second, in tc's language: `20mbit`.
    Rate,
    /// A whole number of the things that the word names, which may be in quotation marks like a quantity with
    /// a unit.
    Amount(&'static str),
    /// A list of quantities of a unit: at least and at most so many, or none if it is not given.
    Several(&'static Unit, usize, usize),
    /// Times, and the rate from each on: `[["0s", "10mbit"], ["5s", "2mbit"]]`. Its value is a list in which
    /// nanoseconds and bit/s alternate.
    Schedule,
    /// A number of the things that the word names, which may have decimals, from a least to a most one. Its
    /// value is the bits of an `f64`.
    Decimal(&'static str, i64, i64),
    /// A number that may have decimals, or a list of them. A value is the bits of an `f64`.
    Decimals(&'static str),
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
    /// A plain number of the things that the word names, or a list of texts that name them.
    CountOrTexts(&'static str),
    /// A DSCP: a number, or its name.
    Dscp,
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
            Unit::Count(of)
            | Unit::Amount(of)
            | Unit::Decimal(of, ..)
            | Unit::Decimals(of)
            | Unit::Signed(of, _)
            | Unit::CountOrNumbers(of)
            | Unit::CountOrTexts(of)
            | Unit::Text(of) => of,
            Unit::Bytes => "bytes",
            Unit::Time | Unit::TimeOrFalse => "time",
            Unit::Rate => "rate",
            Unit::Dscp => "DSCP",
            Unit::Probability => "probability",
            Unit::Flag => "true/false",
            Unit::Choice(_) => "word",
            Unit::List(_) | Unit::Numbers(_) | Unit::SignedNumbers(_) => "list",
            Unit::Texts(..) | Unit::Several(..) | Unit::Schedule => "list",
            Unit::Curve => "curve",
        }
    }

    /// Returns what a value of this unit is called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Unit::Count(_) | Unit::Amount(_) | Unit::Signed(..) => "plain number",
            Unit::Bytes => "size",
            Unit::Time => "duration",
            Unit::TimeOrFalse => "duration, or false",
            Unit::Decimal(..) => "number",
            Unit::Decimals(_) => "number or a list of numbers",
            Unit::CountOrTexts(_) => "plain number or a list of texts",
            Unit::Dscp => "DSCP",
            Unit::Schedule => "list of times with rates",
            Unit::Rate => "rate",
            Unit::Probability => "probability",
            Unit::Flag => "flag",
            Unit::Choice(_) => "word",
            Unit::Text(_) => "text",
            Unit::List(_) | Unit::Numbers(_) | Unit::SignedNumbers(_) => "list of numbers",
            Unit::Texts(..) => "list of texts",
            Unit::Several(Unit::Time, ..) => "list of durations",
            Unit::Several(Unit::Rate, ..) => "list of rates",
            Unit::Several(Unit::Bytes, ..) => "list of sizes",
            Unit::Several(..) => "list of numbers",
            Unit::CountOrNumbers(_) => "plain number or a list of numbers",
            Unit::Curve => "service curve",
        }
    }

    /// Returns a number of this unit as users write it.
    fn show_number(self, number: u64) -> String {
        match self {
            Unit::Bytes => units::format_size(number),
            Unit::Time | Unit::TimeOrFalse => units::format_duration(Duration::from_nanos(number)),
            Unit::Several(of, ..) => of.show_number(number),
            Unit::Decimal(..) | Unit::Decimals(_) => f64::from_bits(number).to_string(),
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
            (Unit::Decimal(_, least, most), _) => {
                (least as f64..=most as f64).contains(&f64::from_bits(number))
            }
            (Unit::Decimals(_) | Unit::Schedule, _) => true,
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

    /// Parses a quantity of this unit: a rate, size, duration or probability, else a whole number.
    ///
    /// # Errors
    /// If the text is none.
    pub fn parse(self, text: &str) -> Result<u64, UnitError> {
        match self {
            Unit::Bytes => units::parse_size(text),
            Unit::Rate => units::parse_rate(text).map(|rate| rate.bits_per_second()),
            Unit::Time | Unit::TimeOrFalse => units::parse_duration(text).map(|time| time.as_nanos() as u64),
            Unit::Probability => units::parse_probability(text).map(|probability| probability.parts()),
            _ => text.parse().map_err(|_| UnitError {
                message: format!("`{text}` is no whole number"),
                remedy: self.example(),
                span: 0..text.len(),
            }),
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
            Value::List(given) if matches!(self, Unit::Several(..) | Unit::Schedule) && given.is_empty() => {
                "none".to_owned()
            }
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
            Unit::Texts(of, usize::MAX) => format!("a list, each the {of}"),
            Unit::Texts(of, most) => format!("at most {most} of: {of}"),
            Unit::Several(of, least, most) => {
                let many = match (least, most) {
                    (least, most) if least == most => format!("{most}"),
                    (least, usize::MAX) => format!("at least {least}"),
                    (least, most) => format!("{least} to {most}"),
                };
                format!("a list of {many}, each {}", of.show_range(range))
            }
            Unit::Schedule => "a list of times with rates".to_owned(),
            Unit::Dscp => "0 to 63, or a name".to_owned(),
            Unit::Decimal(_, i64::MIN, i64::MAX) => "a number".to_owned(),
            Unit::Decimal(_, least, i64::MAX) => format!("a number of at least {least}"),
            Unit::Decimal(_, least, most) => format!("a number from {least} to {most}"),
            Unit::Decimals(_) => "a number, or a list of numbers".to_owned(),
            Unit::CountOrTexts(_) => {
                format!(
                    "{least} to {}, or a list of names",
                    self.show_number(*range.end())
                )
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
            Unit::Several(Unit::Time, ..) => {
                "write a list of durations with their units, like [\"10s\", \"60s\"]".to_owned()
            }
            Unit::Several(Unit::Rate, ..) => {
                "write a list of rates, like [\"500kbit\", \"2mbit\"]".to_owned()
            }
            Unit::Several(Unit::Bytes, ..) => "write a list of sizes, like [\"200b\", \"1400b\"]".to_owned(),
            Unit::Several(..) => "write a list of numbers, like [5, 20]".to_owned(),
            Unit::Schedule => "write the times from which rates hold, and the rates: \
                               [[\"0s\", \"10mbit\"], [\"5s\", \"2mbit\"]]"
                .to_owned(),
            Unit::Amount(of) => format!("write a whole number of {of}, like 12"),
            Unit::Decimal(_, 0, 1) => "write 0.01 for 1 %".to_owned(),
            Unit::Decimal(..) => "write a number, like 1.5".to_owned(),
            Unit::Decimals(_) => "write a number, like 2.5, or a list, like [2.5, 10]".to_owned(),
            Unit::CountOrTexts(of) => {
                format!("write how many {of}, like 5, or their names, like [\"one\", \"two\"]")
            }
            Unit::Dscp => "write a name like \"EF\", \"AF41\", \"CS1\", or a number".to_owned(),
            Unit::TimeOrFalse => "write a duration with its unit, like \"40ms\", or false".to_owned(),
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
