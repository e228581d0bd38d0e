//! Points in time. The driver passes them to the discipline. No discipline reads a clock.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the driver chooses. 64 bits last 584 years.
///
/// ```
/// use fairgate::Time;
/// let t = Time::from_millis(5) + 250;
/// assert_eq!(t.nanos(), 5_000_250);
/// assert_eq!(t - Time::from_millis(5), 250);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// The latest time. It is later than every event.
    pub const MAX: Time = Time(u64::MAX);
    /// The last time at which a driver calls a discipline: a year before [`Time::MAX`]. What disciplines add
    /// to it, the time of a packet or of a pause, does not reach the end of time. A watchdog that is later
    /// means that nothing will be sent.
    pub const LAST: Time = Time(u64::MAX - 366 * 86_400 * 1_000_000_000);

    /// Returns the time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Returns the time `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros * 1_000)
    }

    /// Returns the time `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis * 1_000_000)
    }

    /// Returns the time `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Time(secs * 1_000_000_000)
    }

    /// Returns the nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the origin, for people and plots. It is not for arithmetic on the packet
    /// path.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the nanoseconds since `earlier`, or 0 if `earlier` is later.
    pub const fn nanos_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Adds nanoseconds. A result beyond [`Time::MAX`], 584 years after the origin, is [`Time::MAX`].
impl Add<u64> for Time {
    type Output = Time;
    #[inline]
    fn add(self, nanos: u64) -> Time {
        Time(self.0.saturating_add(nanos))
    }
}

impl AddAssign<u64> for Time {
    #[inline]
    fn add_assign(&mut self, nanos: u64) {
        *self = *self + nanos;
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        self + u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the nanoseconds between two times. The left one must not be earlier than the right one.
impl Sub for Time {
    type Output = u64;
    #[inline]
    fn sub(self, earlier: Time) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
