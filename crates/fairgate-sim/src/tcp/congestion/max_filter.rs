//! The maximum of the samples in a sliding window (Nichols' algorithm, in Linux `lib/minmax.c`). It remembers
//! three samples: the best one, the best one after it, and the best one after that.

/// A sample and when it was taken, in the unit of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    at: u64,
    value: u64,
}

/// A running maximum.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// The best, second and third best reading, oldest first.
    best: [Reading; 3],
}

impl MaxFilter {
    /// Returns the maximum of the samples in the window. It is 0 before the first one.
    pub(super) fn max(&self) -> u64 {
        self.best[0].value
    }

    /// Adds a sample taken at `at`, and forgets those that are `window` or more older than it.
    pub(super) fn add(&mut self, value: u64, at: u64, window: u64) {
        let new = Reading { at, value };
        if value >= self.best[0].value || at - self.best[2].at > window {
            // Nothing older matters.
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best = [self.best[0], new, new];
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        let age = at - self.best[0].at;
        if age > window {
            // The best one is too old. The others move up.
            self.best = [self.best[1], self.best[2], new];
            if at - self.best[0].at > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].at == self.best[0].at && age > window / 4 {
            // A quarter of the window has passed without a second best one: take one from this quarter.
            self.best = [self.best[0], new, new];
        } else if self.best[2].at == self.best[1].at && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result is a sample of the window, and it is not below the latest one. If the samples fall, the
        /// three readings can miss some, but never the maximum of the last quarter.
        #[test]
        fn the_maximum_is_recent_and_not_too_small(
            samples in prop::collection::vec((0u64..3, 0u64..1_000), 1..200),
        ) {
            const WINDOW: u64 = 10;
            let mut filter = MaxFilter::default();
            let mut seen: Vec<(u64, u64)> = Vec::new();
            let mut at = 0;
            for (step, value) in samples {
                at += step;
                filter.add(value, at, WINDOW);
                seen.push((at, value));
                let within = |age: u64| seen.iter().filter(move |(time, _)| at - time <= age);
                let most = within(WINDOW).map(|(_, value)| *value).max();
                prop_assert!(Some(filter.max()) <= most, "{} above {:?}", filter.max(), most);
                prop_assert!(filter.max() >= value);
                prop_assert!(within(WINDOW).any(|(_, value)| *value == filter.max()));
            }
        }

        #[test]
        fn a_maximum_is_kept_for_the_whole_window(value in 100u64..200, later in 0u64..100) {
            let mut filter = MaxFilter::default();
            filter.add(value, 5, 10);
            for at in 6..=15 {
                filter.add(later, at, 10);
                prop_assert_eq!(filter.max(), value);
            }
            filter.add(later, 16, 10);
            prop_assert_eq!(filter.max(), later);
        }
    }
}
