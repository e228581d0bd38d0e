//! A histogram of durations in little memory: it has buckets only from the least to the largest duration.
//!
//! The buckets are those of HdrHistogram: the numbers below 2^(bits + 1) have a bucket each, and larger
//! numbers share the buckets that their first `bits + 1` binary digits select. The relative width of a bucket
//! is therefore at most 2^-bits. A count has 16 bits. When it overflows, the overflow is kept beside it, so
//! that counts stay exact.
//!
//! A flow's delays lie between the delay of its empty path and that of full queues, often within a factor of
//! ten. With two digits this takes about 1 kB. A histogram from 1 ns on takes eight times as much.

use std::collections::BTreeMap;

use prefetch_index::prefetch_index;

/// The significant binary digits of a histogram of two significant decimal digits: buckets are 0.8 % wide.
pub(super) const TWO_DIGITS: u8 = 7;
/// The same for three decimal digits: buckets are 0.1 % wide.
pub(super) const THREE_DIGITS: u8 = 10;

/// Buckets are added in multiples of this number: as many counts as fill half a line of the cache.
const STEP: u32 = 16;

/// A histogram.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// The counts of the buckets from `first` on, modulo 2^16.
    counts: Vec<u16>,
    first: u32,
    bits: u8,
    /// The overflows of counts by bucket, in units of 2^16.
    carries: BTreeMap<u32, u64>,
}

impl Histogram {
    /// Creates an empty histogram, which allocates nothing. The relative width of its buckets is 2^-`bits`.
    pub(super) const fn new(bits: u8) -> Histogram {
        Histogram {
            counts: Vec::new(),
            first: 0,
            bits,
            carries: BTreeMap::new(),
        }
    }

    /// Counts a number.
    #[inline(always)]
    pub(super) fn record(&mut self, value: u64) {
        let bucket = self.bucket(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => {
                *count = count.wrapping_add(1);
                if *count == 0 {
                    *self.carries.entry(bucket).or_default() += 1;
                }
            }
            None => self.add_to(bucket, 1),
        }
    }

    /// Prefetches the count of a number.
    #[inline]
    pub(super) fn prefetch(&self, value: u64) {
        let place = self.bucket(value).wrapping_sub(self.first) as usize;
        if place < self.counts.len() {
            prefetch_index(&self.counts, place);
        }
    }

    /// Adds the counts of another histogram with buckets of the same width.
    pub(super) fn add(&mut self, other: &Histogram) {
        assert_eq!(
            self.bits, other.bits,
            "both histograms must have the same buckets"
        );
        for (bucket, count) in other.buckets() {
            self.add_to(bucket, count);
        }
    }

