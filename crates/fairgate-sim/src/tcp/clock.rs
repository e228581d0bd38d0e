//! The clocks that Linux's TCP reads: microseconds for round trips, milliseconds for timestamps, and the timer tick
//! ("jiffy") for time-outs and for CUBIC.

use fairgate::Time;

/// The moment of the event being handled, read once, as each clock shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Nanoseconds.
    pub(super) time: Time,
    /// Microseconds.
    pub(super) micros: u64,
    /// Timer ticks.
    pub(super) jiffies: u64,
}

impl Moment {
    /// TSval of a segment sent now, ms. Starts at 1: an echo of 0 means that there is none.
    pub(super) fn timestamp(self) -> u32 {
        timestamp_of(self.micros)
    }
}

/// TSval of a segment sent at `micros`.
pub(super) fn timestamp_of(micros: u64) -> u32 {
    (micros / 1000 + 1) as u32
}

/// Reads the clocks, and says when a timer set in ticks fires.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Length of a tick, ns.
    tick: u64,
}

/// Ticks that a level of the timer wheel covers, and the shift of its grain: 63 ticks exactly, then eightfold.
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

    /// Ticks that cover `micros`.
    pub(super) fn ticks(self, micros: u64) -> u64 {
        (micros * 1000).div_ceil(self.tick)
    }

    /// Microseconds of `ticks`.
    pub(super) fn micros(self, ticks: u64) -> u64 {
        ticks * self.tick / 1000
    }

    /// When a timer fires that is set now for `ticks` ticks.
    ///
    /// Linux's timer wheel never fires early, so it adds a step of its grain; and the grain grows with the distance.
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
    fn timers_fire_late_by_their_grain() {
        let clock = Clock::new(100);
        let now = clock.read(Time::from_millis(25));
        assert_eq!(now.jiffies, 2);
        assert_eq!(clock.expiry(now, 4), Time::from_millis(70));
        // 100 ticks lie on the second level: 102 rounded up past the next multiple of 8.
        assert_eq!(clock.expiry(now, 100), Time::from_millis(1040));
        assert_eq!(clock.ticks(10_001), 2);
    }
}
