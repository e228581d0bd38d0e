//! What happens at fixed intervals, for disciplines that are told the time and have no timer: it is made up for at the next call.

use core::time::Duration;

use crate::time::Time;

/// A beat that begins with the first call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Periodic {
    period: u64,
    /// [`Time::ZERO`] before the first call, [`Time::MAX`] for never.
    next: Time,
}

/// Beats that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The time of the first of them.
    pub(crate) first: Time,
    /// How many.
    pub(crate) count: u64,
}

impl Periodic {
    /// Every `period`, which is above 0.
    pub(crate) fn every(period: Duration) -> Periodic {
        Periodic {
            period: period.as_nanos() as u64,
            next: Time::ZERO,
        }
    }

    /// No beat at all.
    pub(crate) const NEVER: Periodic = Periodic {
        period: 0,
        next: Time::MAX,
    };

    /// When [`pass`](Periodic::pass) has something to do.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// To be called at `next` or later. There is a division in it: once a beat, not once a packet.
    #[cold]
    pub(crate) fn pass(&mut self, now: Time) -> Passed {
        let first = self.next;
        if first == Time::ZERO {
            self.next = now + self.period;
            return Passed { first, count: 0 };
        }
        let count = (now - first) / self.period + 1;
        self.next = first + count * self.period;
        Passed { first, count }
    }

    /// The times of those that passed, of more than `most` the last.
    pub(crate) fn times(&self, passed: Passed, most: u64) -> impl Iterator<Item = Time> + use<> {
        let Passed { first, count } = passed;
        let period = self.period;
        (count.saturating_sub(most)..count).map(move |beat| first + beat * period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beats are at whole periods after the first call, each counted once, whoever asks when.
        #[test]
        fn beats_are_at_whole_periods(start in 1u64..1 << 40, steps in prop::collection::vec(0u64..100_000_000, 1..50)) {
            let mut periodic = Periodic::every(Duration::from_millis(15));
            prop_assert_eq!(periodic.pass(Time::from_nanos(start)).count, 0);
            let (mut now, mut beats) = (start, 0);
            for step in steps {
                now += step;
                if Time::from_nanos(now) >= periodic.next() {
                    let passed = periodic.pass(Time::from_nanos(now));
                    prop_assert_eq!(passed.first, Time::from_nanos(start + (beats + 1) * 15_000_000));
                    let last = periodic.times(passed, 2).last();
                    prop_assert_eq!(last, Some(passed.first + (passed.count - 1) * 15_000_000));
                    prop_assert_eq!(periodic.times(passed, 2).count() as u64, passed.count.min(2));
                    beats += passed.count;
                }
                prop_assert_eq!(beats, (now - start) / 15_000_000);
            }
        }
    }
}
