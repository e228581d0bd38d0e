//! Fixed-point probabilities, for RED, PIE and similar disciplines.

use core::fmt;

/// A probability in units of 2^-32, as Linux's `max_P`. The resolution is one packet in four thousand
/// million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

impl Probability {
    /// A probability of 1.
    pub const ONE: Probability = Probability(1 << 32);
    /// A probability of 0.
    pub const ZERO: Probability = Probability(0);

    /// Returns `parts` times 2^-32, but at most 1.
    pub const fn from_parts(parts: u64) -> Probability {
        if parts > Probability::ONE.0 {
            return Probability::ONE;
        }
        Probability(parts)
    }

    /// Returns `of_whole / whole`, but at most 1. It is rounded down, as tc converts a decimal number.
    ///
    /// ```
    /// use fairgate::Probability;
    /// assert_eq!(Probability::ratio(1, 50).parts(), (0.02 * 4294967296.0) as u64);
    /// ```
    pub const fn ratio(of_whole: u32, whole: u32) -> Probability {
        Probability::from_parts(((of_whole as u64) << 32) / whole as u64)
    }

    /// Returns the probability in units of 2^-32.
    pub const fn parts(self) -> u64 {
        self.0
    }
}

/// Prints the shortest decimal that is rounded down to this probability: `0.02`.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = u128::from(self.0);
        let mut scale = 1u128;
        // Eleven decimals distinguish any two values, so the loop ends there at the latest.
        for places in 0.. {
            let decimal = (parts * scale).div_ceil(1 << 32);
            if (decimal << 32) / scale == parts {
                let (whole, rest) = (decimal / scale, decimal % scale);
                return match places {
                    0 => write!(f, "{whole}"),
                    _ => write!(f, "{whole}.{rest:0places$}"),
                };
            }
            scale *= 10;
        }
        unreachable!("the loop ends by a return")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn display_is_the_shortest_decimal_with_the_same_value() {
        assert_eq!(Probability::ratio(1, 50).to_string(), "0.02");
        assert_eq!(Probability::ratio(1, 20_000).to_string(), "0.00005");
        assert_eq!(Probability::ONE.to_string(), "1");
        assert_eq!(Probability::ZERO.to_string(), "0");
        assert_eq!(Probability::from_parts(u64::MAX), Probability::ONE);
    }

    proptest! {
        #[test]
        fn the_displayed_decimal_has_the_same_value(parts in 0..=1u64 << 32) {
            let shown = Probability::from_parts(parts).to_string();
            let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
            let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
            let scale = 10u128.pow(fraction.len() as u32);
            prop_assert_eq!((digits << 32) / scale, u128::from(parts));
        }
    }
}
