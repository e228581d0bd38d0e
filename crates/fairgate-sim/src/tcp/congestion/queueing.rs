//! LEDBAT's estimate of the queueing delay (RFC 6817, section 2.4.2): how far the last samples are above the
//! minimum of some minutes.
//!
//! A sample is a one-way delay: the receiver's timestamp minus the sender's timestamp that the
//! acknowledgement echoes. Queues on the return path don't count, and the offset between the two clocks
//! cancels out. Samples are whole milliseconds, because timestamps are.

use crate::tcp::clock::Moment;

/// The current delay is the minimum of this many samples (`CURRENT_FILTER`). A delayed acknowledgement adds
/// delay to one sample, which is not queueing.
const CURRENT_FILTER: usize = 4;
/// The base delay of the path is the minimum of this many minutes (`BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
const MINUTE_MICROS: u64 = 60_000_000;

/// The RFC's two lists, each as a ring buffer. A missing sample is the largest number, so it is never the
/// minimum.
#[derive(Clone, Debug)]
pub(super) struct Queueing {
    /// The last samples, ms, and the index of the next one.
    current: [u32; CURRENT_FILTER],
    next: usize,
    /// The minimum of each of the last minutes with a sample, ms, and the index of the newest minute.
    base: [u32; BASE_HISTORY],
    newest: usize,
    /// The number of the newest minute.
    minute: u64,
}

impl Queueing {
    pub(super) fn new() -> Queueing {
        Queueing {
            current: [u32::MAX; CURRENT_FILTER],
            next: 0,
            base: [u32::MAX; BASE_HISTORY],
            newest: 0,
            minute: 0,
        }
    }

    /// Adds the one-way delay of a segment, ms.
    pub(super) fn observe(&mut self, millis: u32, now: Moment) {
        self.current[self.next] = millis;
        self.next = (self.next + 1) % CURRENT_FILTER;
        let minute = now.micros / MINUTE_MICROS;
        if minute != self.minute {
            self.minute = minute;
            self.newest = (self.newest + 1) % BASE_HISTORY;
            self.base[self.newest] = u32::MAX;
        }
        let least = &mut self.base[self.newest];
        *least = millis.min(*least);
    }

    /// Returns the estimate, ms. It is 0 before the first sample.
    pub(super) fn millis(&self) -> u32 {
        let least = |delays: &[u32]| delays.iter().copied().fold(u32::MAX, u32::min);
        // The difference is never negative: a minute is removed after ten later ones, but a sample after four
        // later ones.
        least(&self.current) - least(&self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::Clock;
    use fairgate::Time;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Moment {
        Clock::new(250).read(Time::from_secs(seconds))
    }

    /// A path that has become longer looks like a queue, but only until the history has forgotten the old
    /// delay.
    #[test]
    fn the_base_is_forgotten_after_ten_minutes() {
        let mut queueing = Queueing::new();
        assert_eq!(queueing.millis(), 0);
        queueing.observe(20, at(1));
        for second in 60..600 {
            queueing.observe(70, at(second));
        }
        assert_eq!(queueing.millis(), 50);
        queueing.observe(70, at(600));
        assert_eq!(queueing.millis(), 0);
    }

    #[test]
    fn a_delay_that_one_of_four_segments_does_not_have_is_no_queue() {
        let mut queueing = Queueing::new();
        for millis in [20, 60, 21, 60, 60, 60] {
            queueing.observe(millis, at(1));
        }
        assert_eq!(queueing.millis(), 1);
        queueing.observe(60, at(1));
        assert_eq!(queueing.millis(), 40);
    }

    proptest! {
        /// Compares with the lists in the RFC's pseudocode, with arbitrary pauses.
        #[test]
        fn the_estimate_equals_that_of_the_rfcs_lists(
            samples in prop::collection::vec((0u64..200, 0u32..1000), 1..200),
        ) {
            let mut queueing = Queueing::new();
            let mut current = vec![u32::MAX; CURRENT_FILTER];
            let mut base = vec![u32::MAX; BASE_HISTORY];
            let (mut second, mut last_rollover) = (0, None);
            for (pause, delay) in samples {
                second += pause;
                queueing.observe(delay, at(second));
                current.remove(0);
                current.push(delay);
                if last_rollover == Some(second / 60) {
                    let tail = base.last_mut().expect("the list has a length");
                    *tail = delay.min(*tail);
                } else {
                    last_rollover = Some(second / 60);
                    base.remove(0);
                    base.push(delay);
                }
                let least = |delays: &[u32]| *delays.iter().min().expect("the list has a length");
                prop_assert_eq!(queueing.millis(), least(&current) - least(&base));
            }
        }
    }
}
