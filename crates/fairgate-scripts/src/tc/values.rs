//! Reads the values of options in tc's notation.

use std::slice;

use fairgate_config::language::Given;
use toml::Spanned;

use super::abbreviations::full;
use super::command::hexadecimal;
use super::kinds::{Opt, Reads};
use crate::script::{Word, number};

impl Opt {
    /// Returns the parameters that this value sets.
    pub(super) fn parameters(&self, value: &Spanned<Given>) -> impl Iterator<Item = &'static str> {
        let only = match self.reads {
            Reads::TimeOrPackets | Reads::SignedBytes => {
                Some(usize::from(matches!(value.get_ref(), Given::Integer(_))))
            }
            _ => None,
        };
        let parameters = self.parameter.split_whitespace().enumerate();
        let meant = parameters.filter(move |(index, _)| only.is_none_or(|only| *index == only));
        meant.map(|(_, parameter)| parameter)
    }
}

impl Reads {
    /// Reads the value after `option`. Returns `None` if words are missing.
    pub(super) fn value(&self, words: &mut slice::Iter<'_, Word>, option: &Word) -> Option<Spanned<Given>> {
        let word = |word: &Word| Spanned::new(word.span(), Given::Word(without_exponent(word.get_ref())));
        match self {
            Reads::Same
            | Reads::Common(_)
            | Reads::Only(..)
            | Reads::Unneeded
            | Reads::Within(..)
            | Reads::AtMost(_)
            | Reads::OrDefault
            | Reads::AtLeast(_) => words.next().map(word),
            Reads::CountedDown(from) => words.next().map(|rank| {
                let in_range = number(rank.get_ref()).filter(|rank| (1..=u32::from(*from)).contains(rank));
                let counted = in_range.map(|rank| Given::Integer((u32::from(*from) - rank).into()));
                counted.map_or_else(|| word(rank), |counted| Spanned::new(rank.span(), counted))
            }),
            Reads::Time(unit) => words.next().map(|word| time(word, unit)),
            Reads::TimeOrPackets => words.next().map(|word| match packets(word.get_ref()) {
                Some(number) => Spanned::new(word.span(), Given::Integer(number.into())),
                None => time(word, "us"),
            }),
            Reads::SignedBytes => words.next().map(|bytes| {
                let negative = bytes.get_ref().strip_prefix('-').and_then(number);
                negative.map_or_else(
                    || word(bytes),
                    |amount| Spanned::new(bytes.span(), Given::Integer(amount.into())),
                )
            }),
            Reads::Percent => words.next().map(|percent| {
                // The parameter rejects a value that is not a number of at most two digits or 100.
                let decimal = match percent.get_ref().as_str() {
                    "100" => "1".to_owned(),
                    digits if digits.len() <= 2 => format!("0.{digits:0>2}"),
                    other => other.to_owned(),
                };
                Spanned::new(percent.span(), Given::Meant(decimal))
            }),
            Reads::In256ths => words.next().map(|decimal| {
                let in_256ths = in_256ths(decimal.get_ref()).unwrap_or_else(|| decimal.get_ref().clone());
                Spanned::new(decimal.span(), Given::Meant(in_256ths))
            }),
            Reads::MaybePercent => words.next().map(|percent| {
                let number = percent.get_ref().trim_end_matches('%').to_owned();
                Spanned::new(percent.span(), Given::Meant(number))
            }),
            Reads::Tally => Some(Spanned::new(option.span(), Given::Integer(1))),
            Reads::Means(value) => Some(Spanned::new(option.span(), Given::Meant((*value).to_owned()))),
            Reads::Mask => words.next().map(|mask| match number(mask.get_ref()) {
                Some(mask_of) => Spanned::new(mask.span(), Given::Integer(mask_of.into())),
                None => word(mask),
            }),
            Reads::LinkLayer => words.next().map(|name| {
                let cells = match name.get_ref().as_str() {
                    "ethernet" => Given::Meant("uncut".to_owned()),
                    "atm" | "adsl" => Given::Meant("atm".to_owned()),
                    other => Given::Word(other.to_owned()),
                };
                Spanned::new(name.span(), cells)
            }),
            Reads::SizeAndCell => words.next().map(|size| {
                let is_cell = |cell: &str| cell.parse().is_ok_and(u32::is_power_of_two);
                match size.get_ref().split_once('/') {
                    Some((bytes, cell)) if is_cell(cell) => {
                        word(&Spanned::new(size.span(), bytes.to_owned()))
                    }
                    _ => word(size),
                }
            }),
            Reads::NotedValue(_) => words.next().map(word),
            Reads::Noted(_) | Reads::Nat(_) | Reads::Refused(_) | Reads::Several(_) => None,
            Reads::Minor => words.next().map(|minor| match hexadecimal(minor.get_ref()) {
                Some(number) => Spanned::new(minor.span(), Given::Integer(number.into())),
                None => word(minor),
            }),
            Reads::Curve => curve(words),
            Reads::List | Reads::ListAtLeast(_) => {
                let is_number =
                    |word: &&Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
                let count = words.as_slice().iter().take_while(is_number).count();
                list(words.by_ref().take(count).map(word).collect())
            }
        }
    }
}

