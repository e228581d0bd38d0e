//! A scenario of the user, simulated once with each discipline. The discipline replaces every queue that the
//! file names, or the queues that the user chose.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use fairgate::Time;
use fairgate_config::Registry;
use fairgate_report::{Comparison, Discipline, Fact, Group, Input, bin_width, jain};
use fairgate_sim::{Application, Batch, Results, Scenario, Traffic};
use miette::Diagnostic;
use thiserror::Error;

use super::Contestant;
use super::simulated::{Packets, SAMPLES, interval, queue, together};
use crate::document;
use crate::failure::Failure;
use crate::input;
use crate::output::Format;
use crate::progress;

#[derive(Debug, Error, Diagnostic)]
enum OwnError {
    #[error("no link of {file} names a queue")]
    #[diagnostic(help(
        "give the links whose queues shall be compared a `queue`, `queue_a` or `queue_b`, or give \
         [simulate] a `queue`"
    ))]
    NoQueue { file: String },
    #[error("no link of {file} has the queue `{name}`")]
    #[diagnostic(help("the queues of the links are {known}"))]
    NoSuchQueue {
        file: String,
        name: String,
        known: String,
    },
    #[error("there is no interface `{name}`")]
    #[diagnostic(help("the interfaces with replaced queues are {known}"))]
    NoInterface { name: String, known: String },
    #[error("can't simulate {file} with `{discipline}`")]
    Simulation {
        file: String,
        discipline: String,
        source: fairgate_sim::Error,
    },
}

/// The options of the user.
pub(super) struct Options<'a> {
    pub(super) file: PathBuf,
    /// The queues to replace. Empty: all.
    pub(super) replace: Vec<String>,
    /// The interface whose queue is shown.
    pub(super) interface: Option<String>,
    pub(super) duration: Option<Duration>,
    /// `None`: the file's.
    pub(super) seed: Option<u64>,
    pub(super) registry: &'a Registry,
    pub(super) format: Format,
}

/// Simulates the scenario with each discipline.
pub(super) fn run(
    options: &Options<'_>,
    contestants: Vec<Contestant>,
    command: String,
) -> Result<Comparison, Failure> {
    let file = options.file.display().to_string();
    let scenarios = contestants
        .iter()
        .map(|contestant| scenario(options, contestant))
        .collect::<Result<Vec<_>, Failure>>()?;
    let duration = scenarios[0].duration;
    let all = duration.as_millis() as u64 * contestants.len() as u64;
    let bar = progress::simulated(all, options.format);
    let results = Batch::default().run(&scenarios, |simulated| bar.inc(simulated.as_millis() as u64));
    bar.finish_and_clear();
    let mut runs = Vec::new();
    for (contestant, results) in contestants.into_iter().zip(results) {
        let discipline = contestant.name;
        match results {
            Ok(results) => runs.push((discipline, results)),
            Err(source) => {
                let file = file.clone();
                return Err(OwnError::Simulation {
                    file,
                    discipline,
                    source,
                }
                .into());
            }
        }
    }
    let measured = measured_interface(options, &runs)?;
    let scenario = &scenarios[0];
    let shown = &runs[0].1.interfaces[measured];
    let duration_ns = duration.as_nanos() as u64;
    let (greedy, fairness_over) = compared_flows(scenario);
    Ok(Comparison {
        version: env!("CARGO_PKG_VERSION"),
        command,
        seed: scenario.seed,
        input: Input::Scenario { name: file },
        rate_bps: shown.rate_bps,
        duration_ns,
        bin_ns: bin_width(Time::from_nanos(duration_ns)),
        facts: facts(scenario, &shown.name),
        remarks: Vec::new(),
        groups: scenario
            .flows
            .iter()
            .map(|flow| Group {
                name: flow.name.clone(),
                detail: format!(
                    "{} to {}, {}",
                    scenario.node_name(flow.source),
                    scenario.node_name(flow.destination),
                    flow.traffic.transport().to_uppercase()
                ),
                in_total: true,
            })
            .collect(),
        fairness_over,
        disciplines: runs
            .into_iter()
            .map(|(name, results)| discipline(name, &results, measured, &greedy))
            .collect(),
    })
}

