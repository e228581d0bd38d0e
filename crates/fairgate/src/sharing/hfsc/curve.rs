//! Service curves of two pieces in Linux's units, so that all times are equal to Linux's: ticks of 64 ns,
//! bytes, slopes in bytes per tick with 24 binary digits after the point, and inverse slopes in ticks per
//! byte with 14.

use crate::service_curve::ServiceCurve;

/// The binary digits after the point of a slope, and of an inverse slope.
const SLOPE: u32 = 24;
const INVERSE: u32 = 14;

/// The ticks of a second.
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK;
/// The binary logarithm of the nanoseconds of a tick.
pub(super) const TICK: u32 = 6;

/// An infinite time or length.
pub(super) const INFINITE: u64 = u64::MAX;

/// A curve in Linux's units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    slope1: u64,
    inverse1: u64,
    width: u64,
    height: u64,
    slope2: u64,
    inverse2: u64,
    /// `2^64 / (slope1 - slope2)`, to divide by the difference.
    inverse_of_difference: u64,
}

/// The course of a curve: it starts at (x, y), with a first piece of `width` and `height`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    pub(super) x: u64,
    pub(super) y: u64,
    width: u64,
    height: u64,
}

impl Curve {
    /// Converts a curve to Linux's units.
    pub(super) fn new(curve: &ServiceCurve) -> Curve {
        let bytes = |bits: u64| u128::from(bits / 8);
        let ticks = u128::from(TICKS_PER_SECOND);
        let slope = |bits: u64| (bytes(bits) << SLOPE).div_ceil(ticks) as u64;
        let inverse = |bits: u64| match bytes(bits) {
            0 => INFINITE,
            bytes => (ticks << INVERSE).div_ceil(bytes) as u64,
        };
        let width = curve.d.as_nanos().div_ceil(1 << TICK) as u64;
        let (slope1, slope2) = (slope(curve.m1), slope(curve.m2));
        Curve {
            slope1,
            inverse1: inverse(curve.m1),
            width,
            height: rise(width, slope1),
            slope2,
            inverse2: inverse(curve.m2),
            inverse_of_difference: match slope1.checked_sub(slope2) {
                None | Some(0) => 0,
                Some(difference) => u64::MAX / difference,
            },
        }
    }

    /// Returns whether the second piece is as steep as the first, or steeper.
    #[inline]
    pub(super) fn is_convex(&self) -> bool {
        self.slope1 <= self.slope2
    }

    /// Returns the course of the curve from a point on.
    pub(super) fn from(&self, x: u64, y: u64) -> Course {
        Course {
            x,
            y,
            width: self.width,
            height: self.height,
        }
    }

    /// Returns the time at which the course reaches `y`.
    #[inline]
    pub(super) fn time(&self, course: &Course, y: u64) -> u64 {
        let Some(above) = y.checked_sub(course.y) else {
            return course.x;
        };
        match above.checked_sub(course.height) {
            Some(beyond) if beyond > 0 => course
                .x
                .saturating_add(course.width)
                .saturating_add(run(beyond, self.inverse2)),
            _ if course.height == 0 => course.x.saturating_add(course.width),
            _ => course.x.saturating_add(run(above, self.inverse1)),
        }
    }

    /// Returns the eligible time of byte `y`. A convex curve counts with its second piece only.
    #[inline]
    pub(super) fn eligible_time(&self, course: &Course, y: u64) -> u64 {
        match self.is_convex() {
            false => self.time(course, y),
            true => match y.checked_sub(course.y) {
                None => course.x,
                Some(above) => course.x.saturating_add(run(above, self.inverse2)),
            },
        }
    }

    /// Returns the height of the course at time `x`.
    #[inline]
    fn height(&self, course: &Course, x: u64) -> u64 {
        let Some(after) = x.checked_sub(course.x) else {
            return course.y;
        };
        match after.checked_sub(course.width) {
            Some(beyond) if beyond > 0 => course
                .y
                .saturating_add(course.height)
                .saturating_add(rise(beyond, self.slope2)),
            _ => course.y.saturating_add(rise(after, self.slope1)),
        }
    }

    /// Lowers the course to the minimum of itself and the curve from (x, y) on, for a backlog that starts
    /// there. (If a convex curve crosses the course, Linux takes the new curve, and so do we.)
    pub(super) fn lower(&self, course: &mut Course, x: u64, y: u64) {
        let height = self.height(course, x);
        if self.is_convex() {
            if height >= y {
                (course.x, course.y) = (x, y);
            }
            return;
        }
        if height <= y {
            return;
        }
        if self.height(course, x.saturating_add(self.width)) >= y.saturating_add(self.height) {
            *course = self.from(x, y);
            return;
        }
        // They cross: the first piece ends where it meets the second piece of the old course, `height - y`
        // above.
        let mut width = self.over_difference((height - y) << SLOPE);
        width += (course.x + course.width).saturating_sub(x);
        *course = Course {
            x,
            y,
            width,
            height: rise(width, self.slope1),
        };
    }

