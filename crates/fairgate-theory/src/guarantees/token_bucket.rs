//! How long a packet of a flow waits at most, if the flow conforms to a token bucket: the delay that a
//! reservation promises (Cruz 1991; Parekh and Gallager 1993; RFC 2212).
//!
//! A flow conforms to a bucket of `b` bytes and a rate `r` if at most `b + r t` of its bytes arrive in any
//! interval of length `t`. With a peak rate `p` and packets of up to `M` bytes it also conforms to a bucket
//! of
//! `M` bytes and the rate `p` (TSpec of RFC 2212). It is served by FIFO at a rate of at least `r`.

use std::time::Duration;

use fairgate::Rate;
use fairgate::hfsc::ServiceCurve;

use super::bounds::{ErrorTerms, Promises, System};
use super::measures::Measure;

/// The resolution of shapers and of `hfsc`, ns: the clock counts ticks of 64 ns, and times are rounded a few
/// times.
const RESOLUTION: i128 = 1_000;

/// The most that a flow sends in any interval: the minimum of one or two token buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalCurve {
    rate: Rate,
    burst: u64,
    peak: Option<(Rate, u32)>,
}

impl ArrivalCurve {
    /// Returns the curve of a bucket of `burst` bytes and `rate`, and of a bucket of a packet and the peak
    /// rate. A bucket that bounds nothing which the other one does not bound is left out.
    pub fn new(rate: Rate, burst: u64, peak: Option<(Rate, u32)>) -> ArrivalCurve {
        match peak {
            Some((peak, packet)) if peak <= rate && u64::from(packet) <= burst => ArrivalCurve {
                rate: peak,
                burst: packet.into(),
                peak: None,
            },
            Some((peak, packet)) if peak > rate && u64::from(packet) < burst => ArrivalCurve {
                rate,
                burst,
                peak: Some((peak, packet)),
            },
            _ => ArrivalCurve {
                rate,
                burst,
                peak: None,
            },
        }
    }

    /// Returns the rate in the long run.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the size of the bucket with this rate, bytes.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the peak rate above the rate, and the bytes of its bucket.
    pub fn peak(&self) -> Option<(Rate, u32)> {
        self.peak
    }

    /// Returns the bytes that may arrive at once.
    pub fn at_once(&self) -> u64 {
        self.peak.map_or(self.burst, |(_, packet)| packet.into())
    }

    /// Returns for how many nanoseconds the flow can send at its peak rate: `(b - M) / (p - r)`, rounded
    /// down.
    pub fn peak_nanos(&self) -> u64 {
        /// 13 days.
        const LONGEST: u128 = 1 << 50;
        self.peak.map_or(0, |(peak, packet)| {
            let bytes = u128::from(self.burst - u64::from(packet));
            let difference = peak.bits_per_second() - self.rate.bits_per_second();
            (bytes * 8_000_000_000 / u128::from(difference)).min(LONGEST) as u64
        })
    }

    /// Returns the most bytes in an interval of this length, by the bucket that counts in the long run. They
    /// are rounded up to a thousandth, so that the fractions stay small.
    pub fn in_long(&self, nanos: u64) -> Measure {
        const PARTS: i128 = 1 << 10;
        let parts = i128::from(nanos) * i128::from(self.rate.bits_per_second()) * PARTS;
        let rounded = Measure::new(parts, 8_000_000_000).ceil() / Measure::from_integer(PARTS);
        rounded + Measure::from_integer(self.burst.into())
    }

    /// Returns the longest delay, if the bytes that arrive by any time `t` of a busy period are finished by
    /// `finished(bytes)`, counted from its beginning. The function must be convex, and its slope must be that
    /// of a rate of at least `r` in the end.
    ///
    /// The delay of a packet that arrives at `t` is at most `finished(min(M + p t, b + r t)) - t`. Up to the
    /// time at which both buckets allow the same, this is convex, so it is longest at 0 or at this time. From
    /// then on it is convex and falls in the end, so it falls all the time.
    fn delay(&self, finished: impl Fn(Measure) -> Measure) -> Measure {
        let first = finished(Measure::from_integer(self.at_once().into()));
        let nanos = self.peak_nanos();
        let second = finished(self.in_long(nanos)) - Measure::from_integer(nanos.into());
        first.max(second)
    }
}

/// Returns the longest delay of a packet under a scheduler with a B-WFI, in nanoseconds. Returns `None` if no
/// bound of the scheduler is known. The flow's share of the link must not be below its token rate.
///
/// Let the flow be idle until `s`, and let a packet that arrives at `a` be finished at `f`, without another
/// idle time. Up to `f` the flow has received what arrived up to `a`: at most `A(a - s)`. The scheduler was
/// busy all the time, so this is at least `g (f - s) - B`, where `g = phi_k R` and `B` is the B-WFI. So
/// `f - a <= (A(a - s) + B) / g - (a - s)`. For `A(t) = b + r t` with `r <= g` this is at most `(b + B) / g`.
/// With a peak rate it is the bound of RFC 2212: `(b - M) (p - g) / (p - r) / g + (M + B) / g` for `p > g >=
/// r`, and `(M + B) / g` for `g >= p`.
pub fn delay_by_index(
    promises: &Promises,
    system: &System,
    flow: usize,
    arrivals: &ArrivalCurve,
) -> Option<Measure> {
    let index = (promises.b_wfi?.of)(system, flow);
    let share = system.weights.share(flow as u32);
    let delay = arrivals.delay(|bytes| on_link((bytes + index) / share, system.rate));
    Some(delay + Measure::from_integer(RESOLUTION))
}