/// Writes a quantity with an exponent, as tc reads it with `strtod`, without one: `1.5e6bit` is `1500000bit`,
/// `5e-3s` is `0.005s`. Returns other texts as they are.
pub(super) fn without_exponent(text: &str) -> String {
    shifted(text).unwrap_or_else(|| text.to_owned())
}

/// What a number with a unit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Bytes.
    Size,
    /// Bits per second. tc keeps whole bytes per second.
    Rate,
}

/// Returns a number with decimals as the whole number of bytes, or of bit/s that are whole bytes per second,
/// to which tc rounds it down (`get_size` and `get_rate64` in tc_util.c). `None` if there is nothing to
/// round.
pub(super) fn truncated(text: &str, quantity: Quantity) -> Option<String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.')?;
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    // A plain number with decimals counts something else.
    if unit.is_empty() || whole.len() + fraction.len() == 0 || whole.len() > 12 || !is_number(fraction) {
        return None;
    }
    let fraction = fraction.get(..fraction.len().min(15))?;
    // In bytes, or in bytes per second, times 8.
    let eighths = match quantity {
        Quantity::Size => size_in_bits(unit)?,
        Quantity::Rate => rate_in_bits(unit)?,
    };
    let digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    let scaled = digits * u128::from(eighths);
    let one = 8 * 10u128.pow(fraction.len() as u32);
    let bytes = scaled / one;
    match quantity {
        _ if scaled.is_multiple_of(one) => None,
        Quantity::Size => Some(bytes.to_string()),
        // A whole number of bit/s stays as it is.
        Quantity::Rate if scaled.is_multiple_of(one / 8) => None,
        Quantity::Rate => Some(format!("{}bit", 8 * bytes)),
    }
}

fn size_in_bits(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 8,
        "k" | "kb" => 8 << 10,
        "m" | "mb" => 8 << 20,
        "g" | "gb" => 8 << 30,
        "kbit" => 1 << 10,
        "mbit" => 1 << 20,
        "gbit" => 1 << 30,
        _ => return None,
    })
}

fn rate_in_bits(unit: &str) -> Option<u64> {
    let lower = unit.to_ascii_lowercase();
    let (prefix, base) = match lower.strip_suffix("bit") {
        Some(prefix) => (prefix, 1),
        None if lower.is_empty() => ("", 1),
        None => (lower.strip_suffix("bps")?, 8),
    };
    Some(
        base * match prefix {
            "" => 1,
            "k" => 1_000,
            "m" => 1_000_000,
            "g" => 1_000_000_000,
            "t" => 1_000_000_000_000,
            "ki" => 1 << 10,
            "mi" => 1 << 20,
            "gi" => 1 << 30,
            "ti" => 1 << 40,
            _ => return None,
        },
    )
}

