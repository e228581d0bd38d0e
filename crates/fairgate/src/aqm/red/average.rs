//! RED's average of the queue's length, for all disciplines that use it.
//!
//! It is an exponentially weighted moving average, `avg <- (1 - w) avg + w q` at each arrival, with `w =
//! 2^-w_log`. As in Linux it is stored in units of `2^-w_log`, so that a step is one shift, one subtraction
//! and one addition.
//!
//! While the queue is idle no packet arrives to lower the average. Floyd and Jacobson then add `m` samples of
//! an empty queue, `m` being the number of packets that could have been sent: `avg <- (1 - w)^m avg`. Linux
//! has a table of this by the idle time, in 256 cells of `2^cell_log` us. A cell holds how often the average
//! is halved. Before the first halving a straight line replaces the exponential.

use alloc::boxed::Box;

use crate::error::ConfigError;
use crate::rate::Rate;
use crate::time::Time;

/// The number of cells in the table of halvings.
const CELLS: usize = 256;
/// The value of the last cell: this many halvings leave nothing of a 32-bit average.
const ALL_HALVES: u8 = 31;
/// The range of weights: from 2^-1 to 2^-31.
const W_LOGS: core::ops::RangeInclusive<u32> = 1..=31;

/// How the average follows the queue: the parameters of the filter.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    w_log: u32,
    cell_log: u32,
    halves: Box<[u8; CELLS]>,
}

/// The average of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Average {
    /// In units of `2^-w_log`.
    scaled: u64,
    /// The time since which the queue has been idle; [`Time::MAX`] while it is not.
    idle_since: Time,
}

impl Average {
    /// The average of a queue that has always been empty.
    pub(crate) const NEW: Average = Average {
        scaled: 0,
        idle_since: Time::ZERO,
    };

    /// Notes that a dequeue found the queue empty.
    #[inline]
    pub(crate) fn found_empty(&mut self, now: Time) {
        if self.idle_since == Time::MAX {
            self.idle_since = now;
        }
    }

    /// Whether no packet came since the queue was found empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_since != Time::MAX
    }

    /// The average when it was last computed, in units of `2^-w_log`.
    pub(crate) fn scaled(&self) -> u64 {
        self.scaled
    }

    /// Converts the average for a filter with another weight.
    pub(crate) fn carried_over(self, from: &Filter, to: &Filter) -> Average {
        Average {
            scaled: self.scaled >> from.w_log << to.w_log,
            ..self
        }
    }
}

impl Filter {
    /// The filter as tc and Linux set it up. The table's input is ticks of 64 ns and natural logarithms,
    /// while the kernel looks up microseconds and halvings. So the average of an idle queue decreases 22
    /// times as slowly as in the paper.
    pub(crate) fn of_linux(w_log: u32, avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        let micros = micros(avpkt, rate);
        // tc counts whole microseconds and then whole ticks. Below one microsecond its divisor would be 0.
        // `f64::floor` needs the standard library; no number here is negative or above 2^63.
        let floor = |number: f64| number as u64 as f64;
        let ticks = match micros {
            ..1.0 => micros * 15.625,
            _ => floor(floor(micros) * 15.625),
        };
        Filter::new(w_log, -log_of_rest(w_log) / ticks)
    }

    /// The filter with the weight nearest to `w = 1 - exp(-1/c)` for `c` packets of `avpkt` bytes per second
    /// at `rate`. The average then forgets in about one second (Floyd, Gummadi, Shenker 2001, section 5).
    pub(crate) fn of_rate(avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        // For all c that matter, w is about 1/c.
        let packets = 1e6 / micros(avpkt, rate);
        let w_log = W_LOGS
            .into_iter()
            .find(|w_log| packets < f64::from(1u32 << w_log) * core::f64::consts::SQRT_2);
        Filter::of_paper(w_log.unwrap_or(*W_LOGS.end()), avpkt, rate)
    }

    /// The filter of the paper: one sample of an empty queue for each packet of `avpkt` bytes that could have
    /// been sent at `rate`.
    pub(crate) fn of_paper(w_log: u32, avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        let halves = -log_of_rest(w_log) / core::f64::consts::LN_2;
        Filter::new(w_log, halves / micros(avpkt, rate))
    }

