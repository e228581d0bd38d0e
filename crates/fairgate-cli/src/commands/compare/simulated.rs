//! The results of a simulation as the figures of a comparison.

use std::time::Duration;

use fairgate::Time;
use fairgate_report::{Delay, Measured, Queue, bin_width};
use fairgate_sim::Results;
use fairgate_sim::results::{Durations, FlowResults, GroupResults, InterfaceResults, Totals};

/// The number of samples of the queue's length in a bin of the plots.
pub(super) const SAMPLES: u64 = 8;

/// Returns the interval between samples in a run of this duration.
pub(super) fn interval(duration: Duration) -> Duration {
    let bin = bin_width(Time::from_nanos(duration.as_nanos() as u64));
    Duration::from_nanos(bin / SAMPLES).min(duration)
}

/// The packets of a flow or a group that pass the link in the direction that is measured.
#[derive(Clone, Copy)]
pub(super) enum Packets<'a> {
    /// Data of a flow, with delays.
    Data(&'a FlowResults),
    /// Data of a group of flows, with delays.
    Group(&'a GroupResults),
    /// Acknowledgements and requests, of which only totals are known.
    Back(&'a Totals),
}

/// What is known of data, besides totals.
#[derive(Clone, Copy)]
struct Figures<'a> {
    received: u64,
    marked: u64,
    jitter_ns: u64,
    delay: &'a Durations,
    throughput_bps: &'a [u64],
}

impl<'a> Packets<'a> {
    fn totals(self) -> &'a Totals {
        match self {
            Packets::Data(flow) => &flow.whole_run,
            Packets::Group(group) => &group.whole_run,
            Packets::Back(totals) => totals,
        }
    }

    fn figures(self) -> Option<Figures<'a>> {
        match self {
            Packets::Data(flow) => Some(Figures {
                received: flow.received,
                marked: flow.marked,
                jitter_ns: flow.jitter_ns,
                delay: &flow.delay,
                throughput_bps: &flow.throughput_series_bps,
            }),
            Packets::Group(group) => Some(Figures {
                received: group.received,
                marked: group.marked,
                jitter_ns: group.jitter_ns,
                delay: &group.delay,
                throughput_bps: &group.throughput_series_bps,
            }),
            Packets::Back(_) => None,
        }
    }
}

/// Combines the packets of several flows or groups. The measurement window must be the whole run. Delays are
/// combined by packets. Jitter is the mean over successive packets of the same flow.
pub(super) fn together<'a>(
    results: &Results,
    packets: impl Iterator<Item = Packets<'a>> + Clone,
) -> Measured {
    let sum = |of: fn(&Totals) -> u64| packets.clone().map(|part| of(part.totals())).sum::<u64>();
    let figures = packets.clone().filter_map(Packets::figures);
    let (offered, delivered, dropped) = (sum(|t| t.sent), sum(|t| t.received), sum(|t| t.lost));
    let with_jitter = figures.clone().map(|part| part.received).sum::<u64>();
    let jitter: u128 = figures
        .clone()
        .map(|part| u128::from(part.jitter_ns) * u128::from(part.received))
        .sum();
    let lengths = figures.clone().map(|part| part.throughput_bps.len());
    let mut series = vec![0u64; lengths.max().unwrap_or(0)];
    for part in figures.clone() {
        for (all, one) in series.iter_mut().zip(part.throughput_bps) {
            *all += one;
        }
    }
    debug_assert_eq!(
        results.measured_ns,
        [0, results.duration_ns],
        "counts are for the whole run"
    );
    let delivered_bytes = sum(|t| t.received_bytes);
    Measured {
        offered,
        delivered,
        dropped,
        left: sum(|t| t.in_flight),
        offered_bytes: sum(|t| t.sent_bytes),
        delivered_bytes,
        dropped_bytes: sum(|t| t.lost_bytes),
        left_bytes: sum(|t| t.in_flight_bytes),
        marked: figures.clone().map(|part| part.marked).sum(),
        throughput_bps: delivered_bytes as f64 * 8e9 / (results.duration_ns as f64).max(1.0),
        loss: dropped as f64 / (offered as f64).max(1.0),
        delay: mixed_delay(figures.map(|part| part.delay)),
        jitter_ns: jitter.checked_div(with_jitter.into()).map(|mean| mean as u64),
        throughput_over_time_bps: bins(&series).map(|bin| mean(bin) as f64).collect(),
        completion: None,
    }
}

