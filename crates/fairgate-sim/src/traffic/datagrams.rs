//! A source of datagrams. It decides the length of each datagram and the time of the next one.

use fairgate::Time;

use crate::network::ExactClock;
use crate::random::{Distribution, Stream};
use crate::scenario::{Pattern, Udp};

/// A source of datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    size: Distribution,
    timing: Timing,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum Timing {
    Constant(ExactClock),
    Poisson {
        gap: Distribution,
    },
    OnOff {
        in_burst: ExactClock,
        on: Distribution,
        off: Distribution,
        /// The rest of the current burst, ns.
        left: u64,
    },
}

impl Datagrams {
    pub(crate) fn new(udp: &Udp, mut stream: Stream) -> Datagrams {
        let timing = match udp.pattern {
            Pattern::Constant { rate } => Timing::Constant(ExactClock::new(rate)),
            // Gaps do not depend on the lengths. With exponential lengths the arrivals are therefore those of
            // M/M/1.
            Pattern::Poisson { rate } => Timing::Poisson {
                gap: Distribution::Exponential {
                    mean: rate.transmission_nanos(udp.size.mean()),
                },
            },
            Pattern::OnOff { rate, on, off } => Timing::OnOff {
                in_burst: ExactClock::new(rate),
                on,
                off,
                left: on.sample(&mut stream),
            },
        };
        Datagrams {
            size: udp.size,
            timing,
            stream,
        }
    }

    /// Returns the payload of the datagram that is due now, and when the next one is due.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> (u32, Time) {
        let payload = Udp::payload(self.size.sample(&mut self.stream));
        let wait = match &mut self.timing {
            Timing::Constant(clock) => clock.advance(payload),
            Timing::Poisson { gap } => gap.sample(&mut self.stream),
            Timing::OnOff {
                in_burst,
                on,
                off,
                left,
            } => {
                let mut gap = in_burst.advance(payload);
                let mut wait = gap;
                while gap >= *left {
                    gap -= *left;
                    wait = wait.saturating_add(off.sample(&mut self.stream));
                    *left = on.sample(&mut self.stream);
                }
                *left -= gap;
                wait
            }
        };
        (payload, Time::from_nanos(now.nanos().saturating_add(wait)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::Rate;

    fn sent_in(udp: &Udp, seconds: u64) -> u64 {
        let mut source = Datagrams::new(udp, Stream::new(3, "test", "datagrams"));
        let (mut now, mut bytes) = (Time::ZERO, 0);
        while now < Time::from_secs(seconds) {
            let (payload, next) = source.next(now);
            bytes += u64::from(payload);
            now = next;
        }
        bytes
    }

    #[test]
    fn a_constant_rate_is_exact_to_the_packet() {
        // 1000 bytes at 3 Mbit/s: 375 datagrams per second. Their gaps are not whole nanoseconds.
        let udp = Udp::constant(Rate::mbit(3), 1000);
        assert_eq!(sent_in(&udp, 1000), 375_000 * 1000);
    }

    #[test]
    fn mean_rates_are_as_configured() {
        let rate = Rate::mbit(8);
        let (on, off) = (
            Distribution::Exponential { mean: 10_000_000 },
            Distribution::Exponential { mean: 30_000_000 },
        );
        let on_off = Udp {
            size: Distribution::Constant(700),
            pattern: Pattern::OnOff { rate, on, off },
        };
        for (udp, share) in [(Udp::poisson(rate, 500), 1.0), (on_off, 0.25)] {
            let seconds = 400;
            let error = sent_in(&udp, seconds) as f64 / (seconds as f64 * 1e6 * share) - 1.0;
            assert!(error.abs() < 0.02, "{udp:?} is off by {error}");
        }
    }
}
