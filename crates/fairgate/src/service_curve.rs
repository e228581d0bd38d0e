//! Service curves of two pieces. They guarantee a rate, and a delay independently of the rate (Stoica, Zhang,
//! Ng 1997).

use alloc::vec::Vec;
use core::time::Duration;

/// How much service a class gets by which time. The slope is `m1` for a time `d` from the start of a backlog,
/// and `m2` after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    /// The first slope, bit/s.
    pub m1: u64,
    /// The duration of the first slope.
    pub d: Duration,
    /// The second slope, bit/s.
    pub m2: u64,
}

impl ServiceCurve {
    /// The steepest slope, bit/s.
    pub const STEEPEST: u64 = 100_000_000_000;
    /// The longest first piece.
    pub const LONGEST: Duration = Duration::from_secs(60);

    /// Returns a straight line of `rate` bit/s.
    pub const fn linear(rate: u64) -> ServiceCurve {
        ServiceCurve {
            m1: 0,
            d: Duration::ZERO,
            m2: rate,
        }
    }

    /// Returns the curve that sends a packet of `umax` bytes within `dmax`, and `rate` bit/s in the long run.
    /// It is steep at first, or flat if `rate` alone would send the packet sooner (tc's `umax dmax rate`).
    pub fn of_packet(umax: u64, dmax: Duration, rate: u64) -> ServiceCurve {
        let nanos = dmax.as_nanos();
        let bits = u128::from(umax) * 8 * 1_000_000_000;
        if nanos > 0 && bits.div_ceil(nanos) > u128::from(rate) {
            // Rates are whole bytes per second.
            let m1 = (bits / 8).div_ceil(nanos) * 8;
            return ServiceCurve {
                m1: u64::try_from(m1).unwrap_or(u64::MAX),
                d: dmax,
                m2: rate,
            };
        }
        let needs = bits.checked_div(rate.into()).unwrap_or(0).min(nanos);
        ServiceCurve {
            m1: 0,
            d: Duration::from_micros(((nanos - needs) as u64).div_ceil(1000)),
            m2: rate,
        }
    }

    /// If the sum of `curves` exceeds this curve at a time, returns what they need up to then, bit/s. Between
    /// the ends of first pieces everything is linear, so it is enough to compare there and at a late time.
    pub fn exceeded_by(&self, curves: &[ServiceCurve]) -> Option<u64> {
        let last = curves.iter().map(|curve| curve.d).max()?.max(self.d).as_nanos();
        let mut ends: Vec<u128> = curves
            .iter()
            .chain([self])
            .map(|curve| curve.d.as_nanos())
            .collect();
        ends.sort_unstable();
        ends.dedup();
        // So late that a difference of 1 bit/s shows, whatever the first pieces are.
        let late = last.max(1) * u128::from(ServiceCurve::STEEPEST) * 4;
        ends.into_iter()
            .filter(|&end| end > 0)
            .chain([late])
            .find_map(|nanos| {
                let needed: u128 = curves.iter().map(|curve| curve.at(nanos)).sum();
                (needed > self.at(nanos)).then(|| u64::try_from(needed / nanos).unwrap_or(u64::MAX))
            })
    }

    /// Returns the bits by `nanos` after the start, times 10^9. A result that does not fit is the largest
    /// number.
    pub(crate) fn at(&self, nanos: u128) -> u128 {
        let first = nanos.min(self.d.as_nanos());
        let of_first = first.saturating_mul(self.m1.into());
        of_first.saturating_add((nanos - first).saturating_mul(self.m2.into()))
    }
}
