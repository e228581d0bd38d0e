//! Rates, sizes and durations in tc's language: `20mbit`, `64kb`, `5ms`.
//!
//! Numbers can have decimals (`2.5mbit`) and are converted exactly. A value that is not a whole number of
//! bit/s, bytes or nanoseconds is an error; nothing is rounded. Units are case-insensitive. As in tc, `kbit`
//! is 1000 bit/s, `kibit` is 1024 bit/s, `kbps` is 1000 *bytes* per second, and `kb` in a size is 1024 bytes.
//! Deviation from tc: a duration needs a unit (tc reads a plain number as microseconds, which few people
//! expect).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use thiserror::Error;

use crate::probability::Probability;
use crate::rate::Rate;
use crate::service_curve::ServiceCurve;

/// The error for a quantity that can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}; {remedy}")]
pub struct UnitError {
    /// What is wrong, and the rule that is broken.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
    /// The range of bytes of the text that is wrong.
    pub span: Range<usize>,
}

/// A unit: its names, and its size in the base unit.
struct Unit {
    names: &'static [&'static str],
    factor: u64,
}

const fn unit(names: &'static [&'static str], factor: u64) -> Unit {
    Unit { names, factor }
}

/// The base unit is bit/s. It is also used for a number without a unit.
const RATES: &[Unit] = &[
    unit(&["bit"], 1),
    unit(&["kbit"], 1_000),
    unit(&["mbit"], 1_000_000),
    unit(&["gbit"], 1_000_000_000),
    unit(&["tbit"], 1_000_000_000_000),
    unit(&["kibit"], 1 << 10),
    unit(&["mibit"], 1 << 20),
    unit(&["gibit"], 1 << 30),
    unit(&["tibit"], 1 << 40),
    unit(&["bps"], 8),
    unit(&["kbps"], 8_000),
    unit(&["mbps"], 8_000_000),
    unit(&["gbps"], 8_000_000_000),
    unit(&["tbps"], 8_000_000_000_000),
    unit(&["kibps"], 8 << 10),
    unit(&["mibps"], 8 << 20),
    unit(&["gibps"], 8 << 30),
    unit(&["tibps"], 8 << 40),
];

/// The base unit is bytes.
const SIZES: &[Unit] = &[
    unit(&["b"], 1),
    unit(&["kb", "k"], 1 << 10),
    unit(&["mb", "m"], 1 << 20),
    unit(&["gb", "g"], 1 << 30),
    unit(&["kbit"], (1 << 10) / 8),
    unit(&["mbit"], (1 << 20) / 8),
    unit(&["gbit"], (1 << 30) / 8),
];

/// The base unit is nanoseconds.
const DURATIONS: &[Unit] = &[
    unit(&["ns", "nsec", "nsecs"], 1),
    unit(&["us", "usec", "usecs"], 1_000),
    unit(&["ms", "msec", "msecs"], 1_000_000),
    unit(&["s", "sec", "secs"], 1_000_000_000),
    // These units are not in tc. Experiments last minutes, and idle times last hours.
    unit(&["min"], 60_000_000_000),
    unit(&["h"], 3_600_000_000_000),
];

/// A kind of quantity: its units, and the words for error messages.
struct Quantity {
    name: &'static str,
    base: &'static str,
    units: &'static [Unit],
    /// The units that people usually write.
    usual: &'static str,
    example: &'static str,
    needs_unit: bool,
}

const RATE: Quantity = Quantity {
    name: "rate",
    base: "bit/s",
    units: RATES,
    usual: "bit, kbit, mbit, gbit; for bytes per second bps, kbps, mbps, gbps",
    example: "20mbit, 500kbit or 2.5mbps (bytes per second)",
    needs_unit: false,
};

const SIZE: Quantity = Quantity {
    name: "size",
    base: "bytes",
    units: SIZES,
    usual: "b, kb, mb, gb",
    example: "1514b, 64kb or 1mb",
    needs_unit: false,
};

const DURATION: Quantity = Quantity {
    name: "duration",
    base: "ns",
    units: DURATIONS,
    usual: "ns, us, ms, s, min, h",
    example: "5ms, 100us or 1s",
    needs_unit: true,
};

impl Quantity {
    fn error(&self, span: Range<usize>, message: String) -> UnitError {
        UnitError {
            message,
            remedy: format!("write a {} like {}", self.name, self.example),
            span,
        }
    }

