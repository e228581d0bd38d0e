//! How congested a link is, as a new flow would feel it: fair rate and priority load (PDRR, section 3.2).
//!
//! The **fair rate** is what a flow that always has packets could send. There need not be one: a fictitious flow takes part
//! in the rounds and is granted what a flow of its kind would be, but sends nothing. In an interval in which the link was
//! idle it could have sent all that time: the sample is `max(granted, idle time * link rate) / interval`. The **priority
//! load** is what was sent with priority, as a part of the link's rate.
//!
//! Both are sampled every 100 ms and smoothed, `new = 0.9 old + 0.1 sample`. They start from an idle link: all of the
//! rate, and no load. The link is idle from the end of the last packet's transmission at the link's rate, if nothing was
//! queued then, until the next arrival. Intervals begin with the first call; one in which nothing was called is sampled
//! by the next call. A clock that goes backwards stands still.

use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// From one sample to the next, ns: the paper's.
const INTERVAL: u64 = 100_000_000;
/// Samples that make the past forgotten: 0.9^512 is below 2^-77.
const MEMORY: u64 = 512;
/// Fractions of a byte that smoothing keeps.
const FRACTION_BITS: u32 = 16;

/// When the link counts as congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// It is, when the fair rate is below this.
    pub(super) fair_rate: Rate,
    /// It is, when the priority load is above this, percent.
    pub(super) priority_load: u8,
}

/// The two measures.
#[derive(Debug)]
pub(super) struct Congestion {
    rate: Rate,
    meter: RateMeter,
    thresholds: Option<Thresholds>,
    /// The end of the interval; the origin before the first call.
    ends: Time,
    /// When the transmission of what was sent so far is over.
    sent_at: Time,
    is_empty: bool,
    /// In this interval: ns, and bytes.
    idle: u64,
    granted: u64,
    priority: u64,
    /// Smoothed, bytes an interval times 2^16.
    fair: u128,
    load: u128,
    is_congested: bool,
}

impl Congestion {
    /// Of an idle link of this rate.
    pub(super) fn new(rate: Rate, thresholds: Option<Thresholds>) -> Congestion {
        Congestion {
            rate,
            meter: rate.meter(),
            thresholds,
            ends: Time::ZERO,
            sent_at: Time::ZERO,
            is_empty: true,
            idle: 0,
            granted: 0,
            priority: 0,
            fair: bytes_of(rate) << FRACTION_BITS,
            load: 0,
            is_congested: false,
        }
    }

    /// Time has come to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.close(now);
        }
    }

    /// A packet is queued.
    #[inline]
    pub(super) fn arrived(&mut self, now: Time) {
        if self.is_empty {
            self.is_empty = false;
            self.idle += self.idle_until(now);
            // What was idle until now is counted once, even if the packet is gone before it is sent.
            self.sent_at = self.sent_at.max(now);
        }
    }

    /// A packet is sent, with priority or not; whether it was the last one.
    #[inline]
    pub(super) fn sent(&mut self, length: u32, has_priority: bool, is_last: bool, now: Time) {
        self.priority += if has_priority { u64::from(length) } else { 0 };
        let begin = self.sent_at.max(now).nanos();
        self.sent_at = Time::from_nanos(begin.saturating_add(self.meter.nanos(length.into())));
        self.is_empty = is_last;
    }

    /// All packets are gone without having been sent.
    pub(super) fn emptied(&mut self) {
        self.is_empty = true;
    }

    /// The fictitious flow could have sent so many bytes.
    #[inline]
    pub(super) fn granted(&mut self, bytes: u64) {
        self.granted += bytes;
    }

    /// Whether a new flow should stay away.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// What an always backlogged flow could send, bit/s.
    pub(super) fn fair_rate(&self) -> u64 {
        to_bits_per_second(self.fair)
    }

    /// What is sent with priority, bit/s.
    pub(super) fn priority_rate(&self) -> u64 {
        to_bits_per_second(self.load)
    }

    /// What is sent with priority, in thousandths of the rate.
    pub(super) fn priority_load(&self) -> u64 {
        u64::try_from(self.load * 1000 / (bytes_of(self.rate).max(1) << FRACTION_BITS)).unwrap_or(u64::MAX)
    }

    /// Of this interval, how long the link has been idle without a break, up to `now`.
    #[inline]
    fn idle_until(&self, now: Time) -> u64 {
        let begin = self.ends.nanos().saturating_sub(INTERVAL);
        now.nanos_since(self.sent_at.max(Time::from_nanos(begin)))
    }

    /// Samples all intervals that are over.
    #[cold]
    fn close(&mut self, now: Time) {
        if self.ends == Time::ZERO {
            self.ends = Time::from_nanos(now.nanos().saturating_add(INTERVAL));
            self.sent_at = now;
            return;
        }
        let over = (now - self.ends) / INTERVAL;
        for interval in 0..=over {
            // What lies too far back can't be told from what comes after it.
            if interval == MEMORY {
                let skipped = (over - interval) * INTERVAL;
                self.ends += skipped;
                self.close(now);
                return;
            }
            if self.is_empty {
                self.idle += self.idle_until(self.ends);
            }
            self.sample();
            self.ends = Time::from_nanos(self.ends.nanos().saturating_add(INTERVAL));
        }
    }

    fn sample(&mut self) {
        let idle = u128::from(self.idle) * u128::from(self.rate.bits_per_second()) / 8_000_000_000;
        let fair = idle.max(self.granted.into()) << FRACTION_BITS;
        let load = u128::from(self.priority) << FRACTION_BITS;
        self.fair = (9 * self.fair + fair) / 10;
        self.load = (9 * self.load + load) / 10;
        (self.idle, self.granted, self.priority) = (0, 0, 0);
        self.is_congested = self.thresholds.is_some_and(|thresholds| {
            let of_rate = bytes_of(self.rate) << FRACTION_BITS;
            self.fair < bytes_of(thresholds.fair_rate) << FRACTION_BITS
                || self.load * 100 > of_rate * u128::from(thresholds.priority_load)
        });
    }
}

