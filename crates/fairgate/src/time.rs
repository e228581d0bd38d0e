//! Points in time, handed in by whoever drives a discipline. No discipline reads a clock.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an origin of the driver's choice. 64 bits last 584 years.
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
    /// Later than everything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// A point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// A point `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros * 1_000)
    }

    /// A point `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis * 1_000_000)
    }

    /// A point `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Time(secs * 1_000_000_000)
    }

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for people and plots; not for arithmetic on the packet path.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Nanoseconds from `earlier` to here, 0 if `earlier` is in fact later.
    pub const fn nanos_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Adds nanoseconds. What would lie beyond [`Time::MAX`], 584 years away, is that: it never comes, whatever a parameter says.
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

/// Nanoseconds between two points; the left one must not be the earlier one.
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
