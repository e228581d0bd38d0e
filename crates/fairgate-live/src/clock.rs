//! The clock of the data plane: CLOCK_MONOTONIC. The timers use the same clock.

use fairgate::Time;
use nix::time::{ClockId, clock_gettime};

/// Returns the time in nanoseconds since the machine started.
#[inline]
pub fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has had this clock since version 2.6");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Returns the nanoseconds between the epoch of the machine's calendar and time 0 of this clock, `now` being
/// the present time. The calendar may be set during a run.
pub(crate) fn since_epoch(now: Time) -> u64 {
    let calendar = clock_gettime(ClockId::CLOCK_REALTIME).expect("all systems have this clock");
    let nanos = calendar.tv_sec() as u64 * 1_000_000_000 + calendar.tv_nsec() as u64;
    nanos.saturating_sub(now.nanos())
}
