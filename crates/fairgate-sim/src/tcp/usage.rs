//! Whether the congestion window limits the sender (congestion window validation, RFC 7661, in Linux's form).
//!
//! A window that is not filled carries no information about the path. It must not grow. After a timeout of
//! such use, it is reduced half way to what was used.

use super::clock::Moment;

/// How much of the window was used recently.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Whether the window was filled in this flight.
    limited: bool,
    /// The maximum number of outstanding segments in this flight.
    outstanding_max: u32,
    /// The flight is over when this number is acknowledged.
    flight_end: u64,
    /// The maximum number of outstanding segments since the window was last full.
    used: u32,
    /// The tick at which the window was last full or changed.
    pub(super) stamp: u64,
}

impl Usage {
    pub(super) fn new(now: Moment) -> Usage {
        Usage {
            limited: false,
            outstanding_max: 0,
            flight_end: 0,
            used: 0,
            stamp: now.jiffies,
        }
    }

    /// Records the state after sending: `outstanding` segments, and whether the window is `full`.
    pub(super) fn observe(&mut self, full: bool, outstanding: u32, una: u64, next: u64) {
        if una >= self.flight_end || full || (!self.limited && outstanding > self.outstanding_max) {
            self.limited = full;
            self.outstanding_max = outstanding;
            self.flight_end = next;
        }
        self.used = self.used.max(outstanding);
    }

    /// Returns the maximum number of segments used, if the window was not filled for `timeout` ticks.
    pub(super) fn settle(
        &mut self,
        size: u32,
        in_slow_start: bool,
        timeout: u64,
        now: Moment,
    ) -> Option<u32> {
        if self.is_limited(size, in_slow_start) {
            self.restart(now);
            return None;
        }
        (now.jiffies.saturating_sub(self.stamp) >= timeout).then_some(self.used)
    }

    /// Restarts the measurement after the window was reduced to what is used.
    pub(super) fn restart(&mut self, now: Moment) {
        self.used = 0;
        self.stamp = now.jiffies;
    }

    /// Returns whether the window of `size` may grow: it was full, or in slow start at least half full.
    pub(super) fn is_limited(&self, size: u32, in_slow_start: bool) -> bool {
        self.limited || (in_slow_start && size < 2 * self.outstanding_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::Clock;
    use fairgate::Time;

    fn at(millis: u64) -> Moment {
        Clock::new(100).read(Time::from_millis(millis))
    }

    #[test]
    fn a_full_window_may_grow_and_a_half_full_one_only_in_slow_start() {
        let mut usage = Usage::new(at(0));
        usage.observe(true, 10, 1, 100);
        assert!(usage.is_limited(10, false));
        // The next flight does not fill it.
        usage.observe(false, 6, 100, 200);
        assert!(!usage.is_limited(10, false));
        assert!(usage.is_limited(10, true));
        assert!(!usage.is_limited(12, true));
    }

    #[test]
    fn a_window_unused_for_a_timeout_returns_what_was_used() {
        let mut usage = Usage::new(at(0));
        usage.observe(false, 4, 1, 50);
        assert_eq!(usage.settle(20, false, 30, at(290)), None);
        usage.observe(false, 3, 50, 100);
        assert_eq!(usage.settle(20, false, 30, at(300)), Some(4));
        usage.restart(at(300));
        assert_eq!(usage.settle(20, false, 30, at(310)), None);
    }
}