/// Returns the longest delay of a packet in a class of `hfsc` with the real-time curve `curve`, in
/// nanoseconds. The second slope must not be above the first one, nor below the token rate. The link must be
/// fast enough for all real-time curves, and `longest` is the longest packet of all classes.
///
/// The curve promises what arrives by `t` by the time at which it reaches this many bytes. A deadline is
/// missed by at most the time of one packet on the link (Stoica, Zhang and Ng 1997, theorem 2).
pub fn delay_by_curve(curve: &ServiceCurve, arrivals: &ArrivalCurve, link: Rate, longest: u32) -> Measure {
    let slope = |slope: u64| Measure::from_integer(slope.into());
    let first_nanos = Measure::from_integer(curve.d.as_nanos() as i128);
    let first = slope(curve.m1) * first_nanos;
    let reached = |bytes: Measure| {
        let bits = bytes * Measure::from_integer(8_000_000_000);
        match bits <= first {
            true => bits / slope(curve.m1),
            false => first_nanos + (bits - first) / slope(curve.m2),
        }
    };
    arrivals.delay(reached) + blocking(link, longest)
}

/// Returns the error terms of a scheduler with a B-WFI, as they can be summed along a path: the delay over
/// all hops is at most `(b - M) (p - R) / (p - r) / R + (M + C) / R + D`, with the least reserved rate `R`,
/// and the sums C and D.
///
/// They are those of the B-WFI, and the flow's longest packet in C: a packet goes on when all of it is there.
/// Between the ends of its packets a flow has got up to a packet less than the B-WFI says. With the packet,
/// the hop has the service curve `g t - C - g D` at all times, and service curves of hops add up.
pub fn error_terms_by_index(promises: &Promises, system: &System, flow: usize) -> Option<ErrorTerms> {
    let ErrorTerms { bytes, nanos } = (promises.error_terms?)(system, flow);
    Some(ErrorTerms {
        bytes: bytes + Measure::from_integer(system.max_packets[flow].into()),
        nanos: nanos + Measure::from_integer(RESOLUTION),
    })
}

/// Returns the error terms of a class of `hfsc` with packets of up to `max_packet` bytes, in the same sense.
/// Returns `None` if its real-time curve has two slopes: then the delay is no function of one rate.
pub fn error_terms_by_curve(
    curve: &ServiceCurve,
    max_packet: u32,
    link: Rate,
    longest: u32,
) -> Option<ErrorTerms> {
    curve.d.is_zero().then(|| ErrorTerms {
        bytes: Measure::from_integer(max_packet.into()),
        nanos: blocking(link, longest),
    })
}

/// Returns what a deadline of `hfsc` may be missed by: the packet that is being sent, and the clock's
/// resolution.
pub fn blocking(link: Rate, longest: u32) -> Measure {
    on_link(Measure::from_integer(longest.into()), link) + Measure::from_integer(RESOLUTION)
}

/// Returns a measure of nanoseconds, rounded up.
pub fn rounded_up(nanos: Measure) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.ceil().to_integer()).unwrap_or(u64::MAX))
}