    /// A filter with `per_unit` halvings per unit of idle time. The table treats a unit as a microsecond.
    fn new(w_log: u32, per_unit: f64) -> Result<Filter, ConfigError> {
        let mut span = f64::from(ALL_HALVES) / per_unit;
        let mut cell_log = 0;
        while span >= 512.0 {
            span /= 2.0;
            cell_log += 1;
        }
        if cell_log >= 32 {
            return Err(ConfigError::conflict(
                "bandwidth",
                "so low that an idle queue's average would take hours to decrease",
                "high enough for the table of idle times",
                "raise `bandwidth`, or lower `burst`",
            ));
        }
        let mut halves = Box::new([0; CELLS]);
        for (cell, halves) in halves.iter_mut().enumerate().skip(1) {
            let exact = ((cell as u64) << cell_log) as f64 * per_unit;
            *halves = exact.min(f64::from(ALL_HALVES)) as u8;
        }
        halves[CELLS - 1] = ALL_HALVES;
        Ok(Filter {
            w_log,
            cell_log,
            halves,
        })
    }

    /// The logarithm of the weight, which is 2^-this.
    #[inline]
    pub(crate) fn w_log(&self) -> u32 {
        self.w_log
    }

    /// The logarithms of the weight, which is 2^-this, and of the microseconds per cell of the table of idle
    /// times.
    pub(crate) fn logarithms(&self) -> (u32, u32) {
        (self.w_log, self.cell_log)
    }

    /// Updates the average for a packet that arrives at a queue of length `queued` (without it) that is not
    /// idle. Returns the scaled average.
    #[inline]
    pub(crate) fn sample(&self, average: &mut Average, queued: u64) -> u64 {
        average.scaled = average.scaled - (average.scaled >> self.w_log) + queued;
        average.scaled
    }

    /// Does the same for a queue that may be idle. An arrival that ends an idle time adds no sample.
    pub(crate) fn arrival(&self, average: &mut Average, queued: u64, now: Time) -> u64 {
        if average.idle_since == Time::MAX {
            return self.sample(average, queued);
        }
        average.scaled = self.at(average, now);
        average.idle_since = Time::MAX;
        average.scaled
    }

    /// The scaled average now, after idle time.
    pub(crate) fn at(&self, average: &Average, now: Time) -> u64 {
        if average.idle_since == Time::MAX {
            return average.scaled;
        }
        let longest = (CELLS as u64 - 1) << self.cell_log;
        let micros = (now.nanos_since(average.idle_since) / 1000).min(longest);
        let halves = self.halves[(micros >> self.cell_log) as usize & (CELLS - 1)];
        if halves > 0 {
            return average.scaled >> halves;
        }
        // (1 - w)^m is about 1 - m w.
        let half = average.scaled >> 1;
        let less = (u128::from(average.scaled) * u128::from(micros)) >> self.cell_log;
        if less < u128::from(half) {
            average.scaled - less as u64
        } else {
            half
        }
    }
}

/// The logarithm of the weight 2^-w_log that lets a burst of `burst` packets of `avpkt` bytes pass before the
/// average reaches `min`: the first for which `burst + 1 - min/avpkt <= (1 - (1-w)^burst) / w`, as tc chooses
/// it.
pub(crate) fn w_log_for_burst(min: u32, burst: u32, avpkt: u32) -> Result<u32, ConfigError> {
    let wanted = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    if wanted < 1.0 {
        return Err(ConfigError::conflict(
            "burst",
            burst,
            format!("at least {}, the packets in `min`", min.div_ceil(avpkt)),
            "raise it, or leave it out to have it derived",
        ));
    }
    W_LOGS
        .into_iter()
        .find(|&w_log| {
            let weight = 1.0 / f64::from(1u32 << w_log);
            wanted <= (1.0 - power(1.0 - weight, burst)) / weight
        })
        .ok_or_else(|| {
            ConfigError::conflict(
                "min",
                min,
                format!("more than one packet of `avpkt`, {avpkt} bytes"),
                "raise it to five packets or more, or lower `avpkt`",
            )
        })
}

/// The time to send a packet, in microseconds. For tables made at construction; never used on the packet
/// path.
fn micros(avpkt: u32, rate: Rate) -> f64 {
    f64::from(avpkt) * 8e6 / rate.bits_per_second() as f64
}

/// `ln(1 - 2^-w_log)` by its series, so that the last digit is equal on all machines.
fn log_of_rest(w_log: u32) -> f64 {
    let x = 1.0 / f64::from(1u32 << w_log);
    let mut term = 1.0;
    // Terms beyond the 60th do not change the last digit of the sum.
    (1..=60).fold(0.0, |sum, n| {
        term *= x;
        sum - term / f64::from(n)
    })
}

