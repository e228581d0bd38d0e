//! Sums over time in a bounded number of bins, for a run of any length.

use fairgate::Time;

/// The most bins. At this limit neighbours are joined, so a finished series has between half of this number
/// and all of it.
const MOST_BINS: usize = 240;

/// The first width of the bins, ns.
const FIRST_WIDTH: u64 = 1_000_000;

/// Returns the width of a bin in all values over time of a run of `duration`, ns.
pub fn bin_width(duration: Time) -> u64 {
    let mut width = FIRST_WIDTH;
    while duration.nanos() / width >= MOST_BINS as u64 {
        width *= 2;
    }
    width
}

/// A value that can be joined with the value of the neighbouring bin.
pub(crate) trait Bin: Copy + Default {
    fn join(self, other: Self) -> Self;
}

impl Bin for u64 {
    fn join(self, other: u64) -> u64 {
        self + other
    }
}

/// Values by time since the start. The width of a bin is a millisecond times a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Series<B> {
    width: u64,
    bins: Vec<B>,
}

impl<B> Default for Series<B> {
    fn default() -> Series<B> {
        Series {
            width: FIRST_WIDTH,
            bins: Vec::new(),
        }
    }
}

impl<B: Bin> Series<B> {
    /// Returns the bin that contains `time`.
    #[inline]
    pub(crate) fn at(&mut self, time: Time) -> &mut B {
        while time.nanos() / self.width >= MOST_BINS as u64 {
            self.coarsen();
        }
        let index = (time.nanos() / self.width) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, B::default());
        }
        &mut self.bins[index]
    }

    /// Returns the end of the bin that contains `time`, at the current width.
    pub(crate) fn end_of_bin(&mut self, time: Time) -> Time {
        self.at(time);
        Time::from_nanos((time.nanos() / self.width + 1) * self.width)
    }

    /// Adds another series.
    pub(crate) fn merge(&mut self, mut other: Series<B>) {
        while self.width < other.width {
            self.coarsen();
        }
        while other.width < self.width {
            other.coarsen();
        }
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), B::default());
        }
        for (bin, more) in self.bins.iter_mut().zip(other.bins) {
            *bin = bin.join(more);
        }
    }

    /// Returns the width in ns and the bins of a run of `duration`. Both depend only on the duration, so that
    /// all series of a run have the same bins. The last bin is left out if less than a quarter of it is
    /// within the run, which is too short for a rate.
    pub(crate) fn finish(mut self, duration: Time) -> (u64, Vec<B>) {
        // This also widens the bins to the width for the end of the run.
        self.at(duration);
        let count = (duration.nanos() + self.width * 3 / 4) / self.width;
        self.bins.truncate(count as usize);
        (self.width, self.bins)
    }

    fn coarsen(&mut self) {
        self.width *= 2;
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| pair.iter().skip(1).fold(pair[0], |joined, &bin| joined.join(bin)))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The finished bins equal a direct sum, for any order of the events and any split into two series.
        #[test]
        fn bins_equal_a_direct_sum(
            events in prop::collection::vec((0u64..10_000_000_000, 1u64..1_000, any::<bool>()), 1..200),
        ) {
            let duration = Time::from_nanos(events.iter().map(|e| e.0).max().unwrap_or(0));
            let (mut one, mut other) = (Series::<u64>::default(), Series::<u64>::default());
            for &(nanos, value, first) in &events {
                *if first { &mut one } else { &mut other }.at(Time::from_nanos(nanos)) += value;
            }
            one.merge(other);
            let (width, bins) = one.finish(duration);
            prop_assert_eq!(width, bin_width(duration));
            prop_assert!(bins.len() <= MOST_BINS);
            let mut expected = vec![0; bins.len()];
            for &(nanos, value, _) in &events {
                if let Some(bin) = expected.get_mut((nanos / width) as usize) {
                    *bin += value;
                }
            }
            prop_assert!(bins.len() as u64 * width + width / 4 >= duration.nanos());
            prop_assert_eq!(bins, expected);
        }
    }
}
