//! The finished result. Its shape is the schema of `fairgate compare --json`, described in docs/json.md: a change that
//! a reader of the old one would trip over needs a new version there.

use std::collections::BTreeMap;

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
}

/// What one discipline did.
#[derive(Clone, Debug, Serialize)]
pub struct Discipline {
    /// Its name, with parameters if any were given.
    pub name: String,
    /// Everything that passed.
    pub total: Measured,
    /// Each group, in the order of `Comparison::groups`.
    pub groups: Vec<Measured>,
    /// Part of the line's capacity that carried packets.
    pub utilisation: f64,
    /// Jain's index, where it means something.
    pub fairness: Option<f64>,
    /// Packets dropped, by reason, reasons that occurred only.
    pub drops: BTreeMap<String, u64>,
    /// The queue.
    pub queue: Queue,
}

/// What a flow, a group or all of them got. `offered` is `delivered` and `dropped` and what the end of the run cut off.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Packets handed to the line.
    pub offered: u64,
    /// Packets carried by it.
    pub delivered: u64,
    /// Packets dropped by the discipline.
    pub dropped: u64,
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