/// `base^exponent` by squaring.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// tc's table for avpkt 1000, 10 Mbit/s and Wlog 3, as the kernel received it.
    #[test]
    fn the_table_equals_that_of_tc() {
        let filter = Filter::of_linux(3, 1000, Rate::mbit(10)).unwrap();
        assert_eq!(filter.cell_log, 13);
        let firsts: Vec<usize> = (0..=22)
            .map(|halves| filter.halves.iter().position(|&cell| cell == halves).unwrap())
            .collect();
        let recorded = [
            0, 12, 23, 35, 46, 58, 69, 80, 92, 103, 115, 126, 138, 149, 160, 172, 183, 195, 206, 218, 229,
            240, 252,
        ];
        assert_eq!(firsts, recorded);
        assert_eq!(filter.halves[255], 31);
    }

    #[test]
    fn weights_for_bursts_equal_those_of_tc() {
        for (min, burst, avpkt, w_log) in [(15_000, 20, 1000, 3), (30_000, 55, 1000, 5), (1000, 3, 500, 2)] {
            assert_eq!(w_log_for_burst(min, burst, avpkt).unwrap(), w_log);
        }
        assert_eq!(
            w_log_for_burst(30_000, 20, 1000).unwrap_err().parameter(),
            Some("burst")
        );
        assert_eq!(
            w_log_for_burst(999, 10, 1000).unwrap_err().parameter(),
            Some("min")
        );
    }

    #[test]
    fn a_table_over_hours_is_rejected() {
        let rate = Rate::from_bits_per_second(8).unwrap();
        let error = Filter::of_linux(20, 1500, rate).unwrap_err();
        assert_eq!(error.parameter(), Some("bandwidth"));
        assert!(
            Filter::of_linux(9, 64, Rate::mbit(400_000)).is_ok(),
            "less than 1 us per packet"
        );
    }

    proptest! {
        /// Compares with the average of real numbers: the fixed-point one loses less than one unit per
        /// sample, and forgets its errors as it forgets samples.
        #[test]
        fn the_average_equals_that_of_real_numbers(
            w_log in 1u32..12,
            queued in prop::collection::vec(0u64..200_000, 1..400),
        ) {
            let filter = Filter::of_paper(w_log, 1000, Rate::mbit(10)).unwrap();
            let mut average = Average { scaled: 0, idle_since: Time::MAX };
            let weight = 1.0 / f64::from(1u32 << w_log);
            let mut exact = 0.0;
            for queued in queued {
                filter.arrival(&mut average, queued, Time::ZERO);
                exact += weight * (queued as f64 - exact);
                let ours = average.scaled as f64 * weight;
                prop_assert!((ours - exact).abs() < 1.0, "{ours} for {exact}");
            }
        }

        /// Compares the table with the paper's `(1-w)^m`: the error is at most one halving and a cell, up to
        /// the last cell, where nothing is left.
        #[test]
        fn the_average_of_an_idle_queue_decreases_as_in_the_paper(w_log in 1u32..10, packets in 0u32..2000) {
            let filter = Filter::of_paper(w_log, 1250, Rate::mbit(10)).unwrap();
            let average = Average { scaled: 1 << 31, idle_since: Time::ZERO };
            // 1250 bytes take one millisecond.
            let ours = filter.at(&average, Time::from_millis(packets.into())) as f64;
            let weight = 1.0 / f64::from(1u32 << w_log);
            let exact = power(1.0 - weight, packets) * f64::from(1u32 << 31);
            prop_assert!(ours <= 2.2 * exact + 1.0 || exact < 2.0, "{ours} for {exact}");
            let in_last_cell = u64::from(packets) * 1000 >= 255 << filter.cell_log;
            prop_assert!(in_last_cell || 2.2 * ours + 2.0 >= exact, "{ours} for {exact}");
        }

        /// A longer idle time gives a lower average.
        #[test]
        fn idle_averages_only_decrease(
            w_log in 1u32..12,
            scaled in any::<u32>(),
            times in [0u64..1 << 42, 0u64..1 << 42],
        ) {
            let filter = Filter::of_linux(w_log, 1000, Rate::mbit(10)).unwrap();
            let average = Average { scaled: scaled.into(), idle_since: Time::ZERO };
            let [early, late] = [times[0].min(times[1]), times[0].max(times[1])].map(Time::from_nanos);
            let (early, late) = (filter.at(&average, early), filter.at(&average, late));
            prop_assert!(late <= early && early <= u64::from(scaled), "{late} after {early}");
        }
    }
}
