//! The average rate of the packets that match a filter, as Linux estimates it (`gen_estimator.c`, for
//! `avrate` of `act_police.c`).
//!
//! A timer of the kernel takes a sample every 250 ms, or that doubled up to five times: the bytes since the
//! last one. The average is then moved towards the sample by a weight that is a power of two. Between two
//! samples it does not change. All packets count, those that exceed, too.
//!
//! Here no timer runs: a packet takes the samples that are due. The first sample begins with the first
//! packet, and again after a pause in which the average fell to nothing.

use crate::error::ConfigError;
use crate::rate::Rate;
use crate::time::Time;

/// The average rate that packets must be below to conform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Average {
    /// Packets exceed while the average is at this rate or above it. As in Linux it counts whole bytes per
    /// second.
    pub rate: Rate,
    /// The number of doublings of 250 ms that make a sample, 0 to 5.
    pub sample_log: u8,
    /// The base-2 logarithm of the inverse weight of a sample in the average, 1 to 30.
    pub weight_log: u8,
}

/// The longest sample: 8 s.
const MOST_SAMPLE_LOG: u8 = 5;

/// The smallest weight (`gen_new_estimator`).
const MOST_WEIGHT_LOG: u8 = 30;

impl Average {
    /// Checks the rate and both logarithms.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let outside =
            |value: u8, rule, remedy| Err(ConfigError::out_of_range("estimator", value, rule, remedy));
        if self.sample_log > MOST_SAMPLE_LOG {
            let remedy = "sample at least every 8 seconds";
            return outside(self.sample_log, "0 to 5 doublings of 250 ms", remedy);
        }
        if !(1..=MOST_WEIGHT_LOG).contains(&self.weight_log) {
            let remedy = "average over a few samples";
            return outside(self.weight_log, "1 to 30", remedy);
        }
        match bytes_per_second(self.rate) {
            0 => Err(ConfigError::out_of_range(
                "average",
                self.rate,
                "at least 8 bit/s",
                "raise it, or drop all packets of the filter",
            )),
            _ => Ok(()),
        }
    }
}

fn bytes_per_second(rate: Rate) -> u64 {
    rate.bits_per_second() / 8
}

/// The state of an average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// Bytes per second, with eight bits after the point.
    average: u64,
    /// The bytes of the sample that is not complete.
    bytes: u64,
    /// When that sample ends. `None` before the first packet, and after a pause.
    ends: Option<Time>,
    /// The time of a sample, ns.
    sample: u64,
    limit: u64,
    sample_log: u8,
    weight_log: u8,
}

impl Estimate {
    pub(super) fn of(average: &Average) -> Estimate {
        Estimate {
            average: 0,
            bytes: 0,
            ends: None,
            sample: 250_000_000 << average.sample_log,
            limit: bytes_per_second(average.rate),
            sample_log: average.sample_log,
            weight_log: average.weight_log,
        }
    }

    /// Counts a packet. Returns whether the average is below the limit.
    #[inline]
    pub(super) fn conforms(&mut self, length: u32, now: Time) -> bool {
        let mut ends = self.ends.unwrap_or(now + self.sample);
        while ends <= now {
            self.take_sample();
            ends += self.sample;
            if self.average >> self.weight_log == 0 && ends <= now {
                // It falls no more, as in Linux: the rest of the pause changes nothing.
                ends = now + self.sample;
            }
        }
        self.ends = Some(ends);
        self.bytes += u64::from(length);
        self.average >> 8 < self.limit
    }

    /// Moves the average towards the sample (`est_timer`).
    fn take_sample(&mut self) {
        let rate = self.bytes << (10 - self.sample_log);
        self.average = self.average - (self.average >> self.weight_log) + (rate >> self.weight_log);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The kernel's code, with a timer: what it does with packets at these times.
    fn kernel(average: &Average, packets: &[(u64, u32)]) -> Vec<bool> {
        let interval = 250_000_000u64 << average.sample_log;
        let (mut avbps, mut bytes, mut last_bytes) = (0u64, 0u64, 0u64);
        let mut next = packets.first().map_or(0, |first| first.0) + interval;
        let passes = packets.iter().map(|(now, length)| {
            while next <= *now {
                let brate = (bytes - last_bytes) << (10 - average.sample_log);
                let brate = (brate >> average.weight_log).wrapping_sub(avbps >> average.weight_log);
                avbps = avbps.wrapping_add(brate);
                last_bytes = bytes;
                next += interval;
            }
            bytes += u64::from(*length);
            avbps >> 8 < average.rate.bits_per_second() / 8
        });
        passes.collect()
    }

    fn ours(average: &Average, packets: &[(u64, u32)]) -> Vec<bool> {
        let mut estimate = Estimate::of(average);
        let passes = packets
            .iter()
            .map(|(now, length)| estimate.conforms(*length, Time::from_nanos(*now)));
        passes.collect()
    }

    proptest! {
        /// Without a pause in which all is forgotten, exactly the same packets conform as in the kernel.
        #[test]
        fn the_estimate_is_the_kernels(
            pauses in vec((0u64..700_000_000, 60u32..1514), 1..300),
            sample_log in 0u8..=5,
            weight_log in 1u8..=30,
            bits in 8u64..1_000_000,
        ) {
            let rate = Rate::from_bits_per_second(bits).expect("above 0");
            let average = Average { rate, sample_log, weight_log };
            average.check().expect("in its ranges");
            let mut now = 0;
            let packets: Vec<(u64, u32)> = pauses
                .into_iter()
                .map(|(pause, length)| {
                    now += pause;
                    (now, length)
                })
                .collect();
            // Both take samples at the same times as long as the average is more than nothing.
            let settled = {
                let mut estimate = Estimate::of(&average);
                packets.iter().position(|(now, length)| {
                    let was = estimate.ends;
                    estimate.conforms(*length, Time::from_nanos(*now));
                    let grid = was.zip(estimate.ends).map(|(was, is)| is.nanos_since(was));
                    grid.is_some_and(|moved| moved % (250_000_000 << sample_log) != 0)
                })
            };
            let same = &packets[..settled.unwrap_or(packets.len())];
            prop_assert_eq!(ours(&average, same), kernel(&average, same));
        }

        /// A constant rate is what is estimated in the end: below the limit all conforms, above it nothing.
        #[test]
        fn a_constant_rate_is_found(sample_log in 0u8..=5, weight_log in 1u8..=6, above in any::<bool>()) {
            // 1000 bytes each 10 ms are 800 kbit/s.
            let bits = if above { 780_000 } else { 820_000 };
            let rate = Rate::from_bits_per_second(bits).expect("above 0");
            let mut estimate = Estimate::of(&Average { rate, sample_log, weight_log });
            let samples = 12u64 << weight_log;
            let packets = samples * (25 << sample_log);
            let mut conforms = true;
            for number in 0..packets {
                conforms = estimate.conforms(1000, Time::from_nanos(number * 10_000_000));
            }
            prop_assert_eq!(conforms, !above);
        }
    }

    #[test]
    fn a_pause_is_forgotten_and_costs_few_samples() {
        let average = Average {
            rate: Rate::mbit(1),
            sample_log: 0,
            weight_log: 2,
        };
        let mut estimate = Estimate::of(&average);
        for millis in 0..2000 {
            estimate.conforms(1500, Time::from_millis(millis));
        }
        assert!(!estimate.conforms(1500, Time::from_millis(2000)), "12 Mbit/s");
        // Not a year of samples.
        assert!(estimate.conforms(1500, Time::from_nanos(31_536_000_000_000_000)));
        assert_eq!(estimate.average >> 8, 0);
    }
}
