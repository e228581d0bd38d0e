//! What can be measured, and how it follows from the results of a run.

use fairgate_sim::Results;
use fairgate_sim::results::{GroupResults, InterfaceResults};
use serde::Deserialize;

use super::window::Window;

/// What is measured. The comment of each one is its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    /// Payload delivered by all flows of the group, in order and once.
    Goodput,
    /// The mean goodput of a flow.
    GoodputPerFlow,
    /// The mean of the flows' goodput while they were active.
    GoodputWhileActive,
    /// IP packets delivered to all flows of the group.
    Throughput,
    /// The mean throughput of a flow.
    ThroughputPerFlow,
    /// The least throughput of the group in an interval of the window.
    ThroughputLeast,
    /// The greatest throughput of the group in an interval of the window.
    ThroughputMost,
    /// The group's share of the goodput of all flows, %.
    Share,
    /// Packets lost, % of those sent.
    Loss,
    /// Packets lost.
    LostPackets,
    /// Mean packet delay, ms.
    Delay,
    /// The median of the packet delay, the greatest of all groups, ms.
    DelayP50,
    /// The 95th percentile of the packet delay, the greatest of all groups, ms.
    DelayP95,
    /// The 99th percentile of the packet delay, the greatest of all groups, ms.
    DelayP99,
    /// The longest packet delay, ms.
    DelayMax,
    /// The harmonic mean of the flows' mean packet delays, ms: the thesis' measure.
    HarmonicDelay,
    /// The mean of the flows' jitters, ms.
    Jitter,
    /// Jain's index of the flows' goodput.
    Jain,
    /// The mean duration of a transfer, ms.
    ResponseTime,
    /// The 95th percentile of the durations of transfers, ms.
    ResponseTimeP95,
    /// The mean number of active flows.
    ActiveFlows,
    /// Flows that gave up because admission control rejected a packet, % of those that started in the window.
    Blocking,
    /// The utilisation of an interface, %.
    Utilisation,
    /// Packets dropped at an interface.
    Drops,
    /// The mean sojourn time at an interface, ms.
    Sojourn,
    /// The mean queue of an interface at the ends of intervals, packets.
    Backlog,
    /// The longest queue of an interface at the end of an interval, packets.
    BacklogMost,
    /// The mean of an observed variable.
    Observed,
    /// The 95th percentile of an observed variable.
    ObservedP95,
    /// The 99th percentile of an observed variable.
    ObservedP99,
    /// The least value of an observed variable.
    ObservedLeast,
    /// The greatest value of an observed variable.
    ObservedMost,
    /// When an observed variable is first at or above `value`, s after the start of the run. The whole run if
    /// it never is.
    ObservedReaches,
    /// When an observed variable is first at or below `value`, s after the start of the run. The whole run if
    /// it never is.
    ObservedFallsTo,
}

/// What a quantity is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Group,
    Interface,
    Observed,
}

