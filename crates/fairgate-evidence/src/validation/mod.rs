//! Compares simulated TCP with TCP recorded from Linux 6.1, cell by cell.
//!
//! A recording names its cell: leaf, congestion control, RTT, number of flows. `scenario.toml` beside this
//! file describes the common part of all cells. Together they make a [`Scenario`]. Its goodput, sojourn time
//! and fairness are compared with the recorded values.
//!
//! Several flows at one bottleneck are chaotic: a start that is a microsecond later gives another sample of
//! the same process. A single flow is not, but its timers and CUBIC's clock advance in ticks of 10 ms, and so
//! it depends on the phase of its start within a tick, which the recordings don't tell. So each cell is
//! simulated several times, and the means are compared. In each run every flow starts by a random time of up
//! to one tick later. The spread of the runs shows how far a single recording can differ.

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

/// The text of the common part of all cells.
const SCENARIO: &str = include_str!("scenario.toml");
/// The text of the explained differences.
const DIFFERENCES: &str = include_str!("differences.toml");
/// The handle of the class that a packet names, if the leaf has a class for each flow.
const HANDLE: u16 = 1;
/// The flow number of the datagrams, and their class.
const DATAGRAMS: u16 = 17;

/// The fields of a recording that are compared.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// The recorded cell.
    pub cell: Cell,
    /// The goodput of all flows together, in bit/s.
    pub total_goodput_bps: f64,
    /// Jain's index of the TCP flows' goodput.
    pub jain_tcp: f64,
    /// Sojourn times in the bottleneck's queue.
    pub sojourn: Sojourn,
}

/// Sojourn times in the bottleneck's queue.
#[derive(Clone, Debug, Deserialize)]
pub struct Sojourn {
    /// The mean, in ms.
    pub mean_ms: f64,
}

/// A cell: the varying part of a recorded scenario.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// The name of the cell.
    pub name: String,
    /// The name of the leaf.
    pub leaf: String,
    /// The congestion control of all flows.
    pub congestion_control: CongestionControl,
    /// The round-trip time without queueing, in ms.
    pub rtt_ms: u64,
    /// The number of TCP flows.
    pub tcp_flows: u32,
    /// Whether there is also a flow of datagrams.
    pub udp_2mbit: bool,
}

/// The values of a recording, a run, or the mean of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The goodput of all flows together, in bit/s.
    pub goodput_bps: f64,
    /// The mean sojourn time in the bottleneck's queue, in ms.
    pub sojourn_ms: f64,
    /// Jain's index of the TCP flows' goodput.
    pub jain: f64,
}

/// The differences between simulated and recorded values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The difference of goodput, in percent of the recorded one.
    pub goodput_percent: f64,
    /// The difference of the sojourn time, in percent of the recorded one.
    pub sojourn_percent: f64,
    /// The difference of Jain's index.
    pub jain: f64,
}

/// The comparison of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the cell.
    pub cell: String,
    /// The recorded values.
    pub recorded: Figures,
    /// The means of the simulated runs.
    pub simulated: Figures,
    /// The smallest and the largest goodput of the runs, in bit/s.
    pub goodput_range_bps: [f64; 2],
    /// The differences of the means from the recorded values.
    pub difference: Difference,
    /// Whether the differences are within the tolerance.
    pub agrees: bool,
    /// The explanation of a known difference.
    pub explanation: Option<String>,
}

impl Comparison {
    /// Returns whether the cell agrees or its difference is explained.
    pub fn is_settled(&self) -> bool {
        self.agrees || self.explanation.is_some()
    }
}

/// The common part of all cells.
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

/// An error in the experiment's data files, or in a run.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file is not valid TOML, or has the wrong keys.
    #[error("kernel-tcp: {file}: {source}")]
    Toml {
        /// The file.
        file: &'static str,
        /// The error.
        source: Box<toml::de::Error>,
    },
    /// A number with a unit can't be parsed.
    #[error("kernel-tcp: scenario.toml: {0}")]
    Unit(#[from] UnitError),
    /// A leaf can't be built.
    #[error("kernel-tcp: scenario.toml: leaf `{leaf}`: {source}")]
    Leaf {
        /// The name of the leaf.
        leaf: String,
        /// The error.
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

    /// Returns whether there is a discipline for the cell's leaf.
    pub fn knows(&self, cell: &Cell) -> bool {
        self.shared.leaf.contains_key(&cell.leaf)
    }

    /// Returns the cells with an explained difference.
    pub fn explained(&self) -> impl Iterator<Item = &str> {
        self.explanations.keys().map(String::as_str)
    }

    /// Returns the cell as a scenario. Its leaf must be [known](Validation::knows).
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

        // Each flow starts later by a random time below one tick.
        let tick = 1_000_000_000 / u64::from(shared.hz);
        let later = |name: &str| Duration::from_nanos(derive_seed(seed, "start", name) % tick);
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

    /// Simulates the cell of a recording with `runs` seeds, starting with `seed`, and compares the results.
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
        // The sending end of the bottleneck: the first interface of the second link.
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
