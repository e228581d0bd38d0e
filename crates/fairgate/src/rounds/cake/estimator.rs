//! Estimates the capacity of the link from the packets that arrive, for a shaper behind the bottleneck
//! (`autorate-ingress`; the end of `cake_enqueue` in Linux's sch_cake.c).
//!
//! A pause between two packets that is longer than the average ends a window. The rate in the window is a
//! sample. The estimate follows higher samples fast and lower ones slowly, so it is a peak rate. It ignores
//! bursts, as those of Wi-Fi's aggregates, because a window lasts from pause to pause. The bandwidth is set
//! to 15/16 of the estimate, at most four times a second.
//!
//! Deviations: Linux does not store when it last changed the bandwidth, and changes it at the end of each
//! window. Linux begins the first window at time 0; here it begins with the first packet. A window's end
//! divides, which no other code on the packet path does.

use crate::time::Time;

/// The longest pause that counts, ns.
const LONGEST_PAUSE: u64 = 1_000_000_000;
/// The least time between two changes of the bandwidth, ns.
const CHANGE_AFTER: u64 = 250_000_000;

/// The estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    last_packet: Option<Time>,
    /// The average pause between packets, ns.
    pause: u64,
    window_begin: Time,
    window_bytes: u64,
    /// The estimate, bytes per second.
    peak: u64,
    changed: Time,
}

/// A moving average: a sample has the weight `2^-shift`.
#[inline]
pub(super) fn average(old: u64, sample: u64, shift: u32) -> u64 {
    old - (old >> shift) + (sample >> shift)
}

impl Estimator {
    /// Begins with this estimate, bytes per second.
    pub(super) fn new(peak: u64) -> Estimator {
        Estimator {
            last_packet: None,
            pause: 0,
            window_begin: Time::ZERO,
            window_bytes: 0,
            peak,
            changed: Time::ZERO,
        }
    }

    /// The estimate, bytes per second.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// Counts a packet. Returns the bandwidth in bytes per second if it should be changed.
    #[inline]
    pub(super) fn arrived(&mut self, bytes: u64, now: Time) -> Option<u64> {
        let Some(last) = self.last_packet.replace(now) else {
            (self.window_begin, self.changed) = (now, now);
            return None;
        };
        self.window_bytes += bytes;
        let pause = now.nanos_since(last).min(LONGEST_PAUSE);
        let shift = if pause > self.pause { 2 } else { 8 };
        self.pause = average(self.pause, pause, shift);
        if pause <= self.pause {
            return None;
        }
        self.end_window(now)
    }

    #[cold]
    fn end_window(&mut self, now: Time) -> Option<u64> {
        let length = now.nanos_since(self.window_begin).max(1);
        let rate = self.window_bytes.saturating_mul(1_000_000_000) / length;
        let shift = if rate > self.peak { 2 } else { 8 };
        self.peak = average(self.peak, rate, shift);
        self.window_begin = now;
        self.window_bytes = 0;
        if now.nanos_since(self.changed) <= CHANGE_AFTER {
            return None;
        }
        self.changed = now;
        Some(self.peak - self.peak / 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1250 bytes at 10 Mbit/s, in bursts of `burst` that arrive at once.
    fn estimate(start: u64, burst: u64) -> (u64, Vec<u64>) {
        let mut estimator = Estimator::new(start);
        let mut set = Vec::new();
        for number in 0..200_000u64 {
            let now = Time::from_millis(number / burst * burst);
            set.extend(estimator.arrived(1250, now));
        }
        (estimator.peak(), set)
    }

    #[test]
    fn the_estimate_approaches_the_rate_of_arrivals() {
        for start in [0, 100_000, 5_000_000] {
            for burst in [2, 16, 40] {
                let (peak, set) = estimate(start, burst);
                let error = peak.abs_diff(1_250_000);
                assert!(error < 40_000, "from {start} in bursts of {burst}: {peak}");
                // 200 seconds.
                assert!((500..=800).contains(&set.len()), "{} changes", set.len());
                let last = *set.last().unwrap();
                assert!(last.abs_diff(peak / 16 * 15) < 2_000, "{last} of {peak}");
            }
        }
    }

    /// After a fall of the rate the estimate sinks slowly: a sample counts 1/256.
    #[test]
    fn a_higher_rate_is_followed_faster_than_a_lower_one() {
        let after = |start: u64| {
            let mut estimator = Estimator::new(start);
            let mut windows = 0;
            for number in 0.. {
                let before = estimator.peak();
                estimator.arrived(1250, Time::from_millis(number / 2 * 2));
                windows += u32::from(estimator.peak() != before);
                if estimator.peak().abs_diff(1_250_000) < 125_000 {
                    return windows;
                }
            }
            unreachable!("it approaches the rate")
        };
        let (rising, falling) = (after(625_000), after(2_500_000));
        assert!(rising < 10 && falling > 200, "{rising} and {falling} windows");
    }
}