/// Returns the delays of all packets together, computed from the percentiles of each distribution.
fn mixed_delay<'a>(delays: impl Iterator<Item = &'a Durations>) -> Option<Delay> {
    // Each percentile represents one hundredth of the packets.
    let mut steps: Vec<(u64, f64)> = Vec::new();
    let (mut count, mut sum, mut longest) = (0u64, 0u128, 0);
    for delay in delays.filter(|delay| delay.count > 0) {
        let share = delay.count as f64 / (delay.percentiles_ns.len() - 1) as f64;
        steps.extend(delay.percentiles_ns[1..].iter().map(|&nanos| (nanos, share)));
        count += delay.count;
        sum += u128::from(delay.mean_ns) * u128::from(delay.count);
        longest = longest.max(delay.max_ns);
    }
    if count == 0 {
        return None;
    }
    steps.sort_by_key(|step| step.0);
    let mut below = 0.0;
    let distribution: Vec<(u64, f64)> = steps
        .into_iter()
        .map(|(nanos, share)| {
            below += share / count as f64;
            (nanos, below.min(1.0))
        })
        .collect();
    let quantile = |share: f64| {
        let reached = distribution.iter().find(|point| point.1 >= share - 1e-9);
        reached.map_or(longest, |point| point.0)
    };
    Some(Delay {
        mean_ns: (sum / u128::from(count)) as u64,
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        max_ns: longest,
        distribution: thinned(&distribution),
    })
}

/// Reduces the points to the number that a plot can show.
fn thinned(distribution: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let step = distribution.len().div_ceil(100).max(1);
    let last = distribution.len() - 1;
    let kept = |(index, _): &(usize, &(u64, f64))| (index + 1) % step == 0 || *index == last;
    distribution
        .iter()
        .enumerate()
        .filter(kept)
        .map(|(_, point)| *point)
        .collect()
}

/// Returns the queue as sampled at the end of each interval.
pub(super) fn queue(line: &InterfaceResults) -> Queue {
    let most = |samples: &[u64]| samples.iter().copied().max().unwrap_or(0);
    Queue {
        mean_bytes: mean(&line.backlog_series_bytes),
        most_bytes: most(&line.backlog_series_bytes),
        most_packets: most(&line.backlog_series_packets),
        mean_bytes_over_time: bins(&line.backlog_series_bytes).map(mean).collect(),
        most_bytes_over_time: bins(&line.backlog_series_bytes).map(most).collect(),
    }
}

fn bins(samples: &[u64]) -> impl Iterator<Item = &[u64]> {
    samples.chunks(SAMPLES as usize)
}

fn mean(samples: &[u64]) -> u64 {
    samples.iter().sum::<u64>() / (samples.len() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::Rate;
    use fairgate_sim::{Flow, Link, Scenario, Simulation, Udp};

    /// The percentiles of a single distribution are those of the simulator.
    #[test]
    fn mixing_one_flow_changes_nothing() {
        let mut scenario = Scenario::new(Duration::from_secs(5));
        let (a, b) = (scenario.node("a"), scenario.node("b"));
        let link = Link::new(a, b, Rate::mbit(1), Duration::from_millis(5));
        scenario.links.push(link);
        let traffic = Udp::poisson(Rate::from_bits_per_second(900_000).unwrap(), 500);
        scenario.flows.push(Flow::new("poisson", a, b, traffic));
        let results = Simulation::new(&scenario).unwrap().run().unwrap();
        let flow = &results.flows[0];
        let mixed = mixed_delay([&flow.delay].into_iter()).unwrap();
        for (mixed, exact) in [
            (mixed.p50_ns, flow.delay.p50_ns),
            (mixed.p95_ns, flow.delay.p95_ns),
            (mixed.p99_ns, flow.delay.p99_ns),
        ] {
            assert_eq!(mixed, exact);
        }
        assert_eq!(mixed.distribution.last().map(|point| point.1), Some(1.0));
    }
}
