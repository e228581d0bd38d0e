//! The measurements of a run, by the names in the experiment's file (section 2 of the RFC).

use std::collections::{BTreeMap, BTreeSet};

use fairgate::jain_index;
use fairgate_sim::results::{FlowResults, Results};
use fairgate_sim::{Scenario, Traffic};

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// The values by name.
    figures: BTreeMap<String, f64>,
}

/// The name of a measured value, and its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) unit: &'static str,
}

/// Values of the bottleneck, shown for every scenario.
pub(super) const GOODPUT: &str = "goodput";
pub(super) const DELAY: &str = "delay";
pub(super) const LONG_DELAY: &str = "delay p99";
pub(super) const LOSS: &str = "loss";
pub(super) const ALWAYS: [&str; 4] = [GOODPUT, DELAY, LONG_DELAY, LOSS];
/// Values of the flows through the bottleneck.
pub(super) const JAIN: &str = "Jain's index";

impl Measure {
    /// Returns `None` if there is no value of this name.
    pub(super) fn new(name: &str) -> Option<Measure> {
        let kind = name.rsplit_once(": ").map_or(name, |(_, kind)| kind);
        let unit = match kind {
            "goodput" => "Mbit/s",
            "delay" | "delay p99" | "completion" | "start-up" | "jitter" | "between losses" => "ms",
            "loss" | "marks" => "%",
            "Jain's index" => "",
            _ => return None,
        };
        Some(Measure {
            name: name.to_owned(),
            unit,
        })
    }

    /// Returns the text for the head of a column.
    pub(super) fn head(&self) -> String {
        match self.unit {
            "" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

const MILLI: f64 = 1e-6;

impl Outcome {
    /// Computes the results of a run. `groups` has the group of each flow.
    pub(super) fn of(
        results: &Results,
        scenario: &Scenario,
        bottleneck: usize,
        groups: &[String],
    ) -> Outcome {
        let link = &results.interfaces[2 * bottleneck];
        let destination = scenario.node_name(scenario.links.last().expect("there are links").b);
        let forth: Vec<&FlowResults> = (results.flows.iter())
            .filter(|flow| flow.destination == destination)
            .collect();
        let goodput =
            |flows: &[&FlowResults]| -> f64 { flows.iter().map(|flow| flow.goodput_bps as f64 * 1e-6).sum() };
        let window = (results.measured_ns[1] - results.measured_ns[0]) as f64 * MILLI;
        let mut outcome = Outcome::default();
        outcome.add(GOODPUT, goodput(&forth));
        outcome.add(DELAY, link.sojourn.mean_ns as f64 * MILLI);
        outcome.add(LONG_DELAY, link.sojourn.p99_ns as f64 * MILLI);
        outcome.add(LOSS, percent(link.dropped, link.enqueued));
        outcome.add("marks", percent(link.marked, link.enqueued));
        // Without any loss this is the whole time, a lower bound.
        outcome.add("between losses", window / link.dropped.max(1) as f64);
        outcome.add(JAIN, jain_index(forth.iter().map(|flow| flow.goodput_bps as f64)));
        for group in groups.iter().collect::<BTreeSet<_>>() {
            let members: Vec<(usize, &FlowResults)> = (results.flows.iter().enumerate())
                .filter(|(index, _)| groups[*index] == *group)
                .collect();
            let flows: Vec<&FlowResults> = members.iter().map(|member| member.1).collect();
            let starts = members
                .iter()
                .map(|&(index, _)| scenario.flows[index].start.as_nanos() as f64);
            let mut of_group = |kind: &str, value: f64| outcome.add(&format!("{group}: {kind}"), value);
            of_group("goodput", goodput(&flows));
            of_group(
                "loss",
                percent(sum(&flows, |flow| flow.lost), sum(&flows, |flow| flow.sent)),
            );
            of_group(
                "jitter",
                mean(flows.iter().map(|flow| flow.jitter_ns as f64 * MILLI)),
            );
            let delays = flows.iter().map(|flow| flow.delay.p99_ns as f64 * MILLI);
            of_group("delay p99", delays.fold(0.0, f64::max));
            if matches!(scenario.flows[members[0].0].traffic, Traffic::Tcp(_)) {
                let connections = || flows.iter().filter_map(|flow| flow.connection.as_ref());
                // A connection that was never established has no start-up time.
                let start_up = (flows.iter().zip(starts)).filter_map(|(flow, start)| {
                    let established = flow.connection.as_ref()?.established_ns?;
                    Some((established as f64 - start) * MILLI)
                });
                of_group("start-up", mean(start_up));
                let ended: u64 = connections().map(|connection| connection.transfers.count).sum();
                let took = connections().map(|connection| {
                    connection.transfers.mean_ns as f64 * connection.transfers.count as f64 * MILLI
                });
                of_group("completion", took.sum::<f64>() / ended as f64);
            }
        }
        outcome
    }

    /// Returns the value of this name, or NaN if there is none.
    pub(super) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }

    fn add(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }
}

fn sum(flows: &[&FlowResults], of: fn(&FlowResults) -> u64) -> u64 {
    flows.iter().map(|flow| of(flow)).sum()
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Returns the mean, or NaN without values.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}
