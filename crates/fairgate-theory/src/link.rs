//! A link of constant rate, and the unit in which both its time and its work are whole numbers.

use fairgate::{Rate, Time};

/// Bits of a byte times nanoseconds of a second.
const BIT_NANOS: u64 = 8_000_000_000;

/// A link of constant rate, and its *tick*: the longest unit of which a nanosecond and the transmission of a byte
/// are both whole multiples. Since the link does one unit of work in each tick, work is counted in ticks as well.
///
/// At 8 Gbit/s a tick is a nanosecond and a byte; at 1 Mbit/s a nanosecond is one tick and a byte is 8000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    rate: Rate,
    ticks_per_nano: u64,
    ticks_per_byte: u64,
}

impl Link {
    /// A link that sends `rate`.
    pub fn new(rate: Rate) -> Link {
        let bits = rate.bits_per_second();
        let common = num_integer::gcd(bits, BIT_NANOS);
        Link {
            rate,
            ticks_per_nano: bits / common,
            ticks_per_byte: BIT_NANOS / common,
        }
    }

    /// Its rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Ticks in a nanosecond.
    pub fn ticks_per_nano(&self) -> u64 {
        self.ticks_per_nano
    }

    /// Ticks that a byte takes.
    pub fn ticks_per_byte(&self) -> u64 {
        self.ticks_per_byte
    }

    /// A point in time, ticks since time zero; `None` if it is beyond 2^62 ticks.
    pub fn ticks(&self, time: Time) -> Option<u64> {
        within(u128::from(time.nanos()) * u128::from(self.ticks_per_nano))
    }

    /// What so many bytes take, ticks; `None` beyond 2^62.
    pub fn work(&self, bytes: u64) -> Option<u64> {
        within(u128::from(bytes) * u128::from(self.ticks_per_byte))
    }

    /// The last whole nanosecond at `ticks`: what a clock shows.
    pub fn clock(&self, ticks: u64) -> Time {
        Time::from_nanos(ticks / self.ticks_per_nano)
    }
}

/// Room for a factor of two, so that a finish after the last arrival can be added without a check.
fn within(ticks: u128) -> Option<u64> {
    u64::try_from(ticks).ok().filter(|ticks| *ticks <= 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_and_bytes_are_whole() {
        let of = |bits| {
            let link = Link::new(Rate::from_bits_per_second(bits).unwrap());
            (link.ticks_per_nano(), link.ticks_per_byte())
        };
        assert_eq!(of(8_000_000_000), (1, 1));
        assert_eq!(of(1_000_000), (1, 8000));
        assert_eq!(of(40_000_000_000), (5, 1));
        assert_eq!(of(7), (7, BIT_NANOS));
    }

    #[test]
    fn what_does_not_fit_is_said_so() {
        let link = Link::new(Rate::from_bits_per_second(7).unwrap());
        assert_eq!(link.ticks(Time::from_nanos(1 << 60)), None);
        assert_eq!(link.work(1 << 30), None);
        assert_eq!(link.work(1), Some(BIT_NANOS));
    }

    #[test]
    fn a_clock_shows_whole_nanoseconds() {
        let link = Link::new(Rate::from_bits_per_second(40_000_000_000).unwrap());
        assert_eq!(link.clock(4), Time::ZERO);
        assert_eq!(link.clock(5), Time::from_nanos(1));
    }
}
