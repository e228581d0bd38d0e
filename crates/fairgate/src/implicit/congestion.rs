//! Measures how congested a link is for a new flow: fair rate and priority load (PDRR, section 3.2).
//!
//! The **fair rate** is the rate at which a flow that always has packets could send. Such a flow need not
//! exist. A fictitious flow takes part in the rounds: it is granted what a real flow would be granted, but
//! sends nothing. While the link was idle, it could have sent all the time. So the sample is `max(granted,
//! idle time * link rate) / interval`. The **priority load** is the rate sent with priority, as a fraction of
//! the link's rate.
//!
//! Both are sampled every 100 ms and smoothed: `new = 0.9 old + 0.1 sample`. They start as for an idle link,
//! with the full rate and no load. If the queue is empty, the link is idle from the end of the last packet's
//! transmission at the link's rate until the next arrival. Intervals begin with the first call. An interval
//! without a call is sampled by the next call. If the clock goes backwards, time stands still.

use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// The time between two samples in nanoseconds, as in the paper.
const INTERVAL: u64 = 100_000_000;
/// After this many samples the past has no effect: 0.9^512 is below 2^-77.
const MEMORY: u64 = 512;
/// The number of fraction bits of smoothed bytes.
const FRACTION_BITS: u32 = 16;

/// The thresholds of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// The link is congested if the fair rate is below this rate.
    pub(super) fair_rate: Rate,
    /// The link is congested if the priority load is above this, in percent.
    pub(super) priority_load: u8,
}

/// The fair rate and the priority load.
#[derive(Debug)]
pub(super) struct Congestion {
    rate: Rate,
    meter: RateMeter,
    thresholds: Option<Thresholds>,
    /// The end of the interval, or the origin before the first call.
    ends: Time,
    /// The end of the transmission of everything sent so far.
    sent_at: Time,
    is_empty: bool,
    /// In this interval: idle nanoseconds, granted bytes, priority bytes.
    idle: u64,
    granted: u64,
    priority: u64,
    /// Smoothed bytes per interval, times 2^16.
    fair: u128,
    load: u128,
    is_congested: bool,
}

impl Congestion {
    /// Returns the measures for an idle link of this rate.
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

    /// Samples the intervals that end by `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.close(now);
        }
    }

    /// Reports that a packet was enqueued.
    #[inline]
    pub(super) fn arrived(&mut self, now: Time) {
        if self.is_empty {
            self.is_empty = false;
            self.idle += self.idle_until(now);
            // The idle time until now is counted once, even if the packet is dropped before it is sent.
            self.sent_at = self.sent_at.max(now);
        }
    }

    /// Reports that a packet was sent, whether it had priority, and whether it was the last one.
    #[inline]
    pub(super) fn sent(&mut self, length: u32, has_priority: bool, is_last: bool, now: Time) {
        self.priority += if has_priority { u64::from(length) } else { 0 };
        let begin = self.sent_at.max(now).nanos();
        self.sent_at = Time::from_nanos(begin.saturating_add(self.meter.nanos(length.into())));
        self.is_empty = is_last;
    }

    /// Reports that the queue became empty without sending the last packet.
    pub(super) fn emptied(&mut self) {
        self.is_empty = true;
    }

    /// Reports that the fictitious flow could have sent this many bytes.
    #[inline]
    pub(super) fn granted(&mut self, bytes: u64) {
        self.granted += bytes;
    }

    /// Whether new flows should be rejected.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Returns what a backlogged flow could send, in bit/s.
    pub(super) fn fair_rate(&self) -> u64 {
        to_bits_per_second(self.fair)
    }

    /// Returns what is sent with priority, in bit/s.
    pub(super) fn priority_rate(&self) -> u64 {
        to_bits_per_second(self.load)
    }

    /// Returns what is sent with priority, in thousandths of the rate.
    pub(super) fn priority_load(&self) -> u64 {
        u64::try_from(self.load * 1000 / (bytes_of(self.rate).max(1) << FRACTION_BITS)).unwrap_or(u64::MAX)
    }

    /// Returns how long the link has been idle in this interval without a break, up to `now`.
    #[inline]
    fn idle_until(&self, now: Time) -> u64 {
        let begin = self.ends.nanos().saturating_sub(INTERVAL);
        now.nanos_since(self.sent_at.max(Time::from_nanos(begin)))
    }

    /// Samples all intervals that have ended.
    #[cold]
    fn close(&mut self, now: Time) {
        if self.ends == Time::ZERO {
            self.ends = Time::from_nanos(now.nanos().saturating_add(INTERVAL));
            self.sent_at = now;
            return;
        }
        let over = (now - self.ends) / INTERVAL;
        for interval in 0..=over {
            // Older samples have no effect on the result.
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

/// Returns the bytes per interval at a rate.
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
    /// The bytes that the link sends in an interval.
    const FULL: u32 = 100_000;

    fn millis(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// The link is busy from time 0 for `intervals`. In each, the fictitious flow is granted `granted` bytes,
    /// and `priority` bytes are sent with priority.
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
    fn a_sample_counts_one_tenth() {
        assert_eq!(busy(1, 0, 0).fair_rate(), 7_200_000);
        assert_eq!(busy(2, 0, 0).fair_rate(), 6_480_000);
        let settled = busy(200, 10_000, 25_000);
        assert_eq!(settled.fair_rate().div_ceil(1000), 800);
        assert_eq!(settled.priority_rate().div_ceil(1000), 2000);
        assert_eq!(
            settled.priority_load().max(249),
            249,
            "a quarter, except for rounding"
        );
    }

    #[test]
    fn the_fair_rate_of_an_idle_link_is_its_full_rate() {
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
    fn a_link_that_is_idle_half_of_the_time_has_half_its_rate_as_fair_rate() {
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
    fn the_link_is_congested_below_the_fair_rate_or_above_the_priority_load() {
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
    fn long_gaps_and_a_clock_that_goes_backwards_are_handled() {
        let mut congestion = busy(10, 0, 0);
        congestion.sent(0, false, true, millis(1000));
        congestion.advance(Time::from_secs(1_000_000_000));
        assert_eq!(
            congestion.fair_rate(),
            8_000_000 - 1,
            "except for the last fraction bit"
        );
        let fair = congestion.fair_rate();
        congestion.advance(millis(1));
        congestion.arrived(millis(1));
        congestion.sent(1000, true, true, millis(0));
        assert_eq!(congestion.fair_rate(), fair);
        congestion.advance(Time::MAX);
    }
}