impl Quantity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Goodput => "goodput",
            Quantity::GoodputPerFlow => "goodput per flow",
            Quantity::GoodputWhileActive => "goodput while active",
            Quantity::Throughput => "throughput",
            Quantity::ThroughputPerFlow => "throughput per flow",
            Quantity::ThroughputLeast => "least throughput",
            Quantity::ThroughputMost => "greatest throughput",
            Quantity::Share => "share",
            Quantity::Loss => "loss",
            Quantity::LostPackets => "lost packets",
            Quantity::Delay => "delay",
            Quantity::DelayP50 => "median delay",
            Quantity::DelayP95 => "delay p95",
            Quantity::DelayP99 => "delay p99",
            Quantity::DelayMax => "longest delay",
            Quantity::HarmonicDelay => "harmonic mean delay",
            Quantity::Jitter => "jitter",
            Quantity::Jain => "Jain's index",
            Quantity::ResponseTime => "response time",
            Quantity::ResponseTimeP95 => "response time p95",
            Quantity::ActiveFlows => "active flows",
            Quantity::Blocking => "blocking",
            Quantity::Utilisation => "utilisation",
            Quantity::Drops => "drops",
            Quantity::Sojourn => "sojourn time",
            Quantity::Backlog => "queue",
            Quantity::BacklogMost => "longest queue",
            Quantity::Observed => "mean",
            Quantity::ObservedP95 => "p95",
            Quantity::ObservedP99 => "p99",
            Quantity::ObservedLeast => "least",
            Quantity::ObservedMost => "greatest",
            Quantity::ObservedReaches => "rise",
            Quantity::ObservedFallsTo => "fall",
        }
    }

    pub(super) fn subject(self) -> Subject {
        use Quantity::{
            Backlog, BacklogMost, Drops, Observed, ObservedFallsTo, ObservedLeast, ObservedMost, ObservedP95,
            ObservedP99, ObservedReaches, Sojourn, Utilisation,
        };
        match self {
            Utilisation | Drops | Sojourn | Backlog | BacklogMost => Subject::Interface,
            Observed | ObservedP95 | ObservedP99 | ObservedLeast | ObservedMost | ObservedReaches
            | ObservedFallsTo => Subject::Observed,
            _ => Subject::Group,
        }
    }

    /// Returns whether it follows from a series, so that it can be measured in any window.
    pub(super) fn is_of_series(self) -> bool {
        use Quantity::{
            Backlog, BacklogMost, Throughput, ThroughputLeast, ThroughputMost, ThroughputPerFlow,
        };
        match self {
            Throughput | ThroughputPerFlow | ThroughputLeast | ThroughputMost | Backlog | BacklogMost => true,
            _ => self.subject() == Subject::Observed && !self.needs_value(),
        }
    }

    /// Returns whether it needs a `value`.
    pub(super) fn needs_value(self) -> bool {
        matches!(self, Quantity::ObservedReaches | Quantity::ObservedFallsTo)
    }

    pub(super) fn is_rate(self) -> bool {
        use Quantity::{
            Goodput, GoodputPerFlow, GoodputWhileActive, Throughput, ThroughputLeast, ThroughputMost,
            ThroughputPerFlow,
        };
        matches!(
            self,
            Goodput
                | GoodputPerFlow
                | GoodputWhileActive
                | Throughput
                | ThroughputPerFlow
                | ThroughputLeast
                | ThroughputMost
        )
    }

    /// Returns the unit of what is neither a rate nor observed.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Quantity::Share | Quantity::Loss | Quantity::Utilisation | Quantity::Blocking => "%",
            Quantity::Jain => "",
            Quantity::Drops | Quantity::LostPackets | Quantity::Backlog | Quantity::BacklogMost => "packets",
            Quantity::ActiveFlows => "flows",
            Quantity::ObservedReaches | Quantity::ObservedFallsTo => "s",
            _ => "ms",
        }
    }

    /// Returns the value for these groups together. Rates are in bit/s. Percentiles are the greatest of all
    /// groups. `window` is set if a window was given.
    pub(super) fn of_groups(
        self,
        results: &Results,
        groups: &[&GroupResults],
        window: Option<&Window>,
    ) -> f64 {
        let sum =
            |figure: fn(&GroupResults) -> u64| groups.iter().map(|group| figure(group) as f64).sum::<f64>();
        let greatest = |figure: fn(&GroupResults) -> u64| {
            groups.iter().map(|group| figure(group)).max().unwrap_or(0) as f64 * 1e-6
        };
        // The mean of a figure, weighted by what it is a mean of.
        let weighted = |figure: fn(&GroupResults) -> u64, weight: fn(&GroupResults) -> u64| {
            let product = |group: &&GroupResults| figure(group) as f64 * weight(group) as f64;
            groups.iter().map(product).sum::<f64>() / sum(weight).max(1.0)
        };
        let flows = sum(|group| group.flows).max(1.0);
        let throughput = || match window {
            Some(window) => mean(&points(results, groups, window)),
            None => sum(|group| group.throughput_bps),
        };
        // The measurement window, if no other one was given.
        let in_window = || {
            let measured = measured(results);
            points(results, groups, window.unwrap_or(&measured))
        };
        match self {
            Quantity::Goodput => sum(|group| group.goodput_bps),
            Quantity::GoodputPerFlow => sum(|group| group.goodput_bps) / flows,
            Quantity::GoodputWhileActive => {
                weighted(|group| group.goodput.mean_bps, |group| group.goodput.count)
            }
            Quantity::Throughput => throughput(),
            Quantity::ThroughputPerFlow => throughput() / flows,
            Quantity::ThroughputLeast => least(&in_window()),
            Quantity::ThroughputMost => most(&in_window()),
            Quantity::Share => 100.0 * sum(|group| group.goodput_bps) / (results.goodput_bps as f64).max(1.0),
            Quantity::Loss => 100.0 * sum(|group| group.lost) / sum(|group| group.sent).max(1.0),
            Quantity::LostPackets => sum(|group| group.lost),
            Quantity::Delay => 1e-6 * weighted(|group| group.delay_mean_ns, |group| group.delay.count),
            Quantity::DelayP50 => greatest(|group| group.delay.p50_ns),
            Quantity::DelayP95 => greatest(|group| group.delay.p95_ns),
            Quantity::DelayP99 => greatest(|group| group.delay.p99_ns),
            Quantity::DelayMax => greatest(|group| group.delay.max_ns),
            Quantity::HarmonicDelay => harmonic_delay(groups),
            Quantity::Jitter => 1e-6 * weighted(|group| group.jitter_ns, |group| group.flows),
            Quantity::Jain => jain(results, groups),
            Quantity::ResponseTime => {
                1e-6 * weighted(|group| group.transfers.mean_ns, |group| group.transfers.count)
            }
            Quantity::ResponseTimeP95 => greatest(|group| group.transfers.p95_ns),
            Quantity::ActiveFlows => groups.iter().map(|group| group.active_mean).sum(),
            Quantity::Blocking => 100.0 * sum(|group| group.blocked) / sum(|group| group.offered).max(1.0),
            _ => unreachable!("the others are of interfaces or observed"),
        }
    }

    pub(super) fn of_interface(
        self,
        results: &Results,
        interface: &InterfaceResults,
        window: Option<&Window>,
    ) -> f64 {
        let queue = || {
            let measured = measured(results);
            let series = &interface.backlog_series_packets;
            let points = window.unwrap_or(&measured).points(seconds(results), series.len());
            series[points]
                .iter()
                .map(|&packets| packets as f64)
                .collect::<Vec<f64>>()
        };
        match self {
            Quantity::Utilisation => 100.0 * interface.utilisation.unwrap_or(0.0),
            Quantity::Drops => interface.dropped as f64,
            Quantity::Sojourn => interface.sojourn.mean_ns as f64 * 1e-6,
            Quantity::Backlog => mean(&queue()),
            Quantity::BacklogMost => most(&queue()),
            _ => unreachable!("the others are of groups or observed"),
        }
    }
}

