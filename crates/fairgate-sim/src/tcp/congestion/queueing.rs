//! Queueing delay as LEDBAT estimates it (RFC 6817, section 2.4.2): how far the last samples are above the least of some minutes.
//!
//! A sample is the delay one way, from the sender's timestamp that an acknowledgement echoes to the receiver's own: queues on the way
//! back don't count, and what the two clocks differ by falls out. Whole milliseconds, as timestamps are.

use crate::tcp::clock::Moment;

/// Samples of which the least is the delay now (`CURRENT_FILTER`): what a delayed acknowledgement adds to one is not queueing.
const CURRENT_FILTER: usize = 4;
/// Minutes of which the least is the delay of the path itself (`BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
const MINUTE_MICROS: u64 = 60_000_000;

/// The RFC's two lists, each a ring. "No sample yet" is the largest number, and never the least.
#[derive(Clone, Debug)]
pub(super) struct Queueing {
    /// The last samples, ms, and where the next one goes.
    current: [u32; CURRENT_FILTER],
    next: usize,
    /// The least of each of the last minutes that had a sample, ms, and the place of the newest.
    base: [u32; BASE_HISTORY],
    newest: usize,
    /// The newest minute's number.
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

    /// A segment took `millis` one way.
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

    /// The estimate, ms; 0 before the first sample.
    pub(super) fn millis(&self) -> u32 {
        let least = |delays: &[u32]| delays.iter().copied().fold(u32::MAX, u32::min);
        // Never below the base: a minute leaves the history for ten later ones, the last samples for four later ones.
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

    /// A path that has become longer looks like a queue for as long as the history goes back, and no longer.
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
    fn what_one_segment_of_four_does_not_meet_is_no_queue() {
        let mut queueing = Queueing::new();
        for millis in [20, 60, 21, 60, 60, 60] {
            queueing.observe(millis, at(1));
        }
        assert_eq!(queueing.millis(), 1);
        queueing.observe(60, at(1));
        assert_eq!(queueing.millis(), 40);
    }

    proptest! {
        /// Against the RFC's lists as its pseudocode has them, whatever pauses there are.
        #[test]
        fn keeps_the_lists_of_the_rfc(
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