fn on_link(bytes: Measure, link: Rate) -> Measure {
    bytes * Measure::new(8_000_000_000, link.bits_per_second().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantees::bounds::kept;
    use crate::guarantees::measures::Weights;

    /// A flow with a quarter of 8 Mbit/s: 4000 bytes take 16 ms at its share.
    #[test]
    fn delays_by_hand() {
        let system = System {
            weights: Weights::new(vec![1, 3]),
            max_packets: vec![500, 1500],
            quanta: Vec::new(),
            rate: Rate::mbit(8),
        };
        let bucket = ArrivalCurve::new(Rate::mbit(1), 4000, None);
        let delay = |scheduler| delay_by_index(kept(scheduler).unwrap(), &system, 0, &bucket);
        // B-WFI = 500 + 2 * 1500 / 4.
        let expected = (4000 + 500 + 750) * 4_000 + RESOLUTION;
        assert_eq!(delay("wf2q_plus"), Some(Measure::from_integer(expected)));
        assert_eq!(delay("fifo"), None);

        let link = Rate::mbit(8);
        let linear = ServiceCurve::linear(2_000_000);
        let blocked = 1_500_000 + RESOLUTION;
        let by_curve = |curve| delay_by_curve(&curve, &bucket, link, 1500);
        assert_eq!(by_curve(linear), Measure::from_integer(16_000_000 + blocked));
        let steep = ServiceCurve {
            m1: 6_400_000,
            d: Duration::from_millis(5),
            m2: 1_000_000,
        };
        assert_eq!(by_curve(steep), Measure::from_integer(5_000_000 + blocked));
        // The bucket is longer than the first piece: 2000 bytes by 2.5 ms, the rest at the second slope.
        let short = ServiceCurve {
            d: Duration::from_micros(2_500),
            ..steep
        };
        assert_eq!(
            by_curve(short),
            Measure::from_integer(2_500_000 + 16_000_000 + blocked)
        );
        assert_eq!(rounded_up(Measure::new(10, 3)), Duration::from_nanos(4));
    }
    /// The formulas of RFC 2212, with C and D of this hop.
    #[test]
    fn peaks_give_the_bounds_of_rfc_2212() {
        let (rate, burst, packet) = (Rate::mbit(1), 6_000, 500);
        let system = System {
            weights: Weights::new(vec![1, 3]),
            max_packets: vec![packet, 1500],
            quanta: Vec::new(),
            rate: Rate::mbit(8),
        };
        let promises = kept("wf2q_plus").unwrap();
        // The share is 2 Mbit/s: 4 us a byte. C without the packet for a path is 500 bytes, D is 3000 us.
        let reserved = 2_000_000_i128;
        for peak in [1_500_000, 2_000_000, 2_500_000, 8_000_000, 100_000_000] {
            let curve = ArrivalCurve::new(
                rate,
                burst,
                Some((Rate::from_bits_per_second(peak).unwrap(), packet)),
            );
            let nanos = |bytes: i128| Measure::from_integer(bytes * 4_000);
            let fixed = nanos(i128::from(packet) + 500) + Measure::from_integer(3_000_000 + RESOLUTION);
            let part = Measure::new((i128::from(peak) - reserved).max(0), i128::from(peak) - 1_000_000);
            let wanted = nanos(i128::from(burst) - i128::from(packet)) * part + fixed;
            let got = delay_by_index(promises, &system, 0, &curve).unwrap();
            // A nanosecond and a thousandth of a byte are rounded.
            assert!(
                got >= wanted && got <= wanted + Measure::from_integer(6),
                "{peak}: {got} {wanted}"
            );
        }
        // Without a peak the rate of bursts has no bound.
        let without = delay_by_index(promises, &system, 0, &ArrivalCurve::new(rate, burst, None));
        assert_eq!(
            without,
            Some(Measure::from_integer(
                (6_000 + 500) * 4_000 + 3_000_000 + RESOLUTION
            ))
        );

        let terms = error_terms_by_index(promises, &system, 0).unwrap();
        assert_eq!(terms.bytes, Measure::from_integer(1_000));
        assert_eq!(terms.nanos, Measure::from_integer(3_000_000 + RESOLUTION));
        let link = system.rate;
        let by_curve = |curve| error_terms_by_curve(&curve, packet, link, 1500);
        let linear = by_curve(ServiceCurve::linear(2_000_000)).unwrap();
        assert_eq!(linear.bytes, Measure::from_integer(500));
        assert_eq!(linear.nanos, Measure::from_integer(1_500_000 + RESOLUTION));
        let steep = ServiceCurve {
            m1: 4_000_000,
            d: Duration::from_millis(1),
            m2: 1_000_000,
        };
        assert_eq!(by_curve(steep), None);
    }

    /// No time between 0 and a second has a longer delay than the bound, and some time has it.
    #[test]
    fn the_delay_is_longest_where_it_is_looked_for() {
        let link = Rate::mbit(8);
        let bits = |bits| Rate::from_bits_per_second(bits).unwrap();
        let steep = ServiceCurve {
            m1: 3_200_000,
            d: Duration::from_millis(8),
            m2: 1_000_000,
        };
        for (peak, packet) in [
            (1_000_000, 400),
            (1_100_000, 400),
            (2_000_000, 1500),
            (3_300_000, 100),
            (9_000_000, 1500),
        ] {
            let arrivals = ArrivalCurve::new(bits(1_000_000), 4_000, Some((bits(peak), packet)));
            let bound = delay_by_curve(&steep, &arrivals, link, 1500) - blocking(link, 1500);
            let mut longest = Measure::from_integer(0);
            for micros in 0..1_000_000 {
                let first = i128::from(packet) * 8_000_000 + micros * i128::from(peak);
                let second = 4_000 * 8_000_000 + micros * 1_000_000;
                // Bits times 10^6, and the curve reaches 25600 bits at its bend.
                let arrived = first.min(second);
                let bend = 25_600 * 1_000_000;
                let reached = match arrived <= bend {
                    true => Measure::new(arrived * 1_000, 3_200_000),
                    false => {
                        Measure::from_integer(8_000_000) + Measure::new((arrived - bend) * 1_000, 1_000_000)
                    }
                };
                longest = longest.max(reached - Measure::from_integer(micros * 1_000));
            }
            assert!(
                longest <= bound && bound - longest < Measure::from_integer(20_000),
                "{peak}: {longest} {bound}"
            );
        }
    }
}
