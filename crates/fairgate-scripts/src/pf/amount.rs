//! Bandwidths in pf's notation, in bit/s.

/// A bandwidth, or a part of that of the queue above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bandwidth {
    /// Bit/s.
    Rate(u64),
    /// Hundredths of a percent.
    Part(u32),
}

impl Bandwidth {
    /// Reads `2Mb`, `1.5Mb`, `600Kb`, `100000` or `18%`; OpenBSD writes `2M`.
    pub(super) fn read(text: &str) -> Option<Bandwidth> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + fraction.len() == 0 || digits.len() > 15 || fraction.contains('.') {
            return None;
        }
        let number: u128 = format!("0{whole}{fraction}").parse().ok()?;
        let one = 10u128.pow(fraction.len() as u32);
        let scaled = |factor: u128| u64::try_from(number * factor / one).ok();
        match unit.to_ascii_lowercase().as_str() {
            "%" => {
                let part = scaled(100)?;
                (part <= 10_000).then_some(Bandwidth::Part(part as u32))
            }
            "" | "b" => scaled(1).map(Bandwidth::Rate),
            "k" | "kb" => scaled(1_000).map(Bandwidth::Rate),
            "m" | "mb" => scaled(1_000_000).map(Bandwidth::Rate),
            "g" | "gb" => scaled(1_000_000_000).map(Bandwidth::Rate),
            _ => None,
        }
    }

    /// Returns the rate, where `whole` is that of the queue above.
    pub(super) fn of(self, whole: u64) -> u64 {
        match self {
            Bandwidth::Rate(rate) => rate,
            Bandwidth::Part(part) => (u128::from(whole) * u128::from(part) / 10_000) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_pf() {
        for (text, rate) in [
            ("2Mb", 2_000_000),
            ("600Kb", 600_000),
            ("1.5M", 1_500_000),
            ("64000", 64_000),
        ] {
            assert_eq!(Bandwidth::read(text), Some(Bandwidth::Rate(rate)), "{text}");
        }
        assert_eq!(
            Bandwidth::read("18%").map(|part| part.of(2_000_000)),
            Some(360_000)
        );
        for text in ["", "Mb", "101%", "2Mbit", "1.2.3Mb"] {
            assert_eq!(Bandwidth::read(text), None, "{text}");
        }
    }
}
