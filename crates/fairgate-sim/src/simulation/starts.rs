//! When the flows of a group start.

use fairgate::Time;

use crate::events::time;
use crate::random::{Distribution, Stream};
use crate::scenario::{Arrivals, Flow, Scenario};

/// A flow that is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) at: Time,
    /// The number of the flow in its group, from 0.
    pub(super) copy: u32,
}

/// The starts of a group's flows, in the order of time.
#[derive(Debug)]
pub(super) enum Starts {
    /// Copies at equal distances.
    Regular {
        first: Time,
        stagger: u64,
        next: u32,
        count: u32,
    },
    /// Copies with random starts.
    Listed(std::vec::IntoIter<Start>),
    /// Random arrivals.
    Arrivals {
        next: Start,
        interval: Interval,
        stream: Stream,
        /// Nobody arrives from here on.
        until: Time,
    },
}

/// The distribution of the intervals between arrivals, ns.
#[derive(Debug)]
pub(super) enum Interval {
    /// Not rounded to whole nanoseconds, because high rates have short intervals.
    Exponential(f64),
    Any(Distribution),
}

impl Interval {
    fn sample(&self, stream: &mut Stream) -> u64 {
        match self {
            Interval::Exponential(mean) => stream.exponential(*mean).round() as u64,
            Interval::Any(distribution) => distribution.sample(stream),
        }
    }
}

impl Starts {
    /// Returns the starts of the flows of a checked scenario.
    pub(super) fn new(scenario: &Scenario, flow: &Flow) -> Starts {
        let mut stream = Stream::new(scenario.seed, "starts", &flow.name);
        let first = time(flow.start);
        if let Some(arrivals) = &flow.arrivals {
            let interval = match arrivals {
                Arrivals::Renewal { interval } => Interval::Any(interval.clone()),
                Arrivals::Poisson { .. } | Arrivals::Load { .. } => Interval::Exponential(
                    arrivals
                        .mean_interval(flow.mean_payload())
                        .expect("the rate of arrivals was checked"),
                ),
            };
            let at = later(first, interval.sample(&mut stream));
            return Starts::Arrivals {
                next: Start { at, copy: 0 },
                interval,
                stream,
                until: flow.stop.map_or(Time::MAX, time),
            };
        }
        let nothing = Distribution::Constant(0);
        if flow.random_start == nothing && flow.random_stagger == nothing {
            return Starts::Regular {
                first,
                stagger: time(flow.stagger).nanos(),
                next: 0,
                count: flow.count,
            };
        }
        let mut regular = first;
        let mut list: Vec<Start> = (0..flow.count)
            .map(|copy| {
                if copy > 0 {
                    let random = flow.random_stagger.sample(&mut stream);
                    regular = later(later(regular, time(flow.stagger).nanos()), random);
                }
                let at = later(regular, flow.random_start.sample(&mut stream));
                Start { at, copy }
            })
            .collect();
        list.sort_by_key(|start| start.at);
        Starts::Listed(list.into_iter())
    }

    /// Returns the next start, but does not take it.
    pub(super) fn peek(&self) -> Option<Start> {
        match self {
            Starts::Regular {
                first,
                stagger,
                next,
                count,
            } => (next < count).then(|| Start {
                at: *first + stagger * u64::from(*next),
                copy: *next,
            }),
            Starts::Listed(list) => list.as_slice().first().copied(),
            Starts::Arrivals { next, until, .. } => (next.at < *until).then_some(*next),
        }
    }

    /// Takes the next start.
    pub(super) fn take(&mut self) -> Option<Start> {
        let start = self.peek()?;
        match self {
            Starts::Regular { next, .. } => *next += 1,
            Starts::Listed(list) => _ = list.next(),
            Starts::Arrivals {
                next,
                interval,
                stream,
                ..
            } => {
                next.at = later(next.at, interval.sample(stream));
                next.copy += 1;
            }
        }
        Some(start)
    }

    /// Returns whether the number of flows is random.
    pub(super) fn are_arrivals(&self) -> bool {
        matches!(self, Starts::Arrivals { .. })
    }
}

/// Returns the time `nanos` later. A random time may be beyond the last one that there is.
pub(super) fn later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.nanos().saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Udp;
    use fairgate::Rate;
    use std::time::Duration;

    fn starts(change: impl Fn(&mut Flow)) -> Starts {
        let mut scenario = Scenario::new(Duration::from_secs(1));
        let (a, b) = (scenario.node("a"), scenario.node("b"));
        let mut flow = Flow::new("f", a, b, Udp::constant(Rate::mbit(1), 100));
        change(&mut flow);
        Starts::new(&scenario, &flow)
    }

    fn list(mut starts: Starts, count: usize) -> Vec<Start> {
        std::iter::from_fn(|| starts.take()).take(count).collect()
    }

    #[test]
    fn copies_start_at_equal_distances() {
        let starts = starts(|flow| {
            flow.start = Duration::from_nanos(7);
            flow.count = 3;
            flow.stagger = Duration::from_nanos(5);
        });
        let times: Vec<(u64, u32)> = (list(starts, 9).iter())
            .map(|start| (start.at.nanos(), start.copy))
            .collect();
        assert_eq!(times, [(7, 0), (12, 1), (17, 2)]);
    }

    #[test]
    fn random_starts_come_in_the_order_of_time_and_each_copy_once() {
        let starts = starts(|flow| {
            flow.start = Duration::from_nanos(1_000);
            flow.count = 500;
            flow.random_start = Distribution::Uniform { low: 0, high: 10_000 };
            flow.random_stagger = Distribution::Exponential { mean: 20 };
        });
        let list = list(starts, 1_000);
        assert!(list.is_sorted_by_key(|start| start.at));
        assert!(list[0].at >= Time::from_nanos(1_000));
        let mut copies: Vec<u32> = list.iter().map(|start| start.copy).collect();
        assert!(!copies.is_sorted(), "copies overtake each other");
        copies.sort_unstable();
        assert_eq!(copies, (0..500).collect::<Vec<_>>());
    }

    /// The number of Poisson arrivals in intervals of equal length has equal mean and variance.
    #[test]
    fn poisson_arrivals_have_the_rate_and_variance() {
        let starts = starts(|flow| {
            flow.start = Duration::from_secs(5);
            flow.stop = Some(Duration::from_secs(2_005));
            flow.arrivals = Some(Arrivals::Poisson { per_second: 12.0 });
        });
        let mut counts = vec![0.0f64; 2_000];
        for start in list(starts, usize::MAX) {
            counts[(start.at.nanos() / 1_000_000_000 - 5) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2_000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 2_000.0;
        // Five standard errors of both estimates.
        assert!((mean - 12.0).abs() < 5.0 * (12.0f64 / 2_000.0).sqrt(), "{mean}");
        assert!(
            (variance - 12.0).abs() < 5.0 * 12.0 * (2.0f64 / 2_000.0).sqrt(),
            "{variance}"
        );
    }

    /// 80,000 bit/s of flows that last two seconds at 1 Mbit/s.
    #[test]
    fn the_rate_follows_from_the_load() {
        let starts = starts(|flow| {
            flow.lifetime = Some(Distribution::Exponential { mean: 2_000_000_000 });
            flow.arrivals = Some(Arrivals::Load {
                load: Rate::from_bits_per_second(80_000).unwrap(),
            });
        });
        let Starts::Arrivals {
            interval: Interval::Exponential(mean),
            ..
        } = starts
        else {
            panic!("{starts:?}");
        };
        assert!((mean - 25e9).abs() < 1.0, "{mean}");
    }
}
