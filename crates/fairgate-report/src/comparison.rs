//! The result of a comparison. The types are the schema of `fairgate compare --json`, which docs/json.md
//! describes. A change that breaks a reader of the old schema needs a new version there.

use std::collections::BTreeMap;

use fairgate::Count;
use fairgate::balance::{self, Imbalance};
use serde::Serialize;

/// Several disciplines, one after the other on the same link.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The program's version.
    pub version: &'static str,
    /// The command that reproduces this result.
    pub command: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The traffic on the link.
    pub input: Input,
    /// The link's rate, bit/s. `None` if the link has no rate of its own, only a shaper.
    pub rate_bps: Option<u64>,
    /// The length of the run, ns.
    pub duration_ns: u64,
    /// The width of a bin in all values over time, ns. The end of the run may cut the last bin short.
    pub bin_ns: u64,
    /// Settings and properties of the run, as text.
    pub facts: Vec<Fact>,
    /// Warnings about the accuracy of the results.
    pub remarks: Vec<String>,
    /// The applications or flows, in the order of `Discipline::groups`.
    pub groups: Vec<Group>,
    /// What Jain's index in `Discipline::fairness` is computed over.
    pub fairness_over: String,
    /// The disciplines, in the order given by the user.
    pub disciplines: Vec<Discipline>,
}

/// The source of the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// Simulated traffic: senders react to what the discipline does to their packets.
    Scenario {
        /// The name of the scenario.
        name: String,
    },
    /// Replayed traffic: each packet arrives at the time of its capture, whatever happened to earlier
    /// packets.
    Capture {
        /// The file, as the user gave it.
        file: String,
        /// The number of packets in the file.
        packets: u64,
        /// The number of packets of the file that were sent over the link.
        replayed: u64,
        /// The number of packets that these were on the link. The capturing host may have merged several
        /// packets into one.
        on_line: u64,
    },
    /// The TCP connections of a recording, simulated: senders react. Other packets of the recording are sent
    /// at the time of their capture.
    Connections {
        /// The file, as the user gave it.
        file: String,
        /// The number of packets in the file.
        packets: u64,
        /// The number of TCP connections that are simulated.
        connections: u64,
        /// The number of other packets that are replayed.
        replayed: u64,
    },
}

/// A line of text with a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The label.
    pub label: String,
    /// The text.
    pub value: String,
}

/// An application or a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// A short name.
    pub name: String,
    /// More about it: addresses, or what it sends.
    pub detail: String,
    /// Whether it passed the queue that is measured, and so is part of `Discipline::total`. Groups of the
    /// other direction are not.
    pub in_total: bool,
}

/// The results of one discipline.
#[derive(Clone, Debug, Serialize)]
pub struct Discipline {
    /// The name, with parameters if any were given.
    pub name: String,
    /// All packets: the sum of the groups that are `in_total`.
    pub total: Measured,
    /// The result of each group, in the order of `Comparison::groups`.
    pub groups: Vec<Measured>,
    /// The share of the link's capacity that carried packets.
    pub utilisation: f64,
    /// Jain's index, if it is meaningful.
    pub fairness: Option<f64>,
    /// The dropped packets of the total, by reason. Only reasons that occurred are listed.
    pub drops: BTreeMap<String, u64>,
    /// The queue.
    pub queue: Queue,
}

/// The results of a flow, of a group or of all packets. `offered` is the sum of `delivered`, `dropped` and
/// `left`, in packets and in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Packets enqueued or dropped on arrival.
    pub offered: u64,
    /// Packets carried by the link.
    pub delivered: u64,
    /// Packets dropped by the discipline.
    pub dropped: u64,
    /// Packets still queued or in transmission at the end of the run.
    pub left: u64,
    /// Bytes enqueued or dropped on arrival.
    pub offered_bytes: u64,
    /// Bytes carried by the link.
    pub delivered_bytes: u64,
    /// Bytes dropped by the discipline.
    pub dropped_bytes: u64,
    /// Bytes still queued or in transmission at the end of the run.
    pub left_bytes: u64,
    /// Packets delivered with a congestion mark from the discipline.
    pub marked: u64,
    /// Delivered bits per second of the run.
    pub throughput_bps: f64,
    /// Dropped packets divided by offered packets.
    pub loss: f64,
    /// The delays, if anything was delivered.
    pub delay: Option<Delay>,
    /// The mean difference of the delays of successive packets of a flow, ns (FlowMonitor's definition).
    pub jitter_ns: Option<u64>,
    /// The throughput in each bin of time, bit/s.
    pub throughput_over_time_bps: Vec<f64>,
    /// How long connections took, if the traffic is a recording's connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
}

/// How long the connections of a group took, from their start to the last byte of their last turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// The number of connections.
    pub connections: u64,
    /// The number of connections that were completed before the end of the run.
    pub completed: u64,
    /// The mean of the times of completed connections, ns. The times are 0 if there are none.
    pub mean_ns: u64,
    /// Their median, ns.
    pub p50_ns: u64,
    /// Their 95th percentile, ns.
    pub p95_ns: u64,
    /// The longest one, ns.
    pub max_ns: u64,
}

