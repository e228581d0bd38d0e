//! Records durations, or other numbers such as rates: exact count, sum, minimum and maximum, and a histogram
//! for percentiles.

use super::histogram::{Histogram, THREE_DIGITS, TWO_DIGITS};

/// Records durations in nanoseconds. It allocates memory with the first duration.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    histogram: Histogram,
    count: u64,
    sum: u128,
    squares: u128,
    least: u64,
    most: u64,
}

impl Recorder {
    /// Creates a recorder whose percentiles are accurate to 0.1 %, for interfaces.
    pub(crate) const fn new() -> Recorder {
        Recorder::with_histogram(Histogram::new(THREE_DIGITS))
    }

    /// Creates a recorder whose percentiles are accurate to 1 %, for flows and groups: there may be many.
    pub(crate) const fn coarse() -> Recorder {
        Recorder::with_histogram(Histogram::new(TWO_DIGITS))
    }

    const fn with_histogram(histogram: Histogram) -> Recorder {
        Recorder {
            histogram,
            count: 0,
            sum: 0,
            squares: 0,
            least: u64::MAX,
            most: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.count += 1;
        self.sum += u128::from(nanos);
        self.squares = self.squares.saturating_add(u128::from(nanos) * u128::from(nanos));
        // Branches, because new extremes are rare.
        if nanos < self.least {
            self.least = nanos;
        }
        if nanos > self.most {
            self.most = nanos;
        }
        self.histogram.record(nanos);
    }

    /// Prefetches the count of this duration.
    #[inline]
    pub(crate) fn prefetch(&self, nanos: u64) {
        self.histogram.prefetch(nanos);
    }

    /// Adds all that `other`, a recorder of the same accuracy, has recorded.
    pub(crate) fn add(&mut self, other: &Recorder) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.histogram.add(&other.histogram);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> u128 {
        self.sum
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

    /// Returns the harmonic mean, rounded down. It is 0 if nothing or a 0 was recorded. It is computed from
    /// the histogram, because a division for each packet costs too much. It is therefore accurate to half of
    /// a percentile's error.
    pub(crate) fn harmonic_mean(&self) -> u64 {
        if self.count == 0 || self.least == 0 {
            return 0;
        }
        let inverses = self.histogram.iter().map(|(low, high, count)| {
            let (low, high) = (low.max(self.least), high.min(self.most));
            count as f64 / (low as f64 + (high - low) as f64 / 2.0)
        });
        (self.count as f64 / inverses.sum::<f64>()) as u64
    }

    /// Returns the values that these shares of the durations, in ascending order, do not exceed. They have
    /// the accuracy of the histogram, and are never above the longest duration. One pass over the histogram
    /// computes all of them.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        if self.count == 0 {
            return [0; N];
        }
        let mut buckets = self.histogram.iter();
        let (mut value, mut below) = (self.min(), 0);
        shares.map(|share| {
            let rank = (share * self.count as f64).ceil() as u64;
            while below < rank
                && let Some((_, high, count)) = buckets.next()
            {
                value = high;
                below += count;
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
        let mut reference = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        for nanos in [7, 7, 1_000, 30_000, 30_000, 30_000, 5_000_000] {
            reference.record(nanos).unwrap();
        }
        let shares = [0.0, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0];
        let expected = shares.map(|share| reference.value_at_quantile(share).clamp(7, 5_000_000));
        assert_eq!(recorder.quantiles(shares), expected);
    }

    #[test]
    fn quantiles_of_a_coarse_recorder_are_accurate_to_a_hundredth() {
        let mut recorder = Recorder::coarse();
        for nanos in 1..=100_000u64 {
            recorder.record(nanos * 1_000);
        }
        for (share, exact) in [(0.1, 10_000_000), (0.5, 50_000_000), (0.99, 99_000_000)] {
            let [found] = recorder.quantiles([share]);
            assert!(found.abs_diff(exact) <= exact / 100, "{share}: {found}");
        }
        assert_eq!(recorder.mean(), 50_000_500);
    }

    #[test]
    fn the_harmonic_mean_is_that_of_the_durations() {
        let mut recorder = Recorder::coarse();
        let mut inverses = 0.0;
        for nanos in (1..=10_000u64).map(|number| 1_000_000 + number * number) {
            recorder.record(nanos);
            inverses += 1.0 / nanos as f64;
        }
        let exact = 10_000.0 / inverses;
        let found = recorder.harmonic_mean() as f64;
        assert!(
            (found / exact - 1.0).abs() < 0.004,
            "{found}, but exactly {exact}"
        );
        recorder.record(0);
        assert_eq!(recorder.harmonic_mean(), 0);
    }

    #[test]
    fn a_sum_of_recorders_has_all_durations() {
        let of = |range: std::ops::Range<u64>| {
            let mut recorder = Recorder::coarse();
            range.for_each(|nanos| recorder.record(nanos * nanos));
            recorder
        };
        let mut sum = of(3..500);
        sum.add(&of(500..2_000));
        sum.add(&Recorder::coarse());
        let whole = of(3..2_000);
        let figures = |it: &Recorder| (it.count(), it.mean(), it.deviation(), it.min(), it.max());
        assert_eq!(figures(&sum), figures(&whole));
        assert_eq!(sum.quantiles([0.1, 0.5, 0.9]), whole.quantiles([0.1, 0.5, 0.9]));
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
