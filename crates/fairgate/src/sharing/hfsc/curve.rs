//! Service curves of two pieces, in Linux's units, so that times come out as there: ticks of 64 ns, bytes; slopes as bytes a
//! tick in 24 binary places and their inverses, ticks a byte, in 14.

use crate::service_curve::ServiceCurve;

/// Binary places of a slope, and of an inverse slope.
const SLOPE: u32 = 24;
const INVERSE: u32 = 14;

/// Ticks in a second, and the bits of a nanosecond that a tick leaves out.
const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK;
pub(super) const TICK: u32 = 6;

/// Never, and without end.
pub(super) const INFINITE: u64 = u64::MAX;

/// A curve ready for use.
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

/// Where a curve runs: from (x, y), with a first piece that is as long as is left of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    pub(super) x: u64,
    pub(super) y: u64,
    width: u64,
    height: u64,
}

impl Curve {
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

    /// Whether the second piece is as steep as the first, or steeper.
    #[inline]
    pub(super) fn is_convex(&self) -> bool {
        self.slope1 <= self.slope2
    }

    /// The curve itself, from a point on.
    pub(super) fn from(&self, x: u64, y: u64) -> Course {
        Course {
            x,
            y,
            width: self.width,
            height: self.height,
        }
    }

    /// The time at which the course reaches `y`.
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

    /// The same for what is eligible: of a convex curve only the second piece.
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

    /// How high the course is at time `x`.
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

    /// Lowers the course to the lesser of itself and the curve from (x, y) on: what a backlog that begins there is due.
    /// (Of a convex curve that crosses it, Linux takes the new one, and so do we.)
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
        // They cross: the first piece ends where the old course's second, `height - y` above, is met.
        let mut width = self.over_difference((height - y) << SLOPE);
        width += (course.x + course.width).saturating_sub(x);
        *course = Course {
            x,
            y,
            width,
            height: rise(width, self.slope1),
        };
    }

    /// `dividend / (slope1 - slope2)`, rounded down.
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

/// Bytes in `ticks` at a slope.
#[inline]
fn rise(ticks: u64, slope: u64) -> u64 {
    let low = (ticks & ((1 << SLOPE) - 1)).saturating_mul(slope) >> SLOPE;
    (ticks >> SLOPE).saturating_mul(slope).saturating_add(low)
}

/// Ticks for `bytes` at an inverse slope.
#[inline]
fn run(bytes: u64, inverse: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    if inverse == INFINITE {
        return INFINITE;
    }
    let low = (bytes & ((1 << INVERSE) - 1)).saturating_mul(inverse) >> INVERSE;
    (bytes >> INVERSE).saturating_mul(inverse).saturating_add(low)
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
    fn a_packet_by_a_time_is_steep_at_first_or_flat() {
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
        /// Against the curve in whole bits and nanoseconds: a tick's rounding, and four digits of the slopes.
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

        /// A concave course and the curve from anywhere: below both, and above neither by more than rounding.
        #[test]
        fn the_lower_of_two_courses(
            curve in curves(), x in 0u64..3_000_000, share in 0u64..2000, probes in prop::collection::vec(0u64..10_000_000, 10),
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
                prop_assert!(found <= least + margin && found + margin >= least, "{found} at {at}, not {least}");
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
