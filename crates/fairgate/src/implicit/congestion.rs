//! Measures how congested a link is for a new flow: fair rate and priority load (PDRR, section 3.2).
//!
//! The **fair rate** is the rate at which a flow that always has packets could send. Such a flow need not
//! exist. A fictitious flow takes part in the rounds: it is granted what a real flow would be granted, but
//! sends nothing. While the link was idle, it could have sent all the time. So the sample is `max(granted,
//! idle time * link rate) / interval`. The **priority load** is the rate sent with priority, as a fraction of
//! the link's rate.
//!
//! Both are sampled, the fair rate every `tf` and the load every `tp` ([`Measurement`]), and smoothed. They
//! start as for an idle link, with the full rate and no load. If the queue is empty, the link is idle from
//! the end of the last packet's transmission at the link's rate until the next arrival. Intervals begin with
//! the first call. An interval without a call is sampled by the next call. If the clock goes backwards, time
//! stands still.

use core::time::Duration;

use crate::rate::{Rate, RateMeter};
use crate::time::Time;

/// The number of fraction bits of smoothed bytes.
const FRACTION_BITS: u32 = 16;

/// How congestion is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The time between two samples of the fair rate, 1 ms to 1 min: `tf` of the paper.
    pub fair_rate_interval: Duration,
    /// The time between two samples of the priority load, 1 ms to 1 min: `tp` of the paper.
    pub priority_load_interval: Duration,
    /// The weight of what was measured before, in percent, 0 to 99; that of a sample is the rest.
    pub smoothing: u8,
}

/// Both intervals are that of section 5. Its smoothing is 0.9: the 5 behind it is the mark of a footnote.
impl Default for Measurement {
    fn default() -> Measurement {
        Measurement {
            fair_rate_interval: Duration::from_millis(100),
            priority_load_interval: Duration::from_millis(100),
            smoothing: 90,
        }
    }
}

/// The thresholds of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// The link is congested if the fair rate is below this rate.
    pub(super) fair_rate: Rate,
    /// The link is congested if the priority load is above this, in percent.
    pub(super) priority_load: u8,
}

/// A smoothed number of bytes in an interval.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// Nanoseconds.
    interval: u64,
    /// The end of the interval, or the origin before the first call.
    ends: Time,
    /// The weight of the past, in percent.
    smoothing: u128,
    /// Smoothed bytes of an interval, times 2^16.
    bytes: u128,
}

impl Average {
    fn new(interval: Duration, smoothing: u8) -> Average {
        Average {
            interval: interval.as_nanos() as u64,
            ends: Time::ZERO,
            smoothing: smoothing.into(),
            bytes: 0,
        }
    }

    /// Returns the bytes of an interval at a rate, times 2^16.
    fn at(&self, rate: Rate) -> u128 {
        (u128::from(rate.bits_per_second()) * u128::from(self.interval) / 8_000_000_000) << FRACTION_BITS
    }

