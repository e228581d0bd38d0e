//! HyStart: leaves slow start before the queue overflows (Ha and Rhee, "Taming the elephants", 2011, in
//! Linux's form).
//!
//! In each round trip, two signs show that the window has reached the path's capacity. Either the train of
//! acknowledgements is as long as half the minimum RTT, or the minimum delay of the first samples is above
//! the overall minimum by an eighth. Deviation from Linux: the train is not extended for segments sent or
//! received in batches (GSO, GRO). There are no batches here, and without them Linux does not extend it
//! either.

use super::Sample;
use crate::tcp::clock::Moment;

/// The smallest window at which HyStart is active, segments.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements with at most this gap form a train, µs.
const TRAIN_GAP: u64 = 2_000;
/// The number of samples in a round trip before the delay is evaluated.
const MIN_SAMPLES: u32 = 8;
/// The bounds of the tolerated increase of delay, µs.
const DELAY_MIN: u64 = 4_000;
const DELAY_MAX: u64 = 16_000;

/// The measurements of the current round trip.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    found: bool,
    round_start: u64,
    last_ack: u64,
    /// The round trip is over when this number is acknowledged.
    round_end: u64,
    /// The minimum delay in this round trip, µs.
    delay: u64,
    samples: u32,
}

impl HyStart {
    pub(super) fn new(now: Moment, next: u64) -> HyStart {
        let mut hystart = HyStart {
            found: false,
            round_start: 0,
            last_ack: 0,
            round_end: 0,
            delay: 0,
            samples: 0,
        };
        hystart.begin_round(now, next);
        hystart
    }

    fn begin_round(&mut self, now: Moment, next: u64) {
        self.round_start = now.micros;
        self.last_ack = now.micros;
        self.round_end = next;
        self.delay = u64::MAX;
        self.samples = 0;
    }

    /// Returns whether slow start should end at this acknowledgement. `delay_min` is the overall minimum RTT.
    pub(super) fn is_time_to_leave(
        &mut self,
        sample: Sample,
        delay_min: u64,
        window: u32,
        now: Moment,
    ) -> bool {
        if self.found {
            return false;
        }
        // Round trips are counted from the start, even while the window is too small to leave slow start.
        if sample.una > self.round_end {
            self.begin_round(now, sample.next);
        }
        if window < LOW_WINDOW {
            return false;
        }
        if now.micros.saturating_sub(self.last_ack) <= TRAIN_GAP {
            self.last_ack = now.micros;
            self.found |= now.micros - self.round_start > delay_min / 2;
        }
        self.delay = self.delay.min(sample.rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            self.found |= self.delay > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::Clock;
    use fairgate::Time;

    const RTT: u64 = 100_000;

    fn at(micros: u64) -> Moment {
        Clock::new(100).read(Time::from_micros(micros))
    }

    /// Feeds acknowledgements `gap` apart with the given RTT. Returns the time at which slow start should
    /// end.
    fn leaves_after(gap: u64, rtt: u64, acks: u64) -> Option<u64> {
        let mut hystart = HyStart::new(at(0), 1_000_000);
        let sample = Sample {
            rtt,
            una: 1,
            next: 2_000_000,
        };
        (1..=acks)
            .map(|n| n * gap)
            .find(|&micros| hystart.is_time_to_leave(sample, RTT, 20, at(micros)))
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        assert_eq!(leaves_after(1_000, RTT, 200), Some(51_000));
    }

    #[test]
    fn a_large_gap_ends_the_train() {
        assert_eq!(leaves_after(2_001, RTT, 200), None);
    }

    #[test]
    fn delay_above_an_eighth_ends_slow_start_after_eight_samples() {
        assert_eq!(leaves_after(3_000, RTT + RTT / 8 + 1, 200), Some(9 * 3_000));
        assert_eq!(leaves_after(3_000, RTT + RTT / 8, 200), None);
    }

    #[test]
    fn hystart_ignores_small_windows() {
        let mut hystart = HyStart::new(at(0), 1_000_000);
        let sample = Sample {
            rtt: 2 * RTT,
            una: 1,
            next: 2,
        };
        assert!(!(0..100).any(|n| hystart.is_time_to_leave(sample, RTT, LOW_WINDOW - 1, at(n))));
    }
}
