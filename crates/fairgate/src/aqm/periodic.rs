//! Work at fixed intervals for disciplines, which have no timer: what is due is done at the next call.

use core::time::Duration;

use crate::time::Time;

/// A sequence of ticks at a fixed period. It begins with the first call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Periodic {
    period: u64,
    /// [`Time::ZERO`] before the first call, [`Time::MAX`] for never.
    next: Time,
}

/// The ticks that have passed since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The time of the first one.
    pub(crate) first: Time,
    /// Their number.
    pub(crate) count: u64,
}

impl Periodic {
    /// A tick every `period`, which is above 0.
    pub(crate) fn every(period: Duration) -> Periodic {
        Periodic {
            period: period.as_nanos() as u64,
            next: Time::ZERO,
        }
    }

    /// No ticks.
    pub(crate) const NEVER: Periodic = Periodic {
        period: 0,
        next: Time::MAX,
    };

    /// The time from which on [`pass`](Periodic::pass) has something to do.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Returns the ticks that have passed. It is called at `next` or later. It divides, but once per tick and
    /// not once per packet.
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

    /// The times of the ticks in `passed`; if there are more than `most`, only the last `most`.
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
        /// Ticks are at whole periods after the first call. Each is counted once, whenever the calls come.
        #[test]
        fn ticks_are_at_whole_periods(
            start in 1u64..1 << 40,
            steps in prop::collection::vec(0u64..100_000_000, 1..50),
        ) {
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