    fn bits_per_second(&self) -> u64 {
        let bits = (self.bytes * 8_000_000_000 / u128::from(self.interval)) >> FRACTION_BITS;
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    /// Samples all intervals that have ended. `sample` returns the bytes of the one that ends at a time. It
    /// returns the same for all but the first, because nothing has happened since.
    fn close(&mut self, now: Time, mut sample: impl FnMut(Time) -> u128) {
        if now < self.ends {
            return;
        }
        let mut ended = (now - self.ends) / self.interval + 1;
        let mut before = None;
        while ended > 0 {
            let sampled = sample(self.ends);
            let past = self.bytes;
            let new = (sampled << FRACTION_BITS) * (100 - self.smoothing);
            self.bytes = (past * self.smoothing + new) / 100;
            // What a sample does not change, equal ones do not change either.
            let passed = if before == Some(sampled) && past == self.bytes {
                ended
            } else {
                1
            };
            before = Some(sampled);
            ended -= passed;
            let passed = passed.saturating_mul(self.interval);
            self.ends = Time::from_nanos(self.ends.nanos().saturating_add(passed));
        }
    }
}

/// The fair rate and the priority load.
#[derive(Debug)]
pub(super) struct Congestion {
    rate: Rate,
    meter: RateMeter,
    thresholds: Option<Thresholds>,
    /// The end of the interval that ends first.
    ends: Time,
    fair: Average,
    load: Average,
    /// The end of the transmission of everything sent so far.
    sent_at: Time,
    is_empty: bool,
    /// In the interval of the fair rate: idle nanoseconds, granted bytes. In the load's: priority bytes.
    idle: u64,
    granted: u64,
    priority: u64,
    /// The rounds of the fictitious flow that have ended since the last packet, and what it is granted in
    /// one.
    rounds: u64,
    quantum: u64,
    /// When the current round began, and how long the last one took, ns. 0: no flow waited for its turn.
    round_began: Time,
    last_round: u64,
    is_congested: bool,
}

impl Congestion {
    /// Returns the measures for an idle link of this rate.
    pub(super) fn new(rate: Rate, how: &Measurement, thresholds: Option<Thresholds>) -> Congestion {
        let mut fair = Average::new(how.fair_rate_interval, how.smoothing);
        fair.bytes = fair.at(rate);
        Congestion {
            rate,
            meter: rate.meter(),
            thresholds,
            ends: Time::ZERO,
            fair,
            load: Average::new(how.priority_load_interval, how.smoothing),
            sent_at: Time::ZERO,
            is_empty: true,
            idle: 0,
            granted: 0,
            priority: 0,
            rounds: 0,
            quantum: 0,
            round_began: Time::ZERO,
            last_round: 0,
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
        self.rounds += 1;
        self.quantum = bytes;
    }

    /// Follows the rounds after a packet was sent. `has_rounds`: flows wait for their turns.
    #[inline]
    pub(super) fn follow_rounds(&mut self, has_rounds: bool, now: Time) {
        if !has_rounds {
            (self.rounds, self.last_round, self.round_began) = (0, 0, now);
        } else if let Some(last) = now.nanos_since(self.round_began).checked_div(self.rounds) {
            (self.rounds, self.last_round, self.round_began) = (0, last, now);
        }
    }

    /// Whether new flows should be rejected.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Returns what a backlogged flow could send, in bit/s.
    pub(super) fn fair_rate(&self) -> u64 {
        self.fair.bits_per_second()
    }

    /// Returns what a backlogged flow could send by the last round alone, in bit/s: the quantum divided by
    /// the time that the round took (PDRR, section 4.3). It is the link's rate if no flow waits for its turn.
    pub(super) fn instantaneous_fair_rate(&self) -> u64 {
        let rate = self.rate.bits_per_second();
        let of_round = self
            .quantum
            .saturating_mul(8_000_000_000)
            .checked_div(self.last_round);
        of_round.map_or(rate, |of_round| of_round.min(rate))
    }

    /// Returns what is sent with priority, in bit/s.
    pub(super) fn priority_rate(&self) -> u64 {
        self.load.bits_per_second()
    }

    /// Returns what is sent with priority, in thousandths of the rate.
    pub(super) fn priority_load(&self) -> u64 {
        let of_rate = self.load.at(self.rate).max(1 << FRACTION_BITS);
        u64::try_from(self.load.bytes * 1000 / of_rate).unwrap_or(u64::MAX)
    }

    /// Returns how long the link has been idle in the interval of the fair rate without a break, up to `now`.
    #[inline]
    fn idle_until(&self, now: Time) -> u64 {
        let begin = self.fair.ends.nanos().saturating_sub(self.fair.interval);
        now.nanos_since(self.sent_at.max(Time::from_nanos(begin)))
    }

    /// Samples all intervals that have ended.
    #[cold]
    fn close(&mut self, now: Time) {
        if self.ends == Time::ZERO {
            for average in [&mut self.fair, &mut self.load] {
                average.ends = Time::from_nanos(now.nanos().saturating_add(average.interval));
            }
            self.sent_at = now;
            self.ends = self.fair.ends.min(self.load.ends);
            return;
        }
        let mut fair = self.fair;
        fair.close(now, |end| self.could_send(end));
        self.fair = fair;
        self.load
            .close(now, |_| core::mem::take(&mut self.priority).into());
        self.ends = self.fair.ends.min(self.load.ends);
        self.is_congested = self.thresholds.is_some_and(|thresholds| {
            let load = self.load.at(self.rate) * u128::from(thresholds.priority_load);
            self.fair.bytes < self.fair.at(thresholds.fair_rate) || self.load.bytes * 100 > load
        });
    }

    /// Returns the bytes that a flow could have sent in the interval of the fair rate that ends at `end`, and
    /// begins the next interval.
    fn could_send(&mut self, end: Time) -> u128 {
        if self.is_empty {
            self.idle += self.idle_until(end);
        }
        let idle = u128::from(self.idle) * u128::from(self.rate.bits_per_second()) / 8_000_000_000;
        let granted = self.granted.into();
        (self.idle, self.granted) = (0, 0);
        // `idle_until` counts from the beginning of this interval.
        self.fair.ends = Time::from_nanos(end.nanos().saturating_add(self.fair.interval));
        idle.max(granted)
    }
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
        let mut congestion = Congestion::new(RATE, &Measurement::default(), None);
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
        let mut congestion = Congestion::new(RATE, &Measurement::default(), None);
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

    /// Rounds of 2 and 4 ms with a quantum of 1000 bytes, and then only flows that need no turn.
    #[test]
    fn the_instantaneous_fair_rate_is_that_of_the_last_round() {
        let mut congestion = busy(1, 0, 0);
        congestion.follow_rounds(false, millis(100));
        assert_eq!(congestion.instantaneous_fair_rate(), 8_000_000, "the link's rate");
        for (now, rate) in [(102, 4_000_000), (106, 2_000_000)] {
            congestion.granted(1000);
            congestion.follow_rounds(true, millis(now));
            congestion.follow_rounds(true, millis(now + 1));
            assert_eq!(congestion.instantaneous_fair_rate(), rate, "at {now} ms");
        }
        congestion.follow_rounds(false, millis(108));
        assert_eq!(congestion.instantaneous_fair_rate(), 8_000_000);
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

    /// Sampled at the ends of intervals of 40 ms, and of 100 ms beside them.
    #[test]
    fn the_two_measures_have_intervals_of_their_own() {
        let how = Measurement {
            fair_rate_interval: Duration::from_millis(40),
            priority_load_interval: Duration::from_millis(100),
            smoothing: 0,
        };
        let mut congestion = Congestion::new(RATE, &how, None);
        congestion.advance(millis(0));
        congestion.arrived(millis(0));
        congestion.granted(10_000);
        congestion.sent(50_000, true, false, millis(0));
        congestion.advance(millis(39));
        assert_eq!(
            (congestion.fair_rate(), congestion.priority_load()),
            (8_000_000, 0)
        );
        congestion.advance(millis(40));
        assert_eq!(
            (congestion.fair_rate(), congestion.priority_load()),
            (2_000_000, 0)
        );
        congestion.advance(millis(80));
        assert_eq!((congestion.fair_rate(), congestion.priority_load()), (0, 0));
        congestion.advance(millis(100));
        assert_eq!(congestion.priority_load(), 500);
        congestion.advance(millis(200));
        assert_eq!(congestion.priority_load(), 0);
    }

    proptest::proptest! {
        /// One late call gives what calls in each interval give.
        #[test]
        fn a_late_call_catches_up(
            smoothing in 0u8..=99, fair in 1u64..300, load in 1u64..300, granted in 0u64..200_000, idle: bool,
            milli in 0u64..20_000,
        ) {
            let how = Measurement {
                fair_rate_interval: Duration::from_millis(fair),
                priority_load_interval: Duration::from_millis(load),
                smoothing,
            };
            let [often, once] = [true, false].map(|is_often| {
                let mut congestion = Congestion::new(RATE, &how, None);
                congestion.advance(millis(1));
                congestion.arrived(millis(1));
                congestion.granted(granted);
                congestion.sent(1000, true, idle, millis(1));
                for now in (1..milli).filter(|_| is_often) {
                    congestion.advance(millis(now));
                }
                congestion.advance(millis(milli));
                (congestion.fair, congestion.load, congestion.ends)
            });
            proptest::prop_assert_eq!(format!("{:?}", often), format!("{:?}", once));
        }
    }
}
