//! Durations: exact count, sum, least and most, and a histogram of three significant digits for percentiles.

use hdrhistogram::Histogram;

/// Records nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
    sum: u128,
    least: u64,
    most: u64,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder {
            histogram: Histogram::new(3)
                .expect("three digits are among the one to five that the crate offers"),
            sum: 0,
            least: u64::MAX,
            most: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.sum += u128::from(nanos);
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
        // 0 has a bucket of its own; the histogram grows with the longest duration, so nothing is refused.
        self.histogram
            .record(nanos)
            .expect("a histogram that grows takes every duration");
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Rounded down; 0 if nothing was recorded.
    pub(crate) fn mean(&self) -> u64 {
        self.sum
            .checked_div(self.count().into())
            .map_or(0, |mean| mean as u64)
    }

    pub(crate) fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.least }
    }

    pub(crate) fn max(&self) -> u64 {
        self.most
    }

    /// The duration that a share of `quantile` does not exceed; within 0.1 %, and never beyond the longest.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        self.histogram
            .value_at_quantile(quantile)
            .clamp(self.min(), self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let mut recorder = Recorder::new();
        for nanos in 1..=100_000u64 {
            recorder.record(nanos * 1_000);
        }
        assert_eq!((recorder.min(), recorder.max()), (1_000, 100_000_000));
        assert_eq!(recorder.mean(), 50_000_500);
        let median = recorder.quantile(0.5);
        assert!(median.abs_diff(50_000_000) <= 50_000, "{median}");
        assert_eq!(recorder.quantile(1.0), 100_000_000);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let recorder = Recorder::new();
        assert_eq!(
            (
                recorder.mean(),
                recorder.min(),
                recorder.max(),
                recorder.quantile(0.99)
            ),
            (0, 0, 0, 0)
        );
    }
}