/// Returns the interval of series, s.
pub(super) fn seconds(results: &Results) -> f64 {
    results.interval_ns as f64 * 1e-9
}

/// Returns the measurement window.
pub(super) fn measured(results: &Results) -> Window {
    let [from, to] = results.measured_ns.map(|nanos| nanos as f64 * 1e-9);
    Window {
        time: from..to,
        label: String::new(),
    }
}

/// Returns the throughput of these groups together in each interval of the window, bit/s.
fn points(results: &Results, groups: &[&GroupResults], window: &Window) -> Vec<f64> {
    let lengths = groups.iter().map(|group| group.throughput_series_bps.len());
    let points = window.points(seconds(results), lengths.max().unwrap_or(0));
    let at = |point: usize| {
        let each = groups
            .iter()
            .map(|group| group.throughput_series_bps.get(point).copied().unwrap_or(0));
        each.sum::<u64>() as f64
    };
    points.map(at).collect()
}

/// Jain's index of the flows of these groups.
fn jain(results: &Results, groups: &[&GroupResults]) -> f64 {
    match groups {
        [group] => group.jain,
        _ if groups.len() == results.groups.len() => results.jain,
        _ => {
            let is_meant = |name: &str| groups.iter().any(|group| group.name == name);
            let flows = results.flows.iter().filter(|flow| is_meant(&flow.group));
            let shares: Vec<f64> = flows.map(|flow| flow.goodput_bps as f64).collect();
            let squares: f64 = shares.iter().map(|share| share * share).sum();
            let sum: f64 = shares.iter().sum();
            if squares == 0.0 {
                1.0
            } else {
                sum * sum / (shares.len() as f64 * squares)
            }
        }
    }
}

/// The harmonic mean over all flows. Flows that received nothing do not count.
fn harmonic_delay(groups: &[&GroupResults]) -> f64 {
    let heard = groups.iter().filter(|group| group.delay_harmonic_of_flows_ns > 0);
    let (flows, inverse) = heard.fold((0.0, 0.0), |(flows, inverse), group| {
        let own = group.flows as f64;
        (
            flows + own,
            inverse + own / group.delay_harmonic_of_flows_ns as f64,
        )
    });
    if flows > 0.0 { flows / inverse * 1e-6 } else { 0.0 }
}

/// Returns the mean, or 0 if there is nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() as f64).max(1.0)
}

/// Returns the least value, or 0 if there is nothing.
pub(super) fn least(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

/// Returns the greatest value, or 0 if there is nothing.
pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::max).unwrap_or(0.0)
}
