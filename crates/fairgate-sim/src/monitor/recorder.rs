//! Records durations: exact count, sum, minimum and maximum, and a histogram of three significant digits for
//! percentiles.

use hdrhistogram::Histogram;

/// Records durations in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
    sum: u128,
    squares: u128,
    least: u64,
    most: u64,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder {
            histogram: Histogram::new(3).expect("the crate allows one to five digits"),
            sum: 0,
            squares: 0,
            least: u64::MAX,
            most: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.sum += u128::from(nanos);
        self.squares = self.squares.saturating_add(u128::from(nanos) * u128::from(nanos));
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
        // The value 0 has its own bucket, and the histogram grows with the longest duration. It takes every
        // value.
        self.histogram
            .record(nanos)
            .expect("a growing histogram takes every duration");
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the mean, rounded down. It is 0 if nothing was recorded.
    pub(crate) fn mean(&self) -> u64 {
        self.sum
            .checked_div(self.count().into())
            .map_or(0, |mean| mean as u64)
    }

    /// Returns the standard deviation, rounded down. It is 0 if nothing was recorded. It is exact while the
    /// count times the sum of squares fits 128 bits. That is enough for a thousand million durations of a
    /// minute.
    pub(crate) fn deviation(&self) -> u64 {
        let count = u128::from(self.count());
        if count == 0 {
            return 0;
        }
        // The count squared, times the variance.
        match (count.checked_mul(self.squares), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square)) => ((squares - square) / (count * count)).isqrt() as u64,
            _ => {
                let mean = self.sum as f64 / count as f64;
                libm::sqrt((self.squares as f64 / count as f64 - mean * mean).max(0.0)) as u64
            }
        }
    }

    pub(crate) fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.least }
    }

    pub(crate) fn max(&self) -> u64 {
        self.most
    }

    /// Returns the durations that these shares of all durations do not exceed. `shares` must be in ascending
    /// order. The results are accurate to 0.1 %, and never above the longest duration. One pass over the
    /// histogram computes all of them.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        let mut buckets = self.histogram.iter_recorded();
        let (mut value, mut below) = (self.min(), 0);
        shares.map(|share| {
            let rank = (share * self.count() as f64).ceil() as u64;
            while below < rank
                && let Some(bucket) = buckets.next()
            {
                value = bucket.value_iterated_to();
                below += bucket.count_since_last_iteration();
            }
            value.clamp(self.min(), self.most)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_accurate_to_a_thousandth() {
        let mut recorder = Recorder::new();
        for nanos in 1..=100_000u64 {
            recorder.record(nanos * 1_000);
        }
        assert_eq!((recorder.min(), recorder.max()), (1_000, 100_000_000));
        assert_eq!(recorder.mean(), 50_000_500);
        // The variance of the numbers 1 to n is (n^2 - 1) / 12.
        assert_eq!(recorder.deviation(), 28_867_513);
        let [least, median, most] = recorder.quantiles([0.0, 0.5, 1.0]);
        assert_eq!((least, most), (1_000, 100_000_000));
        assert!(median.abs_diff(50_000_000) <= 50_000, "{median}");
    }

    #[test]
    fn quantiles_equal_those_of_the_histogram() {
        let mut recorder = Recorder::new();
        for nanos in [7, 7, 1_000, 30_000, 30_000, 30_000, 5_000_000] {
            recorder.record(nanos);
        }
        let shares = [0.0, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0];
        let expected = shares.map(|share| recorder.histogram.value_at_quantile(share).clamp(7, 5_000_000));
        assert_eq!(recorder.quantiles(shares), expected);
    }

    #[test]
    fn an_empty_recorder_returns_zeros() {
        let recorder = Recorder::new();
        assert_eq!(
            (
                recorder.mean(),
                recorder.min(),
                recorder.max(),
                recorder.quantiles([0.99])
            ),
            (0, 0, 0, [0])
        );
    }
}