/// Reads the scenario with the contestant's tree in place of the queues. The whole run is measured, so that
/// packets add up.
fn scenario(options: &Options<'_>, contestant: &Contestant) -> Result<Scenario, Failure> {
    let document = document::read(&options.file, options.registry)?;
    let named = std::cell::RefCell::new(Vec::new());
    let replace = |name: &str| {
        let mut named = named.borrow_mut();
        if !named.iter().any(|known| known == name) {
            named.push(name.to_owned());
        }
        let is_chosen = options.replace.is_empty() || options.replace.iter().any(|chosen| chosen == name);
        is_chosen.then(|| contestant.spec.clone())
    };
    let mut scenario = Scenario::read_replacing(&document, input::available_memory(), &replace)?;
    let named = named.into_inner();
    let file = || options.file.display().to_string();
    if named.is_empty() {
        return Err(OwnError::NoQueue { file: file() }.into());
    }
    if let Some(name) = options.replace.iter().find(|name| !named.contains(name)) {
        return Err(OwnError::NoSuchQueue {
            file: file(),
            name: name.clone(),
            known: named.join(", "),
        }
        .into());
    }
    scenario.duration = options.duration.unwrap_or(scenario.duration);
    scenario.measure = Duration::ZERO..scenario.duration;
    scenario.interval = interval(scenario.duration);
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    Ok(scenario)
}

/// Returns the index of the interface whose queue is shown: the one that the user named, otherwise the one
/// with the longest queue, over all disciplines together.
fn measured_interface(options: &Options<'_>, runs: &[(String, Results)]) -> Result<usize, Failure> {
    let interfaces = &runs[0].1.interfaces;
    if let Some(name) = &options.interface {
        let found = interfaces.iter().position(|interface| interface.name == *name);
        return Ok(found.ok_or_else(|| OwnError::NoInterface {
            name: name.clone(),
            known: interfaces
                .iter()
                .filter(|interface| interface.enqueued > 0)
                .map(|interface| interface.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })?);
    }
    let backlog = |index: &usize| -> u64 {
        let of = |results: &Results| {
            results.interfaces[*index]
                .backlog_series_bytes
                .iter()
                .sum::<u64>()
        };
        runs.iter().map(|(_, results)| of(results)).sum()
    };
    // Of equal ones the first, so that the choice does not depend on the order of the disciplines.
    let longest = (0..interfaces.len()).rev().max_by_key(backlog);
    Ok(longest.expect("a scenario has links"))
}

/// Returns the groups over which Jain's index is computed, and their description: TCP flows that send as much
/// as they can, otherwise all flows.
fn compared_flows(scenario: &Scenario) -> (Vec<String>, String) {
    let names = |is_compared: &dyn Fn(&Traffic) -> bool| -> Vec<String> {
        let flows = scenario.flows.iter().filter(|flow| is_compared(&flow.traffic));
        flows.map(|flow| flow.name.clone()).collect()
    };
    let bulk = names(&|traffic| match traffic {
        Traffic::Tcp(tcp) => tcp.application == Application::Bulk,
        _ => false,
    });
    match bulk.is_empty() {
        true => (names(&|_| true), "the goodput of all flows".to_owned()),
        false => {
            let text = format!("the goodput of the flows without end: {}", bulk.join(", "));
            (bulk, text)
        }
    }
}

fn discipline(name: String, results: &Results, measured: usize, compared: &[String]) -> Discipline {
    let shown = &results.interfaces[measured];
    let goodputs: Vec<f64> = results
        .flows
        .iter()
        .filter(|flow| compared.contains(&flow.group))
        .map(|flow| flow.goodput_bps as f64)
        .collect();
    let mut drops = BTreeMap::new();
    for (reason, packets) in results.groups.iter().flat_map(|group| &group.lost_by_reason) {
        *drops.entry(reason.clone()).or_default() += packets;
    }
    Discipline {
        name,
        total: together(results, results.groups.iter().map(Packets::Group)),
        groups: results
            .groups
            .iter()
            .map(|group| together(results, std::iter::once(Packets::Group(group))))
            .collect(),
        utilisation: shown.utilisation.unwrap_or(0.0),
        fairness: jain(&goodputs),
        drops,
        queue: queue(shown),
    }
}

fn facts(scenario: &Scenario, interface: &str) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact {
        label: label.into(),
        value,
    };
    let flows: u32 = scenario.flows.iter().map(|flow| flow.count).sum();
    vec![
        fact(
            "Network",
            format!(
                "{} nodes, {} links, {flows} flows",
                scenario.nodes.len(),
                scenario.links.len()
            ),
        ),
        fact("Measured", "the whole run, from the first packet on".into()),
        fact("Dropped", "packets of data, in the whole network".into()),
        fact(
            "Delay of a packet",
            "from its first sending to its arrival, propagation included".into(),
        ),
        fact(
            "Queue",
            format!("of the interface {interface}, sampled {SAMPLES} times in each bin of the plots"),
        ),
    ]
}
