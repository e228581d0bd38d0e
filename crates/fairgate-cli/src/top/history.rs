//! The last intervals of a class.

use std::collections::VecDeque;

/// How many intervals are kept. A screen is seldom wider. With 20,000 classes that send, this is 40 MB.
pub(crate) const LENGTH: usize = 240;

/// The largest sample. Curves multiply them by a few hundred, in 64 bits.
const MOST: f64 = 1e15;

/// The rates and delays of a class in the last intervals. It grows only when the class does something.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Bits per second, and the delay in microseconds. It is 0 if no packet left.
    samples: VecDeque<(f32, f32)>,
    /// The number of the last interval.
    last: u64,
}

impl History {
    /// Adds an interval. Those since the last one had nothing.
    pub(crate) fn push(&mut self, tick: u64, rate_bps: f64, delay_us: Option<f64>) {
        self.fill_to(tick.saturating_sub(1));
        let sample = |value: f64| value.min(MOST) as f32;
        self.add((sample(rate_bps), sample(delay_us.unwrap_or(0.0))));
        self.last = tick;
    }

    fn fill_to(&mut self, tick: u64) {
        if self.samples.is_empty() {
            return;
        }
        for _ in 0..tick.saturating_sub(self.last).min(LENGTH as u64) {
            self.add((0.0, 0.0));
        }
    }

    fn add(&mut self, sample: (f32, f32)) {
        if self.samples.len() == LENGTH {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns rates in bits per second and delays in microseconds, from the interval `tick` back.
    pub(crate) fn back_from(&self, tick: u64) -> (Vec<u64>, Vec<u64>) {
        let idle = tick.saturating_sub(self.last).min(LENGTH as u64) as usize;
        let idle = std::iter::repeat_n((0.0, 0.0), idle);
        let all = idle.chain(self.samples.iter().rev().copied()).take(LENGTH);
        all.map(|(rate, delay)| (rate as u64, delay as u64)).unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_intervals_are_zeros() {
        let mut history = History::default();
        history.push(3, 8.0, Some(1.0));
        history.push(6, 16.0, None);
        assert_eq!(history.back_from(7), (vec![0, 16, 0, 0, 8], vec![0, 0, 0, 0, 1]));
        for tick in 7..2000 {
            history.push(tick, tick as f64, None);
        }
        let (rates, _) = history.back_from(1999);
        assert_eq!((rates.len(), rates[0], rates[LENGTH - 1]), (LENGTH, 1999, 1760));
        history.push(u64::MAX, 1.0, None);
        assert_eq!(history.back_from(u64::MAX).0[..2], [1, 0]);
    }
}
