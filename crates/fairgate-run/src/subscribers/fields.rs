//! Reads single values: rates, prefixes, names.

use std::net::IpAddr;
use std::ops::Range;

use fairgate::classify::Prefix;
use fairgate_config::units::parse_rate;

use super::texts::Mistake;

/// The least rate that a subscriber or a node may have, bit/s: a full frame takes 1.2 s, and cake takes no
/// less than 8192. It is also what is guaranteed to a class if nothing else is: all the rest is shared.
pub(crate) const LEAST: u64 = 10_000;

/// The longest identifier and the longest name, in characters.
const LONGEST: usize = 200;

/// A value as it is written, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

impl Raw {
    pub(crate) fn new(text: impl Into<String>, span: Range<usize>) -> Raw {
        Raw {
            text: text.into(),
            span,
        }
    }

    /// Reads a rate in tc's words.
    pub(crate) fn rate(&self, key: &str) -> Result<u64, Mistake> {
        let rate = parse_rate(&self.text).map_err(|error| {
            self.wrong(
                format!("`{key}`: {}", error.message),
                "expected a rate",
                error.remedy,
            )
        })?;
        self.in_range(key, rate.bits_per_second())
    }

    /// Reads a rate in Mbit/s with decimals, as LibreQoS writes it.
    pub(crate) fn mbit(&self, key: &str) -> Result<u64, Mistake> {
        let help = "write it in Mbit/s, like 25 or 2.5";
        let wrong = || {
            self.wrong(
                format!("`{key}` is `{}`", self.text),
                "expected a number of Mbit/s",
                help,
            )
        };
        let (whole, decimals) = self.text.split_once('.').unwrap_or((&self.text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(decimals) {
            return Err(wrong());
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > 6 {
            return Err(self.wrong(
                format!("`{key}` is `{}`, which is no whole number of bit/s", self.text),
                "at most six decimals",
                help,
            ));
        }
        let millionths: u64 = format!("{decimals:0<6}").parse().map_err(|_| wrong())?;
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let bits = whole
            .checked_mul(1_000_000)
            .and_then(|bits| bits.checked_add(millionths));
        self.in_range(key, bits.ok_or_else(wrong)?)
    }

    fn in_range(&self, key: &str, bits: u64) -> Result<u64, Mistake> {
        match bits >= LEAST {
            true => Ok(bits),
            false => Err(self.wrong(
                format!("`{key}` is {bits} bit/s, but must be at least {LEAST}"),
                "too low",
                match self
                    .text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
                {
                    true => format!("a number alone is bit/s; for Mbit/s write {}mbit", self.text),
                    false => "raise it; who is to get nothing is left out of the list".to_owned(),
                },
            )),
        }
    }

    /// Reads an address or a prefix.
    pub(crate) fn prefix(&self) -> Result<Prefix, Mistake> {
        let example = "write an address like 192.0.2.1 or a prefix like 2001:db8:0:100::/56";
        let (address_text, length) = match self.text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (self.text.as_str(), None),
        };
        let expected = "expected an address or a prefix";
        let address: IpAddr = address_text
            .parse()
            .map_err(|_| self.wrong(format!("`{}` is not an address", self.text), expected, example))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length.map(str::parse::<u8>) {
            None => longest,
            Some(Ok(length)) if length <= longest => length,
            Some(_) => {
                let message = format!(
                    "`{}` is not a prefix: its length must be 0 to {longest}",
                    self.text
                );
                return Err(self.wrong(message, expected, example));
            }
        };
        let prefix =
            Prefix::new(address, length).map_err(|error| self.wrong(error.to_string(), expected, example))?;
        match prefix.address() == address {
            true => Ok(prefix),
            false => Err(self.wrong(
                format!("`{}` has bits set after the first {length}", self.text),
                "not the first address of the prefix",
                format!("write {prefix}, or correct the length"),
            )),
        }
    }

    /// Reads a list of prefixes between spaces, commas or semicolons. Its text is in the file as it is here.
    pub(crate) fn parts(&self) -> Vec<Raw> {
        let is_gap = |character: char| character.is_whitespace() || matches!(character, ',' | ';');
        let start_of = |part: &str| part.as_ptr() as usize - self.text.as_ptr() as usize;
        let parts = self.text.split(is_gap).filter(|part| !part.is_empty());
        let place = |part: &str| {
            let start = self.span.start + start_of(part);
            Raw::new(part, start..start + part.len())
        };
        parts.map(place).collect()
    }

    /// Checks an identifier or a name.
    pub(crate) fn name(&self, key: &str) -> Result<String, Mistake> {
        let help = format!("write at most {LONGEST} characters, without control characters");
        if self.text.chars().count() > LONGEST {
            let message = format!("`{key}` has more than {LONGEST} characters");
            return Err(self.wrong(message, "too long", help));
        }
        match self.text.chars().any(char::is_control) {
            true => Err(self.wrong(format!("`{key}` has a control character"), "not text", help)),
            false => Ok(self.text.clone()),
        }
    }

    pub(crate) fn wrong(
        &self,
        message: impl Into<String>,
        label: &'static str,
        help: impl Into<String>,
    ) -> Mistake {
        Mistake::new(self.span.clone(), message, label, help)
    }
}

/// Writes a rate in Mbit/s with decimals, as [`Raw::mbit`] reads it.
pub(crate) fn mbit_text(bits: u64) -> String {
    let (whole, millionths) = (bits / 1_000_000, bits % 1_000_000);
    let text = format!("{whole}.{millionths:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::new(text, 10..10 + text.len())
    }

    #[test]
    fn megabits_have_up_to_six_decimals() {
        let cases = [
            ("25", Some(25_000_000)),
            ("2.5", Some(2_500_000)),
            ("0.50", Some(500_000)),
            ("0.0100000", Some(10_000)),
            ("1.2345678", None),
            ("0", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("99999999999999999999", None),
            ("18446744073709.551616", None),
        ];
        for (text, expected) in cases {
            assert_eq!(raw(text).mbit("rate").ok(), expected, "{text}");
        }
        for (bits, text) in [
            (25_000_000, "25"),
            (2_500_000, "2.5"),
            (10_000, "0.01"),
            (10_000_001, "10.000001"),
        ] {
            assert_eq!(mbit_text(bits), text);
            assert_eq!(raw(text).mbit("rate").unwrap(), bits);
        }
    }

    #[test]
    fn parts_of_a_list_have_their_places() {
        let parts = raw(" 10.0.0.1, 10.0.0.2;fd00::/56").parts();
        let expected = [
            Raw::new("10.0.0.1", 11..19),
            Raw::new("10.0.0.2", 21..29),
            Raw::new("fd00::/56", 30..39),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_prefix_begins_at_its_first_address() {
        assert_eq!(raw("10.0.0.0/24").prefix().unwrap().length(), 24);
        assert!(
            raw("10.0.0.1/24")
                .prefix()
                .unwrap_err()
                .help
                .contains("10.0.0.0/24")
        );
        for text in ["10.0.0.0/33", "10.0.0", "fd00::/129", "10.0.0.0/x", ""] {
            assert!(raw(text).prefix().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_is_in_the_words_of_tc() {
        assert_eq!(raw("100mbit").rate("down").unwrap(), 100_000_000);
        for text in ["", "fast", "1kbit", "-3mbit", "0"] {
            assert!(raw(text).rate("down").is_err(), "{text}");
        }
    }
}
