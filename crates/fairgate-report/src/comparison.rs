//! The finished result. Its shape is the schema of `fairgate compare --json`, described in docs/json.md: a change that
//! a reader of the old one would trip over needs a new version there.

use std::collections::BTreeMap;

use fairgate::Count;
use fairgate::balance::{self, Imbalance};
use serde::Serialize;

/// Several disciplines, one after the other on the same line.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The program's version.
    pub version: &'static str,
    /// The command that gives this result again.
    pub command: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// What passed over the line.
    pub input: Input,
    /// The line's rate, bit/s.
    pub rate_bps: u64,
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Width of a bin in everything "over time", ns. The last bin may be cut short by the end of the run.
    pub bin_ns: u64,
    /// What was set and found, for people.
    pub facts: Vec<Fact>,
    /// What to know before believing the figures.
    pub remarks: Vec<String>,
    /// The applications or flows, in the order of `Discipline::groups`.
    pub groups: Vec<Group>,
    /// What Jain's index in `Discipline::fairness` is taken over.
    pub fairness_over: String,
    /// The disciplines, in the order asked for.
    pub disciplines: Vec<Discipline>,
}

/// Where the traffic came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// Simulated: senders react to what the discipline does to them.
    Scenario {
        /// The scenario's name.
        name: String,
    },
    /// Replayed: each packet arrives when it was captured, whatever became of the ones before.
    Capture {
        /// The file, as given.
        file: String,
        /// Packets in it.
        packets: u64,
        /// Packets of it that were sent over the line.
        replayed: u64,
        /// Packets that these were on the line: one may have been several that the capturing host had joined.
        on_line: u64,
    },
}

/// A line of text with a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// How it was.
    pub value: String,
}

/// An application or a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// A short name.
    pub name: String,
    /// More about it: addresses, what it sends.
    pub detail: String,
    /// Whether it passed the queue looked at, and so is part of `Discipline::total`. Those of the other
    /// direction are not.
    pub in_total: bool,
}

/// What one discipline did.
#[derive(Clone, Debug, Serialize)]
pub struct Discipline {
    /// Its name, with parameters if any were given.
    pub name: String,
    /// Everything that passed: the sum of the groups that are `in_total`.
    pub total: Measured,
    /// Each group, in the order of `Comparison::groups`.
    pub groups: Vec<Measured>,
    /// Part of the line's capacity that carried packets.
    pub utilisation: f64,
    /// Jain's index, where it means something.
    pub fairness: Option<f64>,
    /// The total's packets dropped, by reason, reasons that occurred only.
    pub drops: BTreeMap<String, u64>,
    /// The queue.
    pub queue: Queue,
}

/// What a flow, a group or all of them got. `offered` is the sum of `delivered`, `dropped` and `left`, in
/// packets and in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Packets handed to the line.
    pub offered: u64,
    /// Packets carried by it.
    pub delivered: u64,
    /// Packets dropped by the discipline.
    pub dropped: u64,
    /// Packets still under way at the end of the run.
    pub left: u64,
    /// Bytes handed to the line.
    pub offered_bytes: u64,
    /// Bytes carried by it.
    pub delivered_bytes: u64,
    /// Bytes dropped by the discipline.
    pub dropped_bytes: u64,
    /// Bytes still under way at the end of the run.
    pub left_bytes: u64,
    /// Packets delivered with a congestion mark that the discipline made.
    pub marked: u64,
    /// Delivered bits per second of the run.
    pub throughput_bps: f64,
    /// Dropped packets over offered ones.
    pub loss: f64,
    /// Delays, if anything was delivered.
    pub delay: Option<Delay>,
    /// Mean difference of the delays of successive packets of a flow, ns (FlowMonitor's definition).
    pub jitter_ns: Option<u64>,
    /// Throughput in each bin of time, bit/s.
    pub throughput_over_time_bps: Vec<f64>,
}

/// Delays of delivered packets. Percentiles are exact to 1 %, mean and maximum exact.
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
    /// Greatest, ns.
    pub max_ns: u64,
    /// (delay in ns, share of packets at or below it), rising.
    pub distribution: Vec<(u64, f64)>,
}

/// The queue in front of the line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Mean over the run, bytes.
    pub mean_bytes: u64,
    /// Longest, bytes.
    pub most_bytes: u64,
    /// Longest, packets.
    pub most_packets: u64,
    /// Mean in each bin of time, bytes.
    pub mean_bytes_over_time: Vec<u64>,
    /// Longest in each bin of time, bytes.
    pub most_bytes_over_time: Vec<u64>,
}

impl Comparison {
    /// Checks that the figures add up: of every group and of the total, of the total and its groups, of drops
    /// and their reasons, and of what was replayed.
    ///
    /// # Errors
    /// Where they do not.
    pub fn check(&self) -> Result<(), Imbalance> {
        for discipline in &self.disciplines {
            let place = format!("`{}`", discipline.name);
            discipline.check(&place, &self.groups)?;
            if let Input::Capture { on_line, .. } = self.input {
                let offered = discipline.total.offered;
                balance::of(&place, "packets", ("replayed", on_line), &[("offered", offered)])?;
            }
        }
        Ok(())
    }
}

impl Discipline {
    fn check(&self, place: &str, groups: &[Group]) -> Result<(), Imbalance> {
        self.total.check(place)?;
        for (group, measured) in groups.iter().zip(&self.groups) {
            measured.check(&format!("{place}, group `{}`", group.name))?;
        }
        for (name, figure) in Measured::FIGURES {
            let members = groups
                .iter()
                .zip(&self.groups)
                .filter(|(group, _)| group.in_total);
            let sum = members.map(|(_, measured)| figure(measured)).sum();
            balance::of_counts(place, (name, figure(&self.total)), &[("by its groups", sum)])?;
        }
        let reasons: Vec<(&str, u64)> = self
            .drops
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        balance::of(place, "packets", ("dropped", self.total.dropped), &reasons)
    }
}

/// A figure's name, and the figure.
type Figure = (&'static str, fn(&Measured) -> Count);

impl Measured {
    /// What is counted in packets and in bytes.
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

    fn check(&self, place: &str) -> Result<(), Imbalance> {
        let [offered, parts @ ..] = Measured::FIGURES.map(|(name, figure)| (name, figure(self)));
        balance::of_counts(place, offered, &parts)
    }
}
