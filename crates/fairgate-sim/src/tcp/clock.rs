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
///
/// Each segment needs several of these conversions, so they multiply by the inverse of the tick's length. On
/// most processors a division by a number that is not known at compile time takes longer than all the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The length of a tick, ns.
    tick: u64,
    /// 2^64 / `tick`, rounded down.
    inverse: u64,
}

/// The number of ticks in a level of the timer wheel, and the shift of its granularity: 63 ticks exactly,
/// then eightfold.
const WHEEL_LEVEL_TICKS: u64 = 63;
const WHEEL_LEVEL_SHIFT: u32 = 3;

impl Clock {
    pub(super) fn new(hz: u32) -> Clock {
        let tick = 1_000_000_000 / u64::from(hz);
        Clock {
            tick,
            inverse: u64::MAX / tick,
        }
    }

    /// Returns `nanos / tick`, and the remainder.
    #[inline]
    fn divide(self, nanos: u64) -> (u64, u64) {
        // The product is below the quotient, by less than one, so that this is the result or one less.
        let ticks = ((u128::from(nanos) * u128::from(self.inverse)) >> 64) as u64;
        let rest = nanos - ticks * self.tick;
        match rest.checked_sub(self.tick) {
            Some(rest) => (ticks + 1, rest),
            None => (ticks, rest),
        }
    }

    pub(super) fn read(self, now: Time) -> Moment {
        Moment {
            time: now,
            micros: now.nanos() / 1000,
            jiffies: self.divide(now.nanos()).0,
        }
    }

    /// Sets a moment to `now`. Mostly it is that already.
    #[inline]
    pub(super) fn advance(self, moment: &mut Moment, now: Time) {
        if now != moment.time {
            *moment = self.read(now);
        }
    }

    /// Returns the number of ticks for `micros`, rounded up.
    #[inline]
    pub(super) fn ticks(self, micros: u64) -> u64 {
        let (ticks, rest) = self.divide(micros * 1000);
        ticks + u64::from(rest > 0)
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
    use proptest::prelude::*;

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

    proptest! {
        /// Compares with a division, also next to multiples of the tick.
        #[test]
        fn the_inverse_divides(hz in 1u32..=1_000_000_000, nanos: u64, beside in 0u64..3) {
            let clock = Clock::new(hz);
            let multiple = (nanos - nanos % clock.tick).saturating_add(beside).saturating_sub(1);
            for nanos in [nanos, multiple, u64::MAX - beside] {
                prop_assert_eq!(clock.divide(nanos), (nanos / clock.tick, nanos % clock.tick));
            }
        }
    }
}
