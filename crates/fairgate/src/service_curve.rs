//! Service curves of two pieces: a guarantee of a rate, and of a delay apart from it (Stoica, Zhang, Ng
//! 1997).

use core::time::Duration;

/// How much a class gets by when: a slope of `m1` for a time `d` from the start of a backlog, of `m2` from
/// then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    /// The first slope, bit/s.
    pub m1: u64,
    /// How long it lasts.
    pub d: Duration,
    /// The second slope, bit/s.
    pub m2: u64,
}

impl ServiceCurve {
    /// A straight line of `rate` bit/s.
    pub const fn linear(rate: u64) -> ServiceCurve {
        ServiceCurve {
            m1: 0,
            d: Duration::ZERO,
            m2: rate,
        }
    }

    /// The curve by which a packet of `umax` bytes leaves within `dmax`, at `rate` bit/s in the long run:
    /// steep at first, or flat if the rate alone would do more (tc's `umax dmax rate`).
    pub fn of_packet(umax: u64, dmax: Duration, rate: u64) -> ServiceCurve {
        let nanos = dmax.as_nanos();
        let bits = u128::from(umax) * 8 * 1_000_000_000;
        if nanos > 0 && bits.div_ceil(nanos) > u128::from(rate) {
            // Rates are whole bytes a second.
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

    /// Bits by `nanos` after the start, times 10^9; of a line that is faster than any number is, the largest.
    pub(crate) fn at(&self, nanos: u128) -> u128 {
        let first = nanos.min(self.d.as_nanos());
        let of_first = first.saturating_mul(self.m1.into());
        of_first.saturating_add((nanos - first).saturating_mul(self.m2.into()))
    }
}