/// Bytes of an interval at a rate.
fn bytes_of(rate: Rate) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(INTERVAL) / 8_000_000_000
}

fn to_bits_per_second(smoothed: u128) -> u64 {
    let bits = (smoothed * 8_000_000_000 / u128::from(INTERVAL)) >> FRACTION_BITS;
    u64::try_from(bits).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::mbit(8);
    /// Bytes that the link sends in an interval.
    const FULL: u32 = 100_000;

    fn millis(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Busy from 0 on, for `intervals`: in each `granted` bytes to the fictitious flow and a part sent with priority.
    fn busy(intervals: u64, granted: u64, priority: u32) -> Congestion {
        let mut congestion = Congestion::new(RATE, None);
        for interval in 0..intervals {
            let now = millis(100 * interval);
            congestion.advance(now);
            congestion.arrived(now);
            congestion.granted(granted);
            congestion.sent(priority, true, false, now);
            congestion.sent(FULL - priority, false, false, now);
        }
        congestion.advance(millis(100 * intervals));
        congestion
    }

    #[test]
    fn smoothing_is_nine_tenths_and_one() {
        assert_eq!(busy(1, 0, 0).fair_rate(), 7_200_000);
        assert_eq!(busy(2, 0, 0).fair_rate(), 6_480_000);
        let settled = busy(200, 10_000, 25_000);
        assert_eq!(settled.fair_rate().div_ceil(1000), 800);
        assert_eq!(settled.priority_rate().div_ceil(1000), 2000);
        assert_eq!(
            settled.priority_load().max(249),
            249,
            "a quarter, but for rounding"
        );
    }

    #[test]
    fn an_idle_link_offers_all_of_its_rate_whenever_it_is_asked() {
        let mut often = busy(50, 0, 0);
        let mut seldom = busy(50, 0, 0);
        for congestion in [&mut often, &mut seldom] {
            congestion.sent(0, false, true, millis(5000));
        }
        for milli in 5000..20_000 {
            often.advance(millis(milli));
        }
        seldom.advance(millis(19_999));
        assert_eq!(often.fair_rate(), seldom.fair_rate());
        assert!((7_999_000..=8_000_000).contains(&often.fair_rate()));
        assert_eq!(often.priority_rate(), 0);
    }

    #[test]
    fn half_an_interval_idle_is_half_the_rate() {
        let mut congestion = Congestion::new(RATE, None);
        for interval in 0..200 {
            let now = millis(100 * interval);
            congestion.advance(now);
            congestion.arrived(now);
            congestion.sent(FULL / 2, true, true, now);
        }
        congestion.advance(millis(20_000));
        assert!((3_999_000..=4_001_000).contains(&congestion.fair_rate()));
        assert!((499..=500).contains(&congestion.priority_load()));
    }

    #[test]
    fn congested_below_the_one_threshold_or_above_the_other() {
        let thresholds = Some(Thresholds {
            fair_rate: Rate::mbit(1),
            priority_load: 80,
        });
        for (granted, priority, expected) in [(20_000, 0, false), (10_000, 0, true), (20_000, 90_000, true)] {
            let mut congestion = Congestion {
                thresholds,
                ..busy(100, granted, priority)
            };
            congestion.granted(granted);
            congestion.sent(priority, true, false, millis(10_000));
            congestion.advance(millis(10_100));
            assert_eq!(congestion.is_congested(), expected, "{granted}, {priority}");
        }
    }

    #[test]
    fn neither_a_long_gap_nor_a_clock_that_goes_back_hurts() {
        let mut congestion = busy(10, 0, 0);
        congestion.sent(0, false, true, millis(1000));
        congestion.advance(Time::from_secs(1_000_000_000));
        assert_eq!(congestion.fair_rate(), 8_000_000 - 1, "but for the last fraction");
        let fair = congestion.fair_rate();
        congestion.advance(millis(1));
        congestion.arrived(millis(1));
        congestion.sent(1000, true, true, millis(0));
        assert_eq!(congestion.fair_rate(), fair);
        congestion.advance(Time::MAX);
    }
}