impl Completion {
    /// Returns the statistics of the times of `connections` connections. A connection that was not completed
    /// has none.
    pub fn of(times: impl IntoIterator<Item = Option<u64>>) -> Completion {
        let mut connections = 0;
        let mut times: Vec<u64> = times
            .into_iter()
            .inspect(|_| connections += 1)
            .flatten()
            .collect();
        times.sort_unstable();
        let completed = times.len() as u64;
        // The smallest time that the share does not exceed.
        let quantile = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).copied().unwrap_or(0)
        };
        let sum: u128 = times.iter().map(|&nanos| u128::from(nanos)).sum();
        Completion {
            connections,
            completed,
            mean_ns: sum.checked_div(completed.into()).unwrap_or(0) as u64,
            p50_ns: quantile(50),
            p95_ns: quantile(95),
            max_ns: quantile(100),
        }
    }
}

/// Delays of delivered packets. Percentiles are accurate to 1 %. Mean and maximum are exact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Mean, ns.
    pub mean_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// The greatest delay, ns.
    pub max_ns: u64,
    /// Pairs of a delay in ns and the share of packets at or below it, rising.
    pub distribution: Vec<(u64, f64)>,
}

/// The queue in front of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// The mean over the run, bytes.
    pub mean_bytes: u64,
    /// The longest queue, bytes.
    pub most_bytes: u64,
    /// The longest queue, packets.
    pub most_packets: u64,
    /// The mean in each bin of time, bytes.
    pub mean_bytes_over_time: Vec<u64>,
    /// The longest queue in each bin of time, bytes.
    pub most_bytes_over_time: Vec<u64>,
}

impl Comparison {
    /// Returns whether a group has completion times.
    pub(crate) fn has_completion(&self) -> bool {
        let mut groups = self.disciplines.iter().flat_map(|discipline| &discipline.groups);
        groups.any(|measured| measured.completion.is_some())
    }

    /// Checks that the statistics add up: within every group and the total, between the total and its groups,
    /// between drops and their reasons, and with the number of replayed packets.
    ///
    /// # Errors
    /// Returns an error for the first numbers that do not add up.
    pub fn check(&self) -> Result<(), Imbalance> {
        for discipline in &self.disciplines {
            let context = format!("`{}`", discipline.name);
            discipline.check(&context, &self.groups)?;
            if let Input::Capture { on_line, .. } = self.input {
                let offered = discipline.total.offered;
                balance::of(
                    &context,
                    "packets",
                    ("replayed", on_line),
                    &[("offered", offered)],
                )?;
            }
        }
        Ok(())
    }
}

impl Discipline {
    fn check(&self, context: &str, groups: &[Group]) -> Result<(), Imbalance> {
        self.total.check(context)?;
        for (group, measured) in groups.iter().zip(&self.groups) {
            measured.check(&format!("{context}, group `{}`", group.name))?;
        }
        for (name, figure) in Measured::FIGURES {
            let members = groups
                .iter()
                .zip(&self.groups)
                .filter(|(group, _)| group.in_total);
            let sum = members.map(|(_, measured)| figure(measured)).sum();
            balance::of_counts(context, (name, figure(&self.total)), &[("by its groups", sum)])?;
        }
        let reasons: Vec<(&str, u64)> = self
            .drops
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        balance::of(context, "packets", ("dropped", self.total.dropped), &reasons)
    }
}

/// The name of a number, and a function that returns it.
type Figure = (&'static str, fn(&Measured) -> Count);

impl Measured {
    /// The numbers that are counted in packets and in bytes.
    const FIGURES: [Figure; 4] = [
        ("offered", |measured| Count {
            packets: measured.offered,
            bytes: measured.offered_bytes,
        }),
        ("delivered", |measured| Count {
            packets: measured.delivered,
            bytes: measured.delivered_bytes,
        }),
        ("dropped", |measured| Count {
            packets: measured.dropped,
            bytes: measured.dropped_bytes,
        }),
        ("left", |measured| Count {
            packets: measured.left,
            bytes: measured.left_bytes,
        }),
    ];

    fn check(&self, context: &str) -> Result<(), Imbalance> {
        let [offered, parts @ ..] = Measured::FIGURES.map(|(name, figure)| (name, figure(self)));
        balance::of_counts(context, offered, &parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_times_are_those_of_completed_connections() {
        let completion = Completion::of([Some(30), None, Some(10), Some(20), Some(40)]);
        let expected = Completion {
            connections: 5,
            completed: 4,
            mean_ns: 25,
            p50_ns: 20,
            p95_ns: 40,
            max_ns: 40,
        };
        assert_eq!(completion, expected);
        assert_eq!(Completion::of([None]).max_ns, 0);
    }
}
