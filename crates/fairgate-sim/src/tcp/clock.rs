//! The clocks that Linux's TCP uses: microseconds for round trips, milliseconds for timestamps, and the timer
//! tick ("jiffy") for timeouts and for CUBIC.

use fairgate::Time;

/// The time of the current event, as each clock shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The time in nanoseconds.
    pub(super) time: Time,
    /// The time in microseconds.
    pub(super) micros: u64,
    /// The time in timer ticks.
    pub(super) jiffies: u64,
}

impl Moment {
    /// Returns the TSval of a segment sent now, ms. It starts at 1, because an echo of 0 means that there is
    /// none.
    pub(super) fn timestamp(self) -> u32 {
        timestamp_of(self.micros)
    }
}

/// Returns the TSval of a segment sent at `micros`.
pub(super) fn timestamp_of(micros: u64) -> u32 {
    (micros / 1000 + 1) as u32
}

/// Converts times between the clocks, and computes when a timer that was set in ticks fires.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The length of a tick, ns.
    tick: u64,
}

/// The number of ticks in a level of the timer wheel, and the shift of its granularity: 63 ticks exactly,
/// then eightfold.
const WHEEL_LEVEL_TICKS: u64 = 63;
const WHEEL_LEVEL_SHIFT: u32 = 3;

impl Clock {
    pub(super) fn new(hz: u32) -> Clock {
        Clock {
            tick: 1_000_000_000 / u64::from(hz),
        }
    }

    pub(super) fn read(self, now: Time) -> Moment {
        Moment {
            time: now,
            micros: now.nanos() / 1000,
            jiffies: now.nanos() / self.tick,
        }
    }

    /// Returns the number of ticks for `micros`, rounded up.
    pub(super) fn ticks(self, micros: u64) -> u64 {
        (micros * 1000).div_ceil(self.tick)
    }

    /// Returns the microseconds of `ticks`.
    pub(super) fn micros(self, ticks: u64) -> u64 {
        ticks * self.tick / 1000
    }

    /// Returns when a timer fires that is set now for `ticks` ticks.
    ///
    /// Linux's timer wheel never fires early, so it adds one step of its granularity. The granularity grows
    /// with the distance.
    pub(super) fn expiry(self, now: Moment, ticks: u64) -> Time {
        let mut shift = 0;
        while ticks >= WHEEL_LEVEL_TICKS << shift {
            shift += WHEEL_LEVEL_SHIFT;
        }
        let expires = ((now.jiffies + ticks) >> shift) + 1;
        Time::from_nanos((expires << shift) * self.tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_late_by_their_granularity() {
        let clock = Clock::new(100);
        let now = clock.read(Time::from_millis(25));
        assert_eq!(now.jiffies, 2);
        assert_eq!(clock.expiry(now, 4), Time::from_millis(70));
        // 100 ticks are on the second level: 102 rounded up to beyond the next multiple of 8.
        assert_eq!(clock.expiry(now, 100), Time::from_millis(1040));
        assert_eq!(clock.ticks(10_001), 2);
    }
}
