//! How long a packet of a flow waits at most, if the flow conforms to a token bucket: the delay that a
//! reservation promises (Cruz 1991; Parekh and Gallager 1993; RFC 2212).
//!
//! A flow conforms to a bucket of `b` bytes and a rate `r` if at most `b + r t` of its bytes arrive in any
//! interval of length `t`. It is served by FIFO at a rate of at least `r`.

use std::time::Duration;

use fairgate::Rate;
use fairgate::hfsc::ServiceCurve;

use super::bounds::{Promises, System};
use super::measures::Measure;

/// The resolution of shapers and of `hfsc`, ns: the clock counts ticks of 64 ns, and times are rounded a few
/// times.
const RESOLUTION: i128 = 1_000;

/// Returns the longest delay of a packet under a scheduler with a B-WFI, in nanoseconds. Returns `None` if no
/// bound of the scheduler is known. The flow's share of the link must not be below its token rate.
///
/// Let the flow be idle until `s`, and let a packet that arrives at `a` be finished at `f`, without another
/// idle time. Up to `f` the flow has received what arrived up to `a`: at most `b + r (a - s)`. The scheduler
/// was busy all the time, so this is at least `g (f - s) - B`, where `g = phi_k R` and `B` is the B-WFI. With
/// `r <= g` it follows that `f - a <= (b + B) / g`.
pub fn delay_by_index(promises: &Promises, system: &System, flow: usize, burst: u64) -> Option<Measure> {
    let index = (promises.b_wfi?.of)(system, flow);
    let bytes = Measure::from_integer(burst.into()) + index;
    let share = system.weights.share(flow as u32);
    Some(on_link(bytes / share, system.rate) + Measure::from_integer(RESOLUTION))
}

/// Returns the longest delay of a packet in a class of `hfsc` with the real-time curve `curve`, in
/// nanoseconds. The second slope must not be above the first one, nor below the token rate. The link must be
/// fast enough for all real-time curves, and `longest` is the longest packet of all classes.
///
/// The curve promises the bucket's bytes by the time at which it reaches `b`. For later packets the distance
/// between arrivals and curve is not longer, because the curve is nowhere flatter than `r`. A deadline is
/// missed by at most the time of one packet on the link (Stoica, Zhang and Ng 1997, theorem 2).
pub fn delay_by_curve(curve: &ServiceCurve, burst: u64, link: Rate, longest: u32) -> Measure {
    let bits = Measure::from_integer(i128::from(burst) * 8_000_000_000);
    let slope = |slope: u64| Measure::from_integer(slope.into());
    let first = slope(curve.m1) * Measure::from_integer(curve.d.as_nanos() as i128);
    let by_curve = match bits <= first {
        true => bits / slope(curve.m1),
        false => Measure::from_integer(curve.d.as_nanos() as i128) + (bits - first) / slope(curve.m2),
    };
    by_curve + blocking(link, longest)
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
        let delay = |scheduler| delay_by_index(kept(scheduler).unwrap(), &system, 0, 4000);
        // B-WFI = 500 + 2 * 1500 / 4.
        let expected = (4000 + 500 + 750) * 4_000 + RESOLUTION;
        assert_eq!(delay("wf2q_plus"), Some(Measure::from_integer(expected)));
        assert_eq!(delay("fifo"), None);

        let link = Rate::mbit(8);
        let linear = ServiceCurve::linear(2_000_000);
        let blocked = 1_500_000 + RESOLUTION;
        let by_curve = |curve| delay_by_curve(&curve, 4000, link, 1500);
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
}
