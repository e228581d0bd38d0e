//! Compares simulated TCP with TCP recorded from Linux 6.1, cell by cell.
//!
//! A recording names its cell: leaf, congestion control, RTT, number of flows. The file `scenario.toml`
//! beside this one describes what all cells share. Both together become a [`Scenario`]. Its goodput, sojourn
//! time and fairness are compared with the recorded ones.
//!
//! Several flows at one bottleneck are chaotic: a start a microsecond later gives another sample of the same
//! process. So a cell is run several times, and the means are compared. In each run every flow starts up to a
//! millisecond later, by chance. The spread of the runs shows by how much a single recording may differ.

#![forbid(unsafe_code)]

mod htb;

use std::collections::BTreeMap;
use std::time::Duration;

use fairgate::{ClassId, jain_index};
use fairgate_config::units::{parse_duration, parse_rate, parse_size};
use fairgate_config::{FileError, Spec, UnitError};
use fairgate_sim::tcp::{self, CongestionControl};
use fairgate_sim::{Flow, Link, Queue, Results, Scenario, Simulation, Tcp, Udp, derive_seed};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use htb::HtbClass;

/// What all cells share, as text.
const SCENARIO: &str = include_str!("scenario.toml");
/// The explained differences, as text.
const DIFFERENCES: &str = include_str!("differences.toml");
/// The handle by which packets name their class, in a leaf that has a class for each flow.
const HANDLE: u16 = 1;
/// The datagrams' number among the flows, and so their class.
const DATAGRAMS: u16 = 17;
/// Flows start later by chance, by less than this.
const JITTER_NANOS: u64 = 1_000_000;

/// A recording: of its fields those that are compared.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// What was recorded.
    pub cell: Cell,
    /// Payload of all flows, bit/s.
    pub total_goodput_bps: f64,
    /// Jain's index of the TCP flows' goodput.
    pub jain_tcp: f64,
    /// Times in the bottleneck's queue.
    pub sojourn: Sojourn,
}

/// Times that packets spent in the bottleneck's queue.
#[derive(Clone, Debug, Deserialize)]
pub struct Sojourn {
    /// Mean, ms.
    pub mean_ms: f64,
}

/// What was recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// The name of the cell.
    pub name: String,
    /// The name of the leaf.
    pub leaf: String,
    /// Congestion control of all flows.
    pub congestion_control: CongestionControl,
    /// RTT without queueing, ms.
    pub rtt_ms: u64,
    /// Number of TCP flows.
    pub tcp_flows: u32,
    /// Whether there is a datagram flow besides.
    pub udp_2mbit: bool,
}

/// The figures of a recording, a run, or a mean of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Payload of all flows, bit/s.
    pub goodput_bps: f64,
    /// Mean time in the bottleneck's queue, ms.
    pub sojourn_ms: f64,
    /// Jain's index of the TCP flows' goodput.
    pub jain: f64,
}

/// How far simulated figures are from recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Of the recorded goodput, per cent.
    pub goodput_percent: f64,
    /// Of the recorded sojourn time, per cent.
    pub sojourn_percent: f64,
    /// Absolute.
    pub jain: f64,
}

/// A cell compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the cell.
    pub cell: String,
    /// As recorded.
    pub recorded: Figures,
    /// Mean of the simulated runs.
    pub simulated: Figures,
    /// Least and largest goodput of the runs, bit/s.
    pub goodput_range_bps: [f64; 2],
    /// Of the means from what was recorded.
    pub difference: Difference,
    /// Whether that is within the tolerance.
    pub agrees: bool,
    /// Why it may differ all the same.
    pub explanation: Option<String>,
}

impl Comparison {
    /// Whether the cell agrees, or it is known why it doesn't.
    pub fn is_settled(&self) -> bool {
        self.agrees || self.explanation.is_some()
    }
}

