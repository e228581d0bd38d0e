//! The clock of the data plane: CLOCK_MONOTONIC. The timers use the same clock.

use fairgate::Time;
use nix::time::{ClockId, clock_gettime};

/// Returns the time in nanoseconds since the machine started.
#[inline]
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has had this clock since version 2.6");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