    /// Parses `number[unit]` into the base unit.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let whole = 0..text.len();
        let digits_end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits_end);
        let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
        if integer.is_empty() && fraction.is_empty() {
            let message = if text.starts_with('-') {
                format!("a {} can't be negative", self.name)
            } else {
                format!("`{text}` is not a {}: it does not start with a number", self.name)
            };
            return Err(self.error(whole, message));
        }
        if let Some(second) = fraction.find('.') {
            let at = integer.len() + 1 + second;
            return Err(self.error(at..at + 1, format!("`{number}` has more than one decimal point")));
        }
        let factor = self.factor(number, suffix)?;
        let too_large = || {
            self.error(
                whole.clone(),
                format!("`{text}` is too large for a {}", self.name),
            )
        };
        let fraction = fraction.trim_end_matches('0');
        let digits: u128 = if integer.len() + fraction.len() > 30 {
            return Err(too_large());
        } else {
            format!("0{integer}{fraction}")
                .parse()
                .expect("up to 31 decimal digits fit 128 bits")
        };
        let scaled = digits.checked_mul(u128::from(factor)).ok_or_else(too_large)?;
        let divisor = 10u128.pow(fraction.len() as u32);
        if scaled % divisor != 0 {
            return Err(self.error(whole, format!("`{text}` is not a whole number of {}", self.base)));
        }
        u64::try_from(scaled / divisor).map_err(|_| too_large())
    }

    fn factor(&self, number: &str, suffix: &str) -> Result<u64, UnitError> {
        if suffix.is_empty() {
            let zero = number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            if self.needs_unit && !zero {
                let message = format!("`{number}` is a {} without a unit", self.name);
                return Err(self.error(0..number.len(), message));
            }
            return Ok(1);
        }
        self.find(suffix).ok_or_else(|| UnitError {
            message: format!("`{suffix}` is not a unit of a {}", self.name),
            remedy: match self.find(suffix.trim()) {
                Some(_) => format!("write it without a space: {number}{}", suffix.trim()),
                None => format!("units are {}", self.usual),
            },
            span: number.len()..number.len() + suffix.len(),
        })
    }

    /// Returns the size of the unit with the name `name`, in the base unit.
    fn find(&self, name: &str) -> Option<u64> {
        let lower = name.to_ascii_lowercase();
        let unit = self
            .units
            .iter()
            .find(|unit| unit.names.contains(&lower.as_str()));
        unit.map(|unit| unit.factor)
    }
}

/// Parses a rate: `20mbit`, `2.5mbps` (bytes per second), `1000000` (bit/s). A rate of 0 is rejected.
///
/// ```
/// use fairgate::registry::units::parse_rate;
/// assert_eq!(parse_rate("20mbit")?, fairgate::Rate::mbit(20));
/// assert_eq!(parse_rate("2.5mbps")?, fairgate::Rate::mbit(20));
/// assert!(parse_rate("0").unwrap_err().to_string().contains("above 0"));
/// # Ok::<(), fairgate::registry::UnitError>(())
/// ```
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    let bits = RATE.parse(text)?;
    Rate::from_bits_per_second(bits).map_err(|_| UnitError {
        message: "a rate must be above 0, because nothing is sent at 0 bit/s".to_owned(),
        remedy: "write the rate of the link, or remove the shaper".to_owned(),
        span: 0..text.len(),
    })
}

/// Parses a size in bytes: `64kb` (65536), `1mb`, `1514b`, `1514`.
///
/// ```
/// assert_eq!(fairgate::registry::units::parse_size("64kb")?, 65_536);
/// # Ok::<(), fairgate::registry::UnitError>(())
/// ```
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    SIZE.parse(text)
}