    /// Returns the smallest and the largest number of each bucket that is not empty, and its count, in
    /// ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets().map(|(bucket, count)| {
            let (low, high) = self.range(bucket);
            (low, high, count)
        })
    }

    fn buckets(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (self.first..).zip(&self.counts).filter_map(|(bucket, &count)| {
            let carried = self.carries.get(&bucket).map_or(0, |carry| carry << 16);
            let count = carried + u64::from(count);
            (count > 0).then_some((bucket, count))
        })
    }

    #[inline]
    fn bucket(&self, value: u64) -> u32 {
        let bits = u32::from(self.bits);
        let shift = 63 - (value | 1 << bits).leading_zeros() - bits;
        (shift << bits) + (value >> shift) as u32
    }

    /// Returns the smallest and the largest number of a bucket.
    fn range(&self, bucket: u32) -> (u64, u64) {
        let shift = (bucket >> self.bits).saturating_sub(1);
        let digits = u64::from(bucket - (shift << self.bits));
        let low = digits << shift;
        (low, low + ((1 << shift) - 1))
    }

    #[cold]
    fn add_to(&mut self, bucket: u32, count: u64) {
        self.make_room(bucket);
        let place = &mut self.counts[(bucket - self.first) as usize];
        let sum = u64::from(*place) + count;
        *place = sum as u16;
        if sum >> 16 > 0 {
            *self.carries.entry(bucket).or_default() += sum >> 16;
        }
    }

    /// Makes sure that the bucket exists.
    fn make_room(&mut self, bucket: u32) {
        let (low, high) = (bucket / STEP * STEP, (bucket / STEP + 1) * STEP);
        if self.counts.is_empty() {
            self.first = low;
        }
        let end = self.first + self.counts.len() as u32;
        if high > end {
            self.counts.reserve_exact((high - end) as usize);
            self.counts.resize((high - self.first) as usize, 0);
        }
        if low < self.first {
            let missing = (self.first - low) as usize;
            self.counts.reserve_exact(missing);
            self.counts.splice(..0, std::iter::repeat_n(0, missing));
            self.first = low;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..4096,
            any::<u64>(),
            (0u32..64).prop_map(|bit| 1 << bit),
            Just(u64::MAX)
        ]
    }

    proptest! {
        /// Every number is counted in a bucket that contains it, and no bucket is too wide.
        #[test]
        fn buckets_contain_their_numbers(
            values in prop::collection::vec(numbers(), 1..200),
            bits in prop::sample::select(vec![TWO_DIGITS, THREE_DIGITS]),
        ) {
            let mut histogram = Histogram::new(bits);
            for &value in &values {
                histogram.record(value);
            }
            let mut above = 0;
            let mut sum = 0;
            for (low, high, count) in histogram.iter() {
                prop_assert!(u128::from(low) >= above);
                above = u128::from(high) + 1;
                prop_assert!((high - low) <= low >> bits);
                let within = values.iter().filter(|&&value| (low..=high).contains(&value)).count();
                prop_assert_eq!(count, within as u64);
                sum += count;
            }
            prop_assert_eq!(sum, values.len() as u64);
        }

        /// The buckets are those of HdrHistogram with as many digits.
        #[test]
        fn buckets_are_those_of_hdrhistogram(values in prop::collection::vec(0u64..1 << 50, 1..200)) {
            for (digits, bits) in [(2, TWO_DIGITS), (3, THREE_DIGITS)] {
                let mut histogram = Histogram::new(bits);
                let mut reference = hdrhistogram::Histogram::<u64>::new(digits).unwrap();
                for &value in &values {
                    histogram.record(value);
                    reference.record(value).unwrap();
                }
                let ours: Vec<_> = histogram.iter().map(|(_, high, count)| (high, count)).collect();
                let theirs: Vec<_> = (reference.iter_recorded())
                    .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
                    .collect();
                prop_assert_eq!(ours, theirs);
            }
        }

        #[test]
        fn a_sum_of_histograms_counts_all_numbers(
            left in prop::collection::vec(numbers(), 0..100),
            right in prop::collection::vec(numbers(), 0..100),
        ) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::new(TWO_DIGITS);
                values.iter().for_each(|&value| histogram.record(value));
                histogram
            };
            let mut sum = of(&left);
            sum.add(&of(&right));
            let all: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert!(sum.iter().eq(of(&all).iter()));
        }
    }

    #[test]
    fn counts_are_exact_above_sixteen_bits() {
        let mut histogram = Histogram::new(TWO_DIGITS);
        for _ in 0..200_000 {
            histogram.record(5_000_000);
        }
        histogram.record(17);
        let copy = histogram.clone();
        histogram.add(&copy);
        let counts: Vec<u64> = histogram.iter().map(|(_, _, count)| count).collect();
        assert_eq!(counts, [2, 400_000]);
    }

    #[test]
    fn memory_is_allocated_for_what_lies_between_the_extremes_only() {
        let mut histogram = Histogram::new(TWO_DIGITS);
        assert_eq!(histogram.counts.capacity(), 0);
        for millis in 10..100u64 {
            histogram.record(millis * 1_000_000);
        }
        // From 10 to 100 ms there are 3.3 octaves of 128 buckets.
        assert!(
            histogram.counts.capacity() <= 4 * 128,
            "{}",
            histogram.counts.capacity()
        );
    }
}
