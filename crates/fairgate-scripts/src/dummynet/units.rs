//! Parses quantities in ipfw's notation. ipfw ignores text that it does not understand: to it, `2.5Mbit/s` is
//! 2 bit/s. Here such text is an error.

use std::ops::Range;

/// A mistake in a quantity, and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The part of the word that is wrong.
    pub(super) part: Range<usize>,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// A queue's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Slots(u64),
    Bytes(u64),
}

/// Splits a word into the number at its beginning and the rest.
fn split<'w>(word: &'w str, what: &str, help: &'static str) -> Result<(u64, &'w str), Wrong> {
    let (digits, rest, radix) = match word.strip_prefix("0x") {
        Some(hexadecimal) => {
            let end = hexadecimal.find(|digit: char| !digit.is_ascii_hexdigit());
            let (digits, rest) = hexadecimal.split_at(end.unwrap_or(hexadecimal.len()));
            (digits, rest, 16)
        }
        None => {
            let end = word.find(|digit: char| !digit.is_ascii_digit());
            let (digits, rest) = word.split_at(end.unwrap_or(word.len()));
            (digits, rest, 10)
        }
    };
    let wrong = |message: String| Wrong {
        part: 0..word.len(),
        message,
        help,
    };
    if rest.starts_with('.') {
        return Err(wrong(format!("`{word}` has decimals, which ipfw does not read")));
    }
    if digits.is_empty() {
        return Err(wrong(format!("`{word}` is not {what}")));
    }
    u64::from_str_radix(digits, radix)
        .map(|number| (number, rest))
        .map_err(|_| wrong(format!("`{word}` is too large")))
}

fn unit(word: &str, rest: &str, what: &str, help: &'static str) -> Wrong {
    Wrong {
        part: word.len() - rest.len()..word.len(),
        message: format!("`{rest}` is not a unit of {what}"),
        help,
    }
}

/// The largest bandwidth, in bit/s: dummynet stores 32 bits.
const LARGEST_BANDWIDTH: u64 = u32::MAX as u64;

/// Parses a bandwidth in bit/s: `10Mbit/s`, `64KByte/s`, `9600`. 0 means no limit. K is 1000.
pub(super) fn bandwidth(word: &str) -> Result<u64, Wrong> {
    const HELP: &str =
        "write a whole number and its unit: 2500Kbit/s, 10Mbit/s, 64KByte/s; K is 1000, and 0 is no limit";
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err(Wrong {
            part: 0..word.len(),
            message: format!("`{word}` as a clock can't be carried over"),
            help: HELP,
        });
    }
    let (number, rest) = split(word, "a bandwidth", HELP)?;
    let (factor, of_unit) = match rest.chars().next() {
        Some('k' | 'K') => (1_000, &rest[1..]),
        Some('m' | 'M') => (1_000_000, &rest[1..]),
        Some('g' | 'G') => (1_000_000_000, &rest[1..]),
        _ => (1, rest),
    };
    let bits = match of_unit.strip_suffix("/s").unwrap_or(of_unit) {
        "" | "b" | "bit" | "bits" | "Bit" | "Bits" => 1,
        "B" | "byte" | "bytes" | "Byte" | "Bytes" => 8,
        "bps" => 1,
        _ => return Err(unit(word, rest, "a bandwidth", HELP)),
    };
    number
        .checked_mul(factor * bits)
        .filter(|bits| *bits <= LARGEST_BANDWIDTH)
        .ok_or(Wrong {
            part: 0..word.len(),
            message: format!("`{word}` is above 4294967295 bit/s, dummynet's maximum"),
            help: HELP,
        })
}

/// Parses a queue's size: `50` slots, `100KBytes`, `1500B`. K is 1024.
pub(super) fn queue(word: &str) -> Result<Size, Wrong> {
    const HELP: &str = "write a number of packets, like 50, or of bytes, like 100KBytes or 15000B; K is 1024";
    let (number, rest) = split(word, "a queue's size", HELP)?;
    let size = match rest {
        "" => Size::Slots(number),
        "B" | "bytes" | "Bytes" => Size::Bytes(number),
        "k" | "K" | "KB" | "Kb" | "kB" | "kb" | "KBytes" | "Kbytes" | "kbytes" | "kBytes" | "KByte"
        | "Kbyte" => Size::Bytes(number.saturating_mul(1024)),
        _ => return Err(unit(word, rest, "a queue's size", HELP)),
    };
    match size {
        Size::Slots(1..=0xffff_ffff) | Size::Bytes(1..=0xffff_ffff) => Ok(size),
        _ => Err(Wrong {
            part: 0..word.len(),
            message: format!("a queue of `{word}` can't hold any packet, or is too large"),
            help: HELP,
        }),
    }
}