/// Parses a duration: `5ms`, `100us`, `1.5s`. A unit is required, except for 0.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(fairgate::registry::units::parse_duration("5ms")?, Duration::from_millis(5));
/// # Ok::<(), fairgate::registry::UnitError>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// Parses a probability: `0.02`, at most `1`. It is rounded down to a multiple of 2^-32, as in tc.
///
/// ```
/// use fairgate::Probability;
/// use fairgate::registry::units::parse_probability;
/// assert_eq!(parse_probability("0.02")?, Probability::ratio(1, 50));
/// assert!(parse_probability("2").is_err());
/// # Ok::<(), fairgate::registry::UnitError>(())
/// ```
pub fn parse_probability(text: &str) -> Result<Probability, UnitError> {
    let wrong = |message: String| UnitError {
        message,
        remedy: "write a probability like 0.02; it is at most 1".to_owned(),
        span: 0..text.len(),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Err(wrong(format!("`{text}` is not a probability")));
    }
    // Further digits are below 2^-32, and the value is rounded down.
    let fraction = &fraction[..fraction.len().min(20)];
    let digits = format!("0{whole}{fraction}");
    let scale = 10u128.pow(fraction.len() as u32);
    match digits.parse::<u128>() {
        Ok(digits) if digits <= scale => Ok(Probability::from_parts(((digits << 32) / scale) as u64)),
        _ => Err(wrong(format!("`{text}` is above 1"))),
    }
}

