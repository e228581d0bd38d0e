//! The unit in which the time and the work of a link of constant rate are whole numbers.

use fairgate::{Rate, Time};

/// Bits in a byte times nanoseconds in a second.
const BIT_NANOS: u64 = 8_000_000_000;

/// The *tick* of a link of constant rate, and conversions to ticks.
///
/// A tick is the longest unit such that a nanosecond and the transmission time of a byte are both whole
/// multiples of it. The link does one unit of work in each tick, so work is counted in ticks too.
///
/// At 8 Gbit/s a nanosecond and a byte are one tick each. At 1 Mbit/s a nanosecond is one tick and a byte is
/// 8000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickScale {
    rate: Rate,
    ticks_per_nano: u64,
    ticks_per_byte: u64,
}

impl TickScale {
    /// Creates the scale of a link that transmits at `rate`.
    pub fn new(rate: Rate) -> TickScale {
        let bits = rate.bits_per_second();
        let common = num_integer::gcd(bits, BIT_NANOS);
        TickScale {
            rate,
            ticks_per_nano: bits / common,
            ticks_per_byte: BIT_NANOS / common,
        }
    }

    /// Returns the rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the number of ticks in a nanosecond.
    pub fn ticks_per_nano(&self) -> u64 {
        self.ticks_per_nano
    }

    /// Returns the number of ticks that the transmission of a byte takes.
    pub fn ticks_per_byte(&self) -> u64 {
        self.ticks_per_byte
    }

    /// Converts a time to ticks since time zero. Returns `None` if the result is above 2^62.
    pub fn ticks(&self, time: Time) -> Option<u64> {
        within(u128::from(time.nanos()) * u128::from(self.ticks_per_nano))
    }

    /// Returns the ticks that the transmission of `bytes` takes, or `None` if they are above 2^62.
    pub fn work(&self, bytes: u64) -> Option<u64> {
        within(u128::from(bytes) * u128::from(self.ticks_per_byte))
    }

    /// Returns the last whole nanosecond at or before `ticks`, which is the time that a clock shows.
    pub fn clock(&self, ticks: u64) -> Time {
        Time::from_nanos(ticks / self.ticks_per_nano)
    }
}

/// Limits ticks to 2^62. A finish after the last arrival is then below 2^63 and is added without a check.
fn within(ticks: u128) -> Option<u64> {
    u64::try_from(ticks).ok().filter(|ticks| *ticks <= 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_and_bytes_are_whole() {
        let of = |bits| {
            let tick_scale = TickScale::new(Rate::from_bits_per_second(bits).unwrap());
            (tick_scale.ticks_per_nano(), tick_scale.ticks_per_byte())
        };
        assert_eq!(of(8_000_000_000), (1, 1));
        assert_eq!(of(1_000_000), (1, 8000));
        assert_eq!(of(40_000_000_000), (5, 1));
        assert_eq!(of(7), (7, BIT_NANOS));
    }

    #[test]
    fn values_above_the_limit_give_none() {
        let tick_scale = TickScale::new(Rate::from_bits_per_second(7).unwrap());
        assert_eq!(tick_scale.ticks(Time::from_nanos(1 << 60)), None);
        assert_eq!(tick_scale.work(1 << 30), None);
        assert_eq!(tick_scale.work(1), Some(BIT_NANOS));
    }

    #[test]
    fn a_clock_shows_whole_nanoseconds() {
        let tick_scale = TickScale::new(Rate::from_bits_per_second(40_000_000_000).unwrap());
        assert_eq!(tick_scale.clock(4), Time::ZERO);
        assert_eq!(tick_scale.clock(5), Time::from_nanos(1));
    }
}