/// Parses a burst in bytes: `15000`, `15K`. K is 1024, M is 1024 K, and so on.
pub(super) fn burst(word: &str) -> Result<u64, Wrong> {
    const HELP: &str = "write a number of bytes, like 15000 or 15K; K is 1024";
    let (number, rest) = split(word, "a burst", HELP)?;
    let shift = match rest.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return Err(unit(word, rest, "a burst", HELP)),
    };
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes <= u32::MAX.into())
        .ok_or(Wrong {
            part: 0..word.len(),
            message: format!("a burst of `{word}` is too large"),
            help: HELP,
        })
}

/// Parses a time, `5`, `5ms`, `20us`, `1s`, and returns it in Fairgate's notation. A plain number is
/// milliseconds.
pub(super) fn time(word: &str) -> Result<String, Wrong> {
    const HELP: &str = "write a whole number of milliseconds, like 5, or with a unit: 5ms, 500us, 1s";
    let (number, rest) = split(word, "a time", HELP)?;
    match rest {
        "" => Ok(format!("{number}ms")),
        "us" | "ms" | "s" => Ok(format!("{number}{rest}")),
        _ => Err(unit(word, rest, "a time", HELP)),
    }
}

/// Parses a plain number.
pub(super) fn plain(word: &str) -> Result<u64, Wrong> {
    const HELP: &str = "write a plain number";
    match split(word, "a number", HELP)? {
        (number, "") => Ok(number),
        (_, rest) => Err(unit(word, rest, "a plain number", HELP)),
    }
}

/// Parses a decimal number as a fraction: its digits, and a power of ten as the divisor.
pub(super) fn decimal(word: &str) -> Result<(u64, u64), Wrong> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let digits = format!("{whole}{fraction}");
    let is_number =
        !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|digit| digit.is_ascii_digit());
    match digits.parse() {
        Ok(digits) if is_number => Ok((digits, 10u64.pow(fraction.len() as u32))),
        _ => Err(Wrong {
            part: 0..word.len(),
            message: format!("`{word}` is not a number"),
            help: "write a decimal number of at most 15 digits, like 0.125",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_ipfw() {
        assert_eq!(bandwidth("10Mbit/s"), Ok(10_000_000));
        assert_eq!(bandwidth("64KByte/s"), Ok(512_000));
        assert_eq!(bandwidth("300KBytes/s"), Ok(2_400_000));
        assert_eq!(bandwidth("1Gbit/s"), Ok(1_000_000_000));
        assert_eq!(bandwidth("9600"), Ok(9600));
        assert_eq!(bandwidth("2MB/s"), Ok(16_000_000));
        assert_eq!(bandwidth("0"), Ok(0));
        assert_eq!(queue("50"), Ok(Size::Slots(50)));
        assert_eq!(queue("100KBytes"), Ok(Size::Bytes(102_400)));
        assert_eq!(queue("1500B"), Ok(Size::Bytes(1500)));
        assert_eq!(burst("15K"), Ok(15_360));
        assert_eq!(time("5").as_deref(), Ok("5ms"));
        assert_eq!(time("500us").as_deref(), Ok("500us"));
        assert_eq!(decimal("0.125"), Ok((125, 1000)));
        assert_eq!(plain("0x10"), Ok(16));
    }

    #[test]
    fn text_that_ipfw_ignores_is_rejected() {
        for word in ["2.5Mbit/s", "em0", "10Tbit/s", "10Mbyt/s", "5Gbit/s", "", "x"] {
            assert!(!bandwidth(word).unwrap_err().help.is_empty(), "{word}");
        }
        assert_eq!(bandwidth("10Mbot/s").unwrap_err().part, 2..8);
        for word in ["0", "10MBytes", "5.5", "99999999999999999999", "k"] {
            assert!(queue(word).is_err(), "{word}");
        }
        assert!(time("5min").is_err() && time("-5").is_err());
        assert!(decimal("1e-3").is_err() && decimal("0.1.2").is_err() && decimal(".").is_err());
        assert!(burst("9G").is_err() && plain("3x").is_err());
    }
}