/// Formats `base` in the largest unit among `names` that gives a whole number.
fn format(base: u64, units: &[Unit], names: &[&'static str]) -> String {
    let (name, factor) = names
        .iter()
        .map(|name| {
            let unit = units.iter().find(|unit| unit.names[0] == *name);
            (name, unit.expect("the names are from the table").factor)
        })
        .find(|(_, factor)| base != 0 && base.is_multiple_of(*factor))
        .unwrap_or((names.last().expect("there are names"), 1));
    format!("{}{name}", base / factor)
}

/// Formats a rate so that [`parse_rate`] returns the same rate: `20mbit`.
pub fn format_rate(rate: Rate) -> String {
    format(rate.bits_per_second(), RATES, &["gbit", "mbit", "kbit", "bit"])
}

/// Formats an amount of memory to a tenth, for people: `2.3 GiB`. It can't be parsed again.
pub fn format_memory(bytes: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Formats a size so that [`parse_size`] returns the same size: `64kb`.
pub fn format_size(bytes: u64) -> String {
    format(bytes, SIZES, &["gb", "mb", "kb", "b"])
}

/// Formats a duration so that [`parse_duration`] returns the same duration: `5ms`. The longest duration is
/// 584 years.
pub fn format_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    format(nanos, DURATIONS, &["s", "ms", "us", "ns"])
}

/// Parses a service curve into three numbers: bit/s, nanoseconds for this rate, and bit/s after that. Users
/// write all three, or only the last, or a packet's size instead of the first. The packet is then sent within
/// the time.
pub fn parse_curve(text: &str) -> Result<Vec<u64>, UnitError> {
    let mut start = 0;
    let parts: Vec<(usize, &str)> = text
        .split(':')
        .map(|part| {
            let at = start;
            start += part.len() + 1;
            (at, part)
        })
        .collect();
    let moved = |at: usize| {
        move |error: UnitError| UnitError {
            span: error.span.start + at..error.span.end + at,
            ..error
        }
    };
    let slope = |&(at, part): &(usize, &str)| match part {
        "0" | "0bit" => Ok(0),
        part => parse_rate(part).map(Rate::bits_per_second).map_err(moved(at)),
    };
    let [first, time, last] = parts.as_slice() else {
        return match parts.as_slice() {
            [single] => Ok(vec![0, 0, slope(single)?]),
            _ => Err(UnitError {
                span: 0..text.len(),
                message: format!("`{text}` has {} parts, not 1 or 3", parts.len()),
                remedy: String::new(),
            }),
        };
    };
    let duration = parse_duration(time.1).map_err(moved(time.0))?;
    let m2 = slope(last)?;
    let curve = match (slope(first), parse_size(first.1)) {
        (Ok(m1), _) => ServiceCurve { m1, d: duration, m2 },
        (Err(_), Ok(packet)) => ServiceCurve::of_packet(packet, duration, m2),
        (Err(error), Err(_)) => return Err(error),
    };
    // The slope of a piece without length has no effect.
    let m1 = if curve.d.is_zero() { 0 } else { curve.m1 };
    Ok(vec![m1, curve.d.as_nanos() as u64, curve.m2])
}

/// Formats a service curve as it is parsed.
pub fn format_curve(curve: &[u64]) -> String {
    let slope = |bits: u64| Rate::from_bits_per_second(bits).map_or("0bit".to_owned(), format_rate);
    match curve {
        [_, 0, m2] => slope(*m2),
        [m1, d, m2] => format!(
            "{}:{}:{}",
            slope(*m1),
            format_duration(Duration::from_nanos(*d)),
            slope(*m2)
        ),
        _ => format!("{curve:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_units_are_the_same_as_in_tc() {
        let rate = |text| parse_rate(text).unwrap().bits_per_second();
        assert_eq!(rate("500kbit"), 500_000);
        assert_eq!(rate("1Gbit"), 1_000_000_000);
        assert_eq!(rate("1kibit"), 1024);
        assert_eq!(rate("1kbps"), 8000);
        assert_eq!(rate("64"), 64);
        assert_eq!(parse_size("1k").unwrap(), 1024);
        assert_eq!(parse_size("1.5mb").unwrap(), 1_572_864);
        assert_eq!(parse_size("8kbit").unwrap(), 1024);
        assert_eq!(parse_duration("0.3us").unwrap(), Duration::from_nanos(300));
        assert_eq!(parse_duration("2secs").unwrap(), Duration::from_secs(2));
        assert_eq!(parse_duration("0").unwrap(), Duration::ZERO);
        assert_eq!(parse_duration("1.5min").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("2h").unwrap(), Duration::from_secs(7200));
    }

    #[test]
    fn probabilities_are_rounded_down_to_parts() {
        let parts = |text| parse_probability(text).unwrap().parts();
        assert_eq!(parts("0.00005"), 214_748);
        assert_eq!(parts("1.0"), 1 << 32);
        assert_eq!(parts(".5"), 1 << 31);
        assert_eq!(parts("0.000000000000000000000000000000001"), 0);
        for wrong in [
            "",
            ".",
            "-0.1",
            "1e-3",
            "0.1.2",
            "1.01",
            "99999999999999999999999999999999999999999",
        ] {
            let error = parse_probability(wrong).unwrap_err();
            assert!(error.remedy.contains("0.02"), "{wrong}: {error}");
        }
    }

    #[test]
    fn an_error_has_a_location_and_a_remedy() {
        let error = parse_rate("20mbt").unwrap_err();
        assert_eq!(error.span, 2..5);
        assert_eq!(error.message, "`mbt` is not a unit of a rate");
        assert!(error.remedy.contains("mbit"), "{}", error.remedy);

        let error = parse_rate("20 mbit").unwrap_err();
        assert_eq!(error.remedy, "write it without a space: 20mbit");

        let error = parse_duration("5").unwrap_err();
        assert_eq!(error.message, "`5` is a duration without a unit");
        assert_eq!(error.remedy, "write a duration like 5ms, 100us or 1s");

        assert_eq!(
            parse_size("1.3kb").unwrap_err().message,
            "`1.3kb` is not a whole number of bytes"
        );
        assert_eq!(parse_size("1.2.3kb").unwrap_err().span, 3..4);
        assert_eq!(parse_size("-1").unwrap_err().message, "a size can't be negative");
        assert!(
            parse_size("99999999999gb")
                .unwrap_err()
                .message
                .contains("too large")
        );
        assert!(
            parse_rate("")
                .unwrap_err()
                .message
                .contains("does not start with a number")
        );
    }

    proptest! {
        #[test]
        fn a_formatted_value_is_parsed_to_the_same(base in any::<u64>(), zeros in 0u32..10) {
            let base = base - base % 10u64.pow(zeros);
            prop_assert_eq!(parse_size(&format_size(base)).unwrap(), base);
            let duration = Duration::from_nanos(base);
            prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
            let probability = Probability::from_parts(base >> 31);
            prop_assert_eq!(parse_probability(&probability.to_string()).unwrap(), probability);
            if let Ok(rate) = Rate::from_bits_per_second(base) {
                prop_assert_eq!(parse_rate(&format_rate(rate)).unwrap(), rate);
            }
        }

        #[test]
        fn any_text_is_parsed_or_rejected_with_a_valid_span(text in "\\PC{0,12}") {
            for error in [
                parse_size(&text).err(),
                parse_rate(&text).err(),
                parse_duration(&text).err(),
                parse_probability(&text).err(),
            ].into_iter().flatten() {
                let part = text.get(error.span.clone());
                prop_assert!(part.is_some(), "{:?} is not part of {text:?}", error.span);
            }
        }
    }
}
