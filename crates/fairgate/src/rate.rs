//! Rates, and transmission times without a division on the packet path.

use core::fmt;

use crate::error::ConfigError;

/// A rate above zero, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Returns a rate of `bits` per second. A rate of 0 is an error, because nothing is sent at 0 bit/s.
    pub fn from_bits_per_second(bits: u64) -> Result<Rate, ConfigError> {
        if bits == 0 {
            return Err(ConfigError::out_of_range(
                "rate",
                "0 bit/s",
                "above 0",
                "remove the shaper, or write the rate of the link",
            ));
        }
        Ok(Rate(bits))
    }

    /// Returns a rate of `mbit` million bits per second.
    ///
    /// # Panics
    /// Panics if `mbit` is 0. Use it for constants in programs and tests, not for user input.
    pub const fn mbit(mbit: u64) -> Rate {
        assert!(mbit > 0, "a rate must be above 0");
        Rate(mbit * 1_000_000)
    }

    /// Returns the rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of `bytes` at this rate, in nanoseconds, rounded up. It is exact and
    /// uses a division.
    pub fn transmission_nanos(self, bytes: u64) -> u64 {
        (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0)) as u64
    }

    /// Returns the form without a division, for the packet path.
    pub fn meter(self) -> RateMeter {
        RateMeter::new(self)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints the rate in the largest unit that gives a whole number, as tc does: `20Mbit`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = [
            (1_000_000_000, "Gbit"),
            (1_000_000, "Mbit"),
            (1_000, "Kbit"),
            (1, "bit"),
        ]
        .into_iter()
        .find(|(unit, _)| self.0.is_multiple_of(*unit))
        .expect("every number is a multiple of 1");
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// Converts bytes to nanoseconds with a multiplication and a shift, as Linux's `psched_ratecfg` does. So a
/// shaper releases a packet at the same nanosecond as the kernel's shaper.
///
/// `nanos(len) = len * mult >> shift`, with the largest 32-bit `mult` for the rate. The relative error is
/// below 2^-31.
/// It takes 5 bytes, so that two of them and a link layer fit beside htb's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed)]
pub struct RateMeter {
    mult: u32,
    shift: u8,
}

impl RateMeter {
    /// Computes the factor and the shift for `rate`. The rate is rounded down to whole bytes per second, as
    /// in the kernel.
    pub fn new(rate: Rate) -> RateMeter {
        let bytes_per_second = (rate.bits_per_second() / 8).max(1);
        let mut factor: u64 = 1_000_000_000;
        let mut mult = factor / bytes_per_second;
        let mut shift = 0;
        while mult & (1 << 31) == 0 && factor & (1 << 63) == 0 {
            factor <<= 1;
            shift += 1;
            mult = factor / bytes_per_second;
        }
        let mult = u32::try_from(mult).expect("bit 31 was the first to be set");
        RateMeter { mult, shift }
    }

    /// Returns the transmission time of `bytes` in nanoseconds, rounded down. `bytes` up to 2^32 can't
    /// overflow.
    #[inline]
    pub fn nanos(self, bytes: u64) -> u64 {
        (bytes * u64::from(self.mult)) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_rejected() {
        assert!(Rate::from_bits_per_second(0).is_err());
    }

    #[test]
    fn display_uses_the_largest_whole_unit() {
        assert_eq!(Rate::mbit(20).to_string(), "20Mbit");
        assert_eq!(Rate(1_500_000).to_string(), "1500Kbit");
        assert_eq!(Rate(1_001).to_string(), "1001bit");
    }

    proptest! {
        /// Compares the meter with exact arithmetic. The result is never too high, and too low only by its
        /// rounding error.
        #[test]
        fn meter_differs_from_exact_time_only_by_rounding(
            bytes in 1u64..65_536,
            bytes_per_second in 1u64..12_500_000_000,
        ) {
            let exact = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
            let metered = u128::from(Rate(bytes_per_second * 8).meter().nanos(bytes));
            prop_assert!(metered <= exact);
            prop_assert!(exact - metered <= 1 + (exact >> 30), "exact {exact}, metered {metered}");
        }
    }
}