/// Moves the decimal point of a number by its exponent. Returns `None` if the text has none.
fn shifted(text: &str) -> Option<String> {
    let (mantissa, rest) = text.split_once(['e', 'E'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let sign = rest.strip_prefix('-').map_or("", |_| "-");
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let end = rest
        .find(|digit: char| !digit.is_ascii_digit())
        .unwrap_or(rest.len());
    let (exponent, unit) = rest.split_at(end);
    let exponent: i32 = format!("{sign}{exponent}").parse().ok()?;
    // Beyond these every quantity is too large, or 0.
    if !(-20..=20).contains(&exponent) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let before = "0".repeat(usize::try_from(1 - point).unwrap_or(0));
    let after = "0".repeat(usize::try_from(point - digits.len() as i32).unwrap_or(0));
    let number = format!("{before}{digits}{after}");
    let (whole, fraction) = number.split_at(point.max(1) as usize);
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{whole}{dot}{fraction}{unit}"))
}

/// Reads a time. A plain number is in this unit.
pub(super) fn time(word: &Word, unit: &str) -> Spanned<Given> {
    let text = without_exponent(word.get_ref());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = match is_plain {
        true => Given::Meant(format!("{text}{unit}")),
        false => Given::Word(text),
    };
    Spanned::new(word.span(), value)
}

/// Reads a number of packets: `3p`, `3packets`.
fn packets(text: &str) -> Option<u32> {
    let end = text.find(|digit: char| !digit.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    match unit {
        "p" | "pkt" | "pkts" | "packet" | "packets" => number.parse().ok(),
        _ => None,
    }
}

/// Reads a service curve, and returns it in Fairgate's notation.
fn curve(words: &mut slice::Iter<'_, Word>) -> Option<Spanned<Given>> {
    let mut parts = [None; 3];
    let mut is_of_packet = false;
    while let Some(name) = words.as_slice().first() {
        let name = full(name.get_ref(), &["m1", "d", "m2", "umax", "dmax", "rate"]).unwrap_or_default();
        let part = match name {
            "m1" | "umax" => 0,
            "d" | "dmax" => 1,
            "m2" | "rate" => 2,
            _ => break,
        };
        is_of_packet |= matches!(name, "umax" | "dmax" | "rate");
        words.next();
        parts[part] = Some(words.next()?);
    }
    let [first, time, last] = parts;
    let last = last?;
    let whole = |word: &Word, quantity: Quantity| {
        let text = without_exponent(word.get_ref());
        truncated(&text, quantity).unwrap_or(text)
    };
    let with_unit = |word: &Word, unit: &str| {
        let text = match unit {
            "bit" => whole(word, Quantity::Rate),
            "b" => whole(word, Quantity::Size),
            _ => without_exponent(word.get_ref()),
        };
        match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text + unit,
            false => text,
        }
    };
    let rate = whole(last, Quantity::Rate);
    let written = match (first, time) {
        (None, None) => rate,
        _ => {
            let none = if is_of_packet { "0b" } else { "0bit" };
            let first = first.map_or(none.to_owned(), |first| with_unit(first, &none[1..]));
            let time = time.map_or("0us".to_owned(), |time| with_unit(time, "us"));
            format!("{first}:{time}:{rate}")
        }
    };
    Some(Spanned::new(last.span(), Given::Meant(written)))
}

/// Converts a decimal such as `0.16` to 256ths, rounded down like tc. Returns `None` if it is not a decimal
/// number.
fn in_256ths(decimal: &str) -> Option<String> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let fraction = fraction.get(..fraction.len().min(9))?;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    let parts = u128::from(digits) * 256 / 10u128.pow(fraction.len() as u32);
    Some(parts.to_string())
}

/// Returns numbers as one value, if there are any.
fn list(numbers: Vec<Spanned<Given>>) -> Option<Spanned<Given>> {
    let whole = numbers.first()?.span().start..numbers.last()?.span().end;
    Some(Spanned::new(whole, Given::List(numbers)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of iproute2 6.1.
    #[test]
    fn numbers_are_rounded_down_to_whole_bytes() {
        let size = |text| truncated(text, Quantity::Size);
        assert_eq!(size(".05mbit"), Some("6553".to_owned()));
        assert_eq!(size("2.3k"), Some("2355".to_owned()));
        for exact in ["1.5k", "1514", "1.5kb", "x.5k", "1.5furlongs", "."] {
            assert_eq!(size(exact), None, "{exact}");
        }
        let rate = |text| truncated(text, Quantity::Rate);
        assert_eq!(rate("0.3333333mbit"), Some("333328bit".to_owned()));
        assert_eq!(rate("1.5mbit"), None);
        assert_eq!(rate("0.0000001bit"), Some("0bit".to_owned()));
    }
}