    /// Returns `dividend / (slope1 - slope2)`, rounded down.
    #[inline]
    fn over_difference(&self, dividend: u64) -> u64 {
        let divisor = self.slope1 - self.slope2;
        let mut quotient = ((u128::from(dividend) * u128::from(self.inverse_of_difference)) >> 64) as u64;
        while dividend - quotient * divisor >= divisor {
            quotient += 1;
        }
        quotient
    }
}

/// Returns the bytes in `ticks` at a slope.
#[inline]
fn rise(ticks: u64, slope: u64) -> u64 {
    let low = (ticks & ((1 << SLOPE) - 1)).saturating_mul(slope) >> SLOPE;
    (ticks >> SLOPE).saturating_mul(slope).saturating_add(low)
}

/// Returns the ticks for `bytes` at an inverse slope.
#[inline]
fn run(bytes: u64, inverse: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    if inverse == INFINITE {
        return INFINITE;
    }
    product(bytes, inverse, INVERSE)
}

/// Returns `a * b / 2^shift`, rounded down, or the largest number.
#[inline]
fn product(a: u64, b: u64, shift: u32) -> u64 {
    u64::try_from((u128::from(a) * u128::from(b)) >> shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use proptest::prelude::*;

    fn curves() -> impl Strategy<Value = ServiceCurve> {
        (80_000u64..1_000_000_000, 0u64..100_000, 80_000u64..1_000_000_000).prop_map(|(m1, micros, m2)| {
            ServiceCurve {
                m1,
                d: Duration::from_micros(micros),
                m2,
            }
        })
    }

    #[test]
    fn the_curve_of_a_packet_is_steep_or_flat_at_first() {
        let steep = ServiceCurve::of_packet(1500, Duration::from_millis(10), 400_000);
        assert_eq!(
            (steep.m1, steep.d, steep.m2),
            (1_200_000, Duration::from_millis(10), 400_000)
        );
        let flat = ServiceCurve::of_packet(1500, Duration::from_millis(10), 2_000_000);
        assert_eq!(
            (flat.m1, flat.d, flat.m2),
            (0, Duration::from_millis(4), 2_000_000)
        );
    }

    proptest! {
        /// Compares with the curve in bits and nanoseconds. Times are rounded to ticks, slopes to four
        /// digits.
        #[test]
        fn time_and_height_are_those_of_the_curve(curve in curves(), bytes in 1u64..10_000_000) {
            let ready = Curve::new(&curve);
            let course = ready.from(1000, 0);
            let ticks = ready.time(&course, bytes) - 1000;
            let exact = |nanos: u64| curve.at(nanos.into()) / 8_000_000_000;
            let margin = ticks / 1000 + 2;
            prop_assert!(exact((ticks + margin) << TICK) + 1 >= bytes.into(), "{ticks} ticks for {bytes}");
            prop_assert!(exact(ticks.saturating_sub(margin) << TICK) <= u128::from(bytes) + 1);
            let height = ready.height(&course, ticks + 1000);
            prop_assert!(height.abs_diff(bytes) <= bytes / 1000 + 20, "{height} at the time of {bytes}");
        }

        /// A lowered concave course is the minimum of the old course and the new curve, except for rounding.
        #[test]
        fn a_lowered_course_is_the_minimum_of_both(
            curve in curves(), x in 0u64..3_000_000, share in 0u64..2000,
            probes in prop::collection::vec(0u64..10_000_000, 10),
        ) {
            prop_assume!(curve.m1 > curve.m2);
            let ready = Curve::new(&curve);
            let old = ready.from(0, 0);
            let y = ready.height(&old, x) * share / 1000;
            let mut lowered = old;
            ready.lower(&mut lowered, x, y);
            let fresh = ready.from(x, y);
            for after in probes {
                let at = x + after;
                let least = ready.height(&old, at).min(ready.height(&fresh, at));
                let found = ready.height(&lowered, at);
                let margin = 4 + found / 10_000;
                prop_assert!(found.abs_diff(least) <= margin, "{found} at {at}, not {least}");
            }
        }

        #[test]
        fn the_division_is_exact(curve in curves(), dividend in any::<u64>()) {
            prop_assume!(curve.m1 > curve.m2);
            let ready = Curve::new(&curve);
            prop_assert_eq!(ready.over_difference(dividend), dividend / (ready.slope1 - ready.slope2));
        }
    }
}