/// What all cells share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    rate: String,
    burst: String,
    flow_distance: String,
    datagram: String,
    datagram_rate: String,
    datagram_start: String,
    hz: u32,
    write_size: String,
    measure_from: String,
    measure_to: String,
    tolerance: Tolerance,
    leaf: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tolerance {
    goodput_percent: f64,
    sojourn_percent: f64,
    jain: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Differences {
    #[serde(default)]
    difference: Vec<Explained>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Explained {
    cells: Vec<String>,
    explanation: String,
}

/// The experiment's data files make no sense.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file is no TOML, or not what is expected in it.
    #[error("kernel-tcp: {file}: {source}")]
    Toml {
        /// The file.
        file: &'static str,
        /// What is wrong.
        source: Box<toml::de::Error>,
    },
    /// A number with a unit can't be read.
    #[error("kernel-tcp: scenario.toml: {0}")]
    Unit(#[from] UnitError),
    /// A leaf can't be built.
    #[error("kernel-tcp: scenario.toml: leaf `{leaf}`: {source}")]
    Leaf {
        /// Its name.
        leaf: String,
        /// What is wrong.
        source: Box<FileError>,
    },
    /// The scenario can't be run.
    #[error(transparent)]
    Run(#[from] fairgate_sim::Error),
}

/// The experiment, ready to compare recordings.
#[derive(Clone, Debug)]
pub struct Validation {
    shared: Shared,
    explanations: BTreeMap<String, String>,
}

fn read<'a, T: Deserialize<'a>>(file: &'static str, text: &'a str) -> Result<T, DataError> {
    toml::from_str(text).map_err(|source| DataError::Toml {
        file,
        source: Box::new(source),
    })
}

impl Validation {
    /// Reads the experiment's data files.
    pub fn new() -> Result<Validation, DataError> {
        let differences: Differences = read("differences.toml", DIFFERENCES)?;
        let explanations = differences
            .difference
            .into_iter()
            .flat_map(|entry| {
                let explanation = entry.explanation;
                entry
                    .cells
                    .into_iter()
                    .map(move |cell| (cell, explanation.clone()))
            })
            .collect();
        Ok(Validation {
            shared: read("scenario.toml", SCENARIO)?,
            explanations,
        })
    }

    /// Whether there is a discipline for the cell's leaf.
    pub fn knows(&self, cell: &Cell) -> bool {
        self.shared.leaf.contains_key(&cell.leaf)
    }

    /// The cells whose difference is explained.
    pub fn explained(&self) -> impl Iterator<Item = &str> {
        self.explanations.keys().map(String::as_str)
    }

    /// The cell as a scenario; its leaf must be [known](Validation::knows).
    pub fn scenario(&self, cell: &Cell, seed: u64) -> Result<Scenario, DataError> {
        let shared = &self.shared;
        let end = parse_duration(&shared.measure_to)?;
        let mut scenario = Scenario::new(end);
        scenario.measure = parse_duration(&shared.measure_from)?..end;
        scenario.interval = Duration::from_secs(1);
        scenario.seed = seed;
        let (a, r, b) = (scenario.node("a"), scenario.node("r"), scenario.node("b"));
        let delay = Duration::from_micros(cell.rtt_ms * 500);
        scenario.links.push(Link::unlimited(a, r, delay));
        let bottleneck = Link::unlimited(r, b, Duration::ZERO).with_queue_a(self.bottleneck(cell)?);
        scenario.links.push(bottleneck);

        let later = |name: &str| Duration::from_nanos(derive_seed(seed, "start", name) % JITTER_NANOS);
        let config = tcp::Config {
            congestion_control: cell.congestion_control,
            ecn: cell.leaf.ends_with("_ecn"),
            hz: shared.hz,
            write_size: parse_size(&shared.write_size)? as u32,
            ..tcp::Config::default()
        };
        for number in 1..=cell.tcp_flows {
            let name = format!("tcp-{number}");
            let start = parse_duration(&shared.flow_distance)? * number + later(&name);
            scenario.flows.push(Flow {
                start,
                class: ClassId::new(HANDLE, number as u16),
                ..Flow::new(name, a, b, Tcp::bulk(config.clone()))
            });
        }
        if cell.udp_2mbit {
            let payload = parse_size(&shared.datagram)? as u32;
            let udp = Udp::constant(parse_rate(&shared.datagram_rate)?, payload);
            scenario.flows.push(Flow {
                start: parse_duration(&shared.datagram_start)? + later("udp"),
                class: ClassId::new(HANDLE, DATAGRAMS),
                ..Flow::new("udp", a, b, udp)
            });
        }
        Ok(scenario)
    }

    fn bottleneck(&self, cell: &Cell) -> Result<Queue, DataError> {
        let leaf = Spec::inline(&self.shared.leaf[&cell.leaf]).map_err(|source| DataError::Leaf {
            leaf: cell.leaf.clone(),
            source: Box::new(source),
        })?;
        let rate = parse_rate(&self.shared.rate)?;
        let burst = parse_size(&self.shared.burst)? as u32;
        Ok(Queue::new(move |seed| {
            Ok::<_, fairgate_config::BuildError>(HtbClass::node(rate, burst, leaf.build(seed)?))
        }))
    }

    /// Runs the recording's cell with `runs` seeds from `seed` on, and compares.
    pub fn compare(&self, recording: &Recording, seed: u64, runs: u64) -> Result<Comparison, DataError> {
        let mut all = Vec::new();
        for run in 0..runs.max(1) {
            let scenario = self.scenario(&recording.cell, seed + run)?;
            let simulation = Simulation::new(&scenario).map_err(fairgate_sim::Error::from)?;
            all.push(Figures::of(&simulation.run()?));
        }
        let recorded = Figures {
            goodput_bps: recording.total_goodput_bps,
            sojourn_ms: recording.sojourn.mean_ms,
            jain: recording.jain_tcp,
        };
        let simulated = Figures::mean(&all);
        let difference = simulated.minus(&recorded);
        let tolerance = &self.shared.tolerance;
        let goodputs = all.iter().map(|figures| figures.goodput_bps);
        Ok(Comparison {
            cell: recording.cell.name.clone(),
            recorded,
            simulated,
            goodput_range_bps: [
                goodputs.clone().fold(f64::INFINITY, f64::min),
                goodputs.fold(0.0, f64::max),
            ],
            difference,
            agrees: difference.goodput_percent.abs() <= tolerance.goodput_percent
                && difference.sojourn_percent.abs() <= tolerance.sojourn_percent
                && difference.jain.abs() <= tolerance.jain,
            explanation: self.explanations.get(&recording.cell.name).cloned(),
        })
    }
}

impl Figures {
    fn of(results: &Results) -> Figures {
        // The interface at the bottleneck's sending end: the second link's first.
        let bottleneck = &results.interfaces[2];
        let tcp = results.flows.iter().filter(|flow| flow.connection.is_some());
        Figures {
            goodput_bps: results.goodput_bps as f64,
            sojourn_ms: bottleneck.sojourn.mean_ns as f64 / 1e6,
            jain: jain_index(tcp.map(|flow| flow.goodput_bps as f64)),
        }
    }

    fn mean(all: &[Figures]) -> Figures {
        let mean = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Figures {
            goodput_bps: mean(|figures| figures.goodput_bps),
            sojourn_ms: mean(|figures| figures.sojourn_ms),
            jain: mean(|figures| figures.jain),
        }
    }

    fn minus(&self, recorded: &Figures) -> Difference {
        let percent = |simulated: f64, recorded: f64| 100.0 * (simulated / recorded - 1.0);
        Difference {
            goodput_percent: percent(self.goodput_bps, recorded.goodput_bps),
            sojourn_percent: percent(self.sojourn_ms, recorded.sojourn_ms),
            jain: self.jain - recorded.jain,
        }
    }
}
