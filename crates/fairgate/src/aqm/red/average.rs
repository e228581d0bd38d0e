//! RED's average of the queue's length, for every discipline that decides by it.
//!
//! An exponentially weighted moving average, `avg <- (1 - w) avg + w q` at each arrival, with `w = 2^-w_log` and in parts
//! of `2^-w_log`, as Linux keeps it: then the step is one shift, one subtraction, one addition.
//!
//! While the queue is idle no packet comes to bring the average down. Floyd and Jacobson pretend that it was given as many
//! empty samples `m` as packets could have been sent: `avg <- (1 - w)^m avg`. Linux tabulates this by the time
//! idle, in 256 cells of `2^cell_log` us: the cell says by how many halves the average shrank. Before the first half a
//! straight line takes the place of the exponential.

use alloc::boxed::Box;

use crate::error::ConfigError;
use crate::rate::Rate;
use crate::time::Time;

/// Cells of the table of halves.
const CELLS: usize = 256;
/// The last cell: as many halves as leave nothing of a 32-bit average.
const ALL_HALVES: u8 = 31;
/// Weights from 2^-1 to 2^-31.
const W_LOGS: core::ops::RangeInclusive<u32> = 1..=31;

/// How the average follows the queue: its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    w_log: u32,
    cell_log: u32,
    halves: Box<[u8; CELLS]>,
}

/// The average of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Average {
    /// In parts of `2^-w_log`.
    scaled: u64,
    /// Since when the queue has been idle; [`Time::MAX`] while it is not.
    idle_since: Time,
}

impl Average {
    /// Of a queue that has been empty forever.
    pub(crate) const NEW: Average = Average {
        scaled: 0,
        idle_since: Time::ZERO,
    };

    /// A dequeue found the queue empty.
    #[inline]
    pub(crate) fn found_empty(&mut self, now: Time) {
        if self.idle_since == Time::MAX {
            self.idle_since = now;
        }
    }

    /// In parts of `2^-w_log`, as it was when it was computed last.
    pub(crate) fn scaled(&self) -> u64 {
        self.scaled
    }

    /// The same average for a filter of another weight.
    pub(crate) fn carried_over(self, from: &Filter, to: &Filter) -> Average {
        Average {
            scaled: self.scaled >> from.w_log << to.w_log,
            ..self
        }
    }
}

impl Filter {
    /// As tc and Linux set it up. The table counts ticks of 64 ns and natural logarithms where the kernel looks cells of
    /// microseconds and halves up, so that the average of an idle queue sinks 22 times as slowly as in the paper.
    pub(crate) fn of_linux(w_log: u32, avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        let micros = micros(avpkt, rate);
        // tc counts whole microseconds and then whole ticks. Below a microsecond it has nothing left to divide by.
        // `f64::floor` is in the standard library only; no number here is negative or beyond 2^63.
        let floor = |number: f64| number as u64 as f64;
        let ticks = match micros {
            ..1.0 => micros * 15.625,
            _ => floor(floor(micros) * 15.625),
        };
        Filter::new(w_log, -log_of_rest(w_log) / ticks)
    }

    /// The nearest to weight `w = 1 - exp(-1/c)` for `c` packets of `avpkt` bytes a second at `rate`: the average then forgets in
    /// about a second (Floyd, Gummadi, Shenker 2001, section 5).
    pub(crate) fn of_rate(avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        // For all c worth queueing at, w is 1/c.
        let packets = 1e6 / micros(avpkt, rate);
        let w_log = W_LOGS
            .into_iter()
            .find(|w_log| packets < f64::from(1u32 << w_log) * core::f64::consts::SQRT_2);
        Filter::of_paper(w_log.unwrap_or(*W_LOGS.end()), avpkt, rate)
    }

    /// As in the paper: one empty sample for each packet of `avpkt` bytes that could have been sent at `rate`.
    pub(crate) fn of_paper(w_log: u32, avpkt: u32, rate: Rate) -> Result<Filter, ConfigError> {
        let halves = -log_of_rest(w_log) / core::f64::consts::LN_2;
        Filter::new(w_log, halves / micros(avpkt, rate))
    }

    /// `per_unit` halves for each unit of idle time. A unit is what is looked up as a microsecond.
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
                "so low that an idle queue's average would take hours to sink",
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

    /// The weight is 2^-this.
    #[inline]
    pub(crate) fn w_log(&self) -> u32 {
        self.w_log
    }

    /// The logarithms of the weight, 2^-this, and of the microseconds in a cell of the table of idle times.
    pub(crate) fn logarithms(&self) -> (u32, u32) {
        (self.w_log, self.cell_log)
    }

