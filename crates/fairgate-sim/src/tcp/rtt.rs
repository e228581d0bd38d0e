//! Round-trip time and retransmission timeout: RFC 6298 with Linux's changes.
//!
//! The smoothed RTT is that of the RFC. The deviation differs in three ways, all of which keep the timeout
//! steady. It grows at once, but decays at most once per round trip. A falling RTT changes it by 1/32 instead
//! of 1/4. The minimum, by default 200 ms, applies to the deviation term and not to the sum: RTO = SRTT +
//! max(4 * deviation, minimum).

use super::config::Config;

/// The maximum timeout, µs (`TCP_RTO_MAX`).
pub(super) const RTO_MAX: u64 = 120_000_000;

/// Estimates the RTT. Values are in µs, times the factor in their names.
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// The minimum of the deviation term, and the timeout before the first measurement.
    rto_min: u32,
    rto_initial: u32,
    /// The smoothed RTT, times 8. It is 0 before the first measurement.
    srtt8: i64,
    /// The mean deviation, times 4.
    deviation4: i64,
    /// The largest `deviation4` in this round trip.
    deviation4_max: i64,
    /// The deviation term of the timeout.
    variation: i64,
    /// A round trip is over when this number is acknowledged.
    round_end: u64,
    /// The minimum RTT.
    min: u64,
}

impl RttEstimator {
    pub(super) fn new(config: &Config) -> RttEstimator {
        // Both are at most 120 s, so they fit 32 bits.
        RttEstimator {
            rto_min: config.min_rto.as_micros() as u32,
            rto_initial: config.initial_rto.as_micros() as u32,
            srtt8: 0,
            deviation4: 0,
            deviation4_max: 0,
            variation: 0,
            round_end: 0,
            min: u64::MAX,
        }
    }

    /// Adds a measurement. `una` and `next` are the sender's first unacknowledged and next number.
    pub(super) fn measure(&mut self, micros: u64, una: u64, next: u64) {
        let measured = micros as i64;
        if self.srtt8 == 0 {
            self.srtt8 = (measured << 3).max(1);
            self.deviation4 = measured << 1;
            self.variation = self.deviation4.max(self.rto_min.into());
            self.deviation4_max = self.variation;
            self.round_end = next;
            return;
        }
        let error = measured - (self.srtt8 >> 3);
        self.srtt8 = (self.srtt8 + error).max(1);
        let mut change = error.abs() - (self.deviation4 >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.deviation4 += change;
        if self.deviation4 > self.deviation4_max {
            self.deviation4_max = self.deviation4;
            self.variation = self.variation.max(self.deviation4_max);
        }
        if una > self.round_end {
            if self.deviation4_max < self.variation {
                self.variation -= (self.variation - self.deviation4_max) >> 2;
            }
            self.round_end = next;
            self.deviation4_max = self.rto_min.into();
        }
    }

    /// Updates the minimum with the delay that the congestion control uses: the RTT of the newest delivered
    /// segment.
    pub(super) fn observe_minimum(&mut self, micros: u64) {
        self.min = self.min.min(micros);
    }

    /// Returns the smoothed RTT, µs, if there is one.
    pub(super) fn smoothed(&self) -> Option<u64> {
        (self.srtt8 != 0).then_some(self.srtt8 as u64 >> 3)
    }

    /// Returns the minimum RTT, µs. Before the first measurement it is the largest number.
    pub(super) fn minimum(&self) -> u64 {
        self.min
    }

    /// Returns the minimum of the timeout's deviation term, µs.
    pub(super) fn timeout_minimum(&self) -> u64 {
        self.rto_min.into()
    }

    /// Returns the timeout before the first measurement, µs.
    pub(super) fn timeout_initial(&self) -> u64 {
        self.rto_initial.into()
    }

    /// Returns the timeout without back-off, µs.
    pub(super) fn timeout(&self) -> u64 {
        match self.smoothed() {
            Some(smoothed) => (smoothed + self.variation as u64).min(RTO_MAX),
            None => self.rto_initial.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 6298, (2.2) and (2.3), in floating point.
    struct Rfc6298 {
        srtt: f64,
        rttvar: f64,
    }

    impl Rfc6298 {
        fn measure(&mut self, r: f64) {
            if self.srtt == 0.0 {
                (self.srtt, self.rttvar) = (r, r / 2.0);
            } else {
                self.rttvar = 0.75 * self.rttvar + 0.25 * (self.srtt - r).abs();
                self.srtt = 0.875 * self.srtt + 0.125 * r;
            }
        }

        fn rto(&self) -> f64 {
            self.srtt + 4.0 * self.rttvar
        }
    }

    #[test]
    fn the_first_measurement_sets_the_timeout_to_three_rtts() {
        let mut rtt = RttEstimator::new(&Config::default());
        assert_eq!(rtt.timeout(), 1_000_000);
        rtt.measure(500_000, 1, 1);
        assert_eq!(rtt.smoothed(), Some(500_000));
        assert_eq!(rtt.timeout(), 1_500_000);
    }

    #[test]
    fn the_minimum_applies_to_the_deviation_term() {
        let mut rtt = RttEstimator::new(&Config::default());
        for step in 0..200 {
            rtt.measure(50_000, step + 1, step + 1);
        }
        assert_eq!(rtt.timeout(), 250_000);
    }

    #[test]
    fn the_deviation_term_decays_by_a_quarter_per_round_trip() {
        let mut rtt = RttEstimator::new(&Config::default());
        rtt.measure(400_000, 0, 10);
        assert_eq!(rtt.timeout(), 1_200_000);
        // The largest deviation of this round trip is still the first one, so nothing decays yet.
        rtt.measure(400_000, 11, 20);
        assert_eq!(rtt.timeout(), 1_200_000);
        // In the next round trip it has fallen to 2/3 of 600 ms. The term moves a quarter of the way.
        rtt.measure(400_000, 21, 30);
        assert!(rtt.timeout() < 1_200_000, "{}", rtt.timeout());
    }

    #[test]
    fn the_minimum_and_the_initial_timeout_are_settings() {
        let mut rtt = RttEstimator::new(&Config {
            min_rto: std::time::Duration::from_millis(30),
            initial_rto: std::time::Duration::from_millis(300),
            ..Config::default()
        });
        assert_eq!(rtt.timeout(), 300_000);
        for step in 0..200 {
            rtt.measure(50_000, step + 1, step + 1);
        }
        // The term approaches its minimum by a quarter of the distance, rounded down.
        assert!((80_000..80_004).contains(&rtt.timeout()), "{}", rtt.timeout());
    }

    proptest! {
        /// SRTT equals the RFC's. While the RTT grows or stays, the timeout is never below the RFC's.
        #[test]
        fn follows_rfc6298(samples in prop::collection::vec(1_000u64..3_000_000, 1..100)) {
            let mut linux = RttEstimator::new(&Config::default());
            let mut rfc = Rfc6298 { srtt: 0.0, rttvar: 0.0 };
            let mut rising = true;
            let mut last = 0;
            for &sample in &samples {
                rising &= sample >= last;
                last = sample;
                linux.measure(sample, 0, 1);
                rfc.measure(sample as f64);
                let smoothed = linux.smoothed().expect("measured") as f64;
                prop_assert!((smoothed - rfc.srtt).abs() <= 2.0 + rfc.srtt * 1e-6, "{smoothed} {}", rfc.srtt);
                if rising {
                    prop_assert!(linux.timeout() as f64 + 16.0 >= rfc.rto());
                }
            }
        }
    }
}