    /// A packet arrives at a queue that is `queued` long without it and not idle. The average, scaled.
    #[inline]
    pub(crate) fn sample(&self, average: &mut Average, queued: u64) -> u64 {
        average.scaled = average.scaled - (average.scaled >> self.w_log) + queued;
        average.scaled
    }

    /// The same of a queue that may be idle, which the arrival ends: that adds no sample.
    pub(crate) fn arrival(&self, average: &mut Average, queued: u64, now: Time) -> u64 {
        if average.idle_since == Time::MAX {
            return self.sample(average, queued);
        }
        average.scaled = self.at(average, now);
        average.idle_since = Time::MAX;
        average.scaled
    }

    /// What the average has sunk to by now, scaled.
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

/// The weight 2^-w_log that lets a burst of so many packets of `avpkt` bytes through before the average reaches `min`:
/// the first for which `burst + 1 - min/avpkt <= (1 - (1-w)^burst) / w`, as tc chooses it.
pub(crate) fn w_log_for_burst(min: u32, burst: u32, avpkt: u32) -> Result<u32, ConfigError> {
    let wanted = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    if wanted < 1.0 {
        return Err(ConfigError::conflict(
            "burst",
            burst,
            format!("at least {}, the packets in `min`", min.div_ceil(avpkt)),
            "raise it, or leave it out to have it chosen",
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

/// Time to send a packet, in microseconds of a float: for tables made at construction, never on the packet path.
fn micros(avpkt: u32, rate: Rate) -> f64 {
    f64::from(avpkt) * 8e6 / rate.bits_per_second() as f64
}

/// `ln(1 - 2^-w_log)` by its series, so that the last digit is the same on every machine.
fn log_of_rest(w_log: u32) -> f64 {
    let x = 1.0 / f64::from(1u32 << w_log);
    let mut term = 1.0;
    // 2^-60 is lost in the last digit of the sum.
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

    /// tc's table for avpkt 1000, 10 Mbit/s and Wlog 3, as the kernel was given it.
    #[test]
    fn the_table_is_that_of_tc() {
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
    fn weights_for_bursts_are_those_of_tc() {
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
    fn a_table_over_hours_is_refused() {
        let rate = Rate::from_bits_per_second(8).unwrap();
        let error = Filter::of_linux(20, 1500, rate).unwrap_err();
        assert_eq!(error.parameter(), Some("bandwidth"));
        assert!(
            Filter::of_linux(9, 64, Rate::mbit(400_000)).is_ok(),
            "less than 1 us a packet"
        );
    }

    proptest! {
        /// Against the real-valued average: the fixed point falls short by less than one part in each sample, and
        /// forgets its errors as it forgets samples.
        #[test]
        fn the_average_is_that_of_real_numbers(
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

        /// The table of the paper's damping against `(1-w)^m`: never off by more than one half and a cell, until its last cell,
        /// where nothing is left.
        #[test]
        fn an_idle_queue_is_forgotten_as_the_paper_says(w_log in 1u32..10, packets in 0u32..2000) {
            let filter = Filter::of_paper(w_log, 1250, Rate::mbit(10)).unwrap();
            let average = Average { scaled: 1 << 31, idle_since: Time::ZERO };
            // 1250 bytes take a millisecond.
            let ours = filter.at(&average, Time::from_millis(packets.into())) as f64;
            let weight = 1.0 / f64::from(1u32 << w_log);
            let exact = power(1.0 - weight, packets) * f64::from(1u32 << 31);
            prop_assert!(ours <= 2.2 * exact + 1.0 || exact < 2.0, "{ours} for {exact}");
            let in_last_cell = u64::from(packets) * 1000 >= 255 << filter.cell_log;
            prop_assert!(in_last_cell || 2.2 * ours + 2.0 >= exact, "{ours} for {exact}");
        }

        /// The longer idle, the lower the average.
        #[test]
        fn idle_averages_only_sink(w_log in 1u32..12, scaled in any::<u32>(), times in [0u64..1 << 42, 0u64..1 << 42]) {
            let filter = Filter::of_linux(w_log, 1000, Rate::mbit(10)).unwrap();
            let average = Average { scaled: scaled.into(), idle_since: Time::ZERO };
            let [early, late] = [times[0].min(times[1]), times[0].max(times[1])].map(Time::from_nanos);
            let (early, late) = (filter.at(&average, early), filter.at(&average, late));
            prop_assert!(late <= early && early <= u64::from(scaled), "{late} after {early}");
        }
    }
}
