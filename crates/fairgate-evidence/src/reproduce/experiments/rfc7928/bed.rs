//! The test bed: it reads networks and traffic from the files, prepares the scenarios, and runs them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::units::{parse_duration, parse_rate};
use fairgate_config::{Document, Spec, UnitError, Value};
use fairgate_sim::{Batch, Flow, LineRate, Scenario, Schedule, Simulation};
use fairgate_theory::measured::Dice;
use serde::Deserialize;

use super::outcome::Outcome;
use crate::reproduce::{Conditions, ReproduceError, Run};

/// The length of a full packet on the link, bytes.
const PACKET: u64 = 1514;
/// The node at which the bottleneck link starts.
const BOTTLENECK: &str = "l";
/// The node at which the path with a varied delay starts.
const VARIED: &str = "a2";
/// The round-trip delay of the rest of that path.
const REST: Duration = Duration::from_millis(2);
/// The end of a short run, and of its warm-up.
const QUICK: Duration = Duration::from_secs(12);
const QUICK_FROM: Duration = Duration::from_secs(4);

/// The networks and their traffic, by name.
const FILES: [(&str, &str); 13] = [
    ("long", include_str!("../../../../experiments/rfc7928/long.toml")),
    (
        "windows",
        include_str!("../../../../experiments/rfc7928/windows.toml"),
    ),
    (
        "unresponsive",
        include_str!("../../../../experiments/rfc7928/unresponsive.toml"),
    ),
    (
        "background",
        include_str!("../../../../experiments/rfc7928/background.toml"),
    ),
    ("rtt", include_str!("../../../../experiments/rfc7928/rtt.toml")),
    (
        "bursts",
        include_str!("../../../../experiments/rfc7928/bursts.toml"),
    ),
    (
        "levels",
        include_str!("../../../../experiments/rfc7928/levels.toml"),
    ),
    (
        "capacity",
        include_str!("../../../../experiments/rfc7928/capacity.toml"),
    ),
    ("mix", include_str!("../../../../experiments/rfc7928/mix.toml")),
    (
        "attack",
        include_str!("../../../../experiments/rfc7928/attack.toml"),
    ),
    (
        "attack-today",
        include_str!("../../../../experiments/rfc7928/attack-today.toml"),
    ),
    (
        "coupling",
        include_str!("../../../../experiments/rfc7928/coupling.toml"),
    ),
    (
        "precedence",
        include_str!("../../../../experiments/rfc7928/precedence.toml"),
    ),
];

/// The parameters of the experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    start_within: String,
    together: Vec<String>,
    /// Names, and inline specifications with placeholders for properties of the bottleneck.
    disciplines: Vec<[String; 2]>,
    everywhere: Vec<String>,
    scenario: Vec<Variation>,
}

/// A scenario: a file, and the changes to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variation {
    pub(super) id: String,
    pub(super) title: String,
    file: String,
    #[serde(default)]
    leave_out: Vec<String>,
    #[serde(default)]
    counts: BTreeMap<String, u32>,
    #[serde(default)]
    ecn: bool,
    second_rtt: Option<String>,
    phases: Option<Vec<[String; 2]>>,
    /// The limit of all disciplines, packets; without it that of the file's fifo.
    limit: Option<u64>,
    disciplines: Option<Vec<String>>,
    /// Measures to show in addition to goodput, delay and loss.
    #[serde(default)]
    pub(super) show: Vec<String>,
}

/// All results: by scenario, by discipline, by seed.
pub(super) struct Runs<'a>(pub(super) Vec<(&'a Prepared, Vec<Vec<Outcome>>)>);

/// All prepared scenarios.
pub(super) struct Bed {
    pub(super) scenarios: Vec<Prepared>,
}

/// A scenario without its discipline and its seed.
pub(super) struct Prepared {
    pub(super) variation: Variation,
    scenario: Scenario,
    /// The index of the bottleneck link.
    bottleneck: usize,
    rate: LineRate,
    /// The name of each flow in the file.
    groups: Vec<String>,
    /// Names and trees of the disciplines, in their order.
    pub(super) disciplines: Vec<(String, Spec)>,
    start_within: Duration,
    together: Vec<String>,
}

fn bug(what: impl Into<String>) -> ReproduceError {
    ReproduceError::Bug {
        id: "rfc7928".into(),
        what: what.into(),
    }
}

/// Parses a quantity with a unit.
fn quantity<T>(read: fn(&str) -> Result<T, UnitError>, text: &str) -> Result<T, ReproduceError> {
    read(text).map_err(|error| bug(error.message))
}

impl Bed {
    pub(super) fn read(run: &Run<'_>) -> Result<Bed, ReproduceError> {
        let Parameters {
            start_within,
            together,
            disciplines,
            everywhere,
            scenario,
        } = run.parameters()?;
        let start_within = quantity(parse_duration, &start_within)?;
        let prepare = |variation: Variation| {
            let (_, text) = FILES
                .iter()
                .find(|(name, _)| *name == variation.file)
                .ok_or_else(|| bug(format!("there is no file `{}`", variation.file)))?;
            let document = Document::parse(&format!("{}.toml", variation.file), text)?;
            let mut scenario = Scenario::read(&document)?;
            let bottleneck = scenario
                .links
                .iter()
                .position(|link| scenario.node_name(link.a) == BOTTLENECK && link.rate_a.constant().is_some())
                .ok_or_else(|| bug(format!("`{}` has no bottleneck", variation.file)))?;
            let constant = scenario.links[bottleneck].rate_a.constant();
            let (rate, fastest) = rate(&variation, constant.expect("the search checked it"))?;
            let limit = match variation.limit {
                Some(limit) => limit,
                None => limit(&document, &variation)?,
            };
            let names = variation.disciplines.as_ref().unwrap_or(&everywhere);
            let discipline = |name: &String| {
                let (_, text) = disciplines
                    .iter()
                    .map(|[name, text]| (name, text))
                    .find(|(other, _)| *other == name)
                    .ok_or_else(|| bug(format!("there is no discipline `{name}`")))?;
                let text = text
                    .replace("{packets}", &limit.to_string())
                    .replace("{bytes}", &(limit * PACKET).to_string())
                    .replace("{rate}", &fastest.bits_per_second().to_string());
                Ok((name.clone(), Spec::inline(&text)?))
            };
            let disciplines = names
                .iter()
                .map(discipline)
                .collect::<Result<_, ReproduceError>>()?;
            let groups = vary(&mut scenario, &variation)?;
            if run.conditions.quick {
                scenario.duration = QUICK;
                scenario.measure = QUICK_FROM..QUICK;
            }
            Ok(Prepared {
                scenario,
                bottleneck,
                rate,
                groups,
                disciplines,
                start_within,
                together: together.clone(),
                variation,
            })
        };
        Ok(Bed {
            scenarios: scenario
                .into_iter()
                .map(prepare)
                .collect::<Result<_, ReproduceError>>()?,
        })
    }

    /// Runs every scenario with every discipline and seed. The number of parallel runs is the number of
    /// processors.
    pub(super) fn run(&self, run: &Run<'_>) -> Result<Runs<'_>, ReproduceError> {
        let Conditions { seeds, progress, .. } = run.conditions;
        let mut jobs = Vec::new();
        for prepared in &self.scenarios {
            for (_, spec) in &prepared.disciplines {
                jobs.extend(seeds.iter().map(|&seed| (prepared, spec, seed)));
            }
        }
        let done = AtomicUsize::new(0);
        let outcomes = Batch::default().map(&jobs, |&(prepared, spec, seed)| {
            let outcome = prepared.run(spec, seed);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(done as f64 / jobs.len() as f64, &prepared.variation.id);
            outcome
        });
        let outcomes = outcomes
            .into_iter()
            .collect::<Result<Vec<Outcome>, ReproduceError>>()?;
        let mut outcomes = outcomes.into_iter();
        let mut under = |prepared: &Prepared| {
            let of_one = |_| outcomes.by_ref().take(seeds.len()).collect();
            prepared.disciplines.iter().map(of_one).collect()
        };
        Ok(Runs(
            self.scenarios
                .iter()
                .map(|prepared| (prepared, under(prepared)))
                .collect(),
        ))
    }
}

impl Prepared {
    /// Runs the scenario once.
    fn run(&self, spec: &Spec, seed: u64) -> Result<Outcome, ReproduceError> {
        let mut scenario = self.scenario.clone();
        scenario.seed = seed;
        for (flow, group) in scenario.flows.iter_mut().zip(&self.groups) {
            if !self.together.contains(group) {
                flow.start += self.start_within.mul_f64(Dice::new(seed, &flow.name).unit());
            }
        }
        let link = &mut scenario.links[self.bottleneck];
        (link.rate_a, link.rate_b) = (self.rate.clone(), self.rate.clone());
        (link.queue_a, link.queue_b) = (spec.clone().into(), spec.clone().into());
        let simulation = Simulation::new(&scenario).map_err(fairgate_sim::Error::from)?;
        Ok(Outcome::of(
            &simulation.run()?,
            &scenario,
            self.bottleneck,
            &self.groups,
        ))
    }
}

/// Applies the changes to the scenario of the file. Returns the group of each flow.
fn vary(scenario: &mut Scenario, variation: &Variation) -> Result<Vec<String>, ReproduceError> {
    let named = variation.leave_out.iter().chain(variation.counts.keys());
    for name in named {
        if !scenario.flows.iter().any(|flow| flow.name == *name) {
            return Err(bug(format!("`{}` has no flow `{name}`", variation.file)));
        }
    }
    if let Some(rtt) = &variation.second_rtt {
        let path = scenario.find_node(VARIED);
        let rest = quantity(parse_duration, rtt)?.checked_sub(REST);
        let link = scenario.links.iter_mut().find(|link| Some(link.a) == path);
        match (link, rest) {
            (Some(link), Some(rest)) => (link.delay_a, link.delay_b) = (rest / 2, rest / 2),
            _ => {
                return Err(bug(format!(
                    "no path of `{}` has a round-trip time of {rtt}",
                    variation.file
                )));
            }
        }
    }
    // Separate all flows, so that each has its own start.
    let mut groups = Vec::new();
    let mut flows = Vec::new();
    for flow in &scenario.flows {
        if variation.leave_out.contains(&flow.name) {
            continue;
        }
        let count = variation.counts.get(&flow.name).copied().unwrap_or(flow.count);
        for number in 1..=count {
            groups.push(flow.name.clone());
            flows.push(Flow {
                name: format!("{}-{number}", flow.name),
                count: 1,
                ecn: flow.ecn || variation.ecn,
                ..flow.clone()
            });
        }
    }
    scenario.flows = flows;
    scenario.interval = Duration::from_secs(1);
    Ok(groups)
}

/// Returns the rate of the link and its greatest value: the phases of the variation, which repeat, or the
/// rate of the file.
fn rate(variation: &Variation, constant: Rate) -> Result<(LineRate, Rate), ReproduceError> {
    let Some(phases) = &variation.phases else {
        return Ok((constant.into(), constant));
    };
    let mut round = Duration::ZERO;
    let mut schedule = Vec::new();
    for [rate, duration] in phases {
        schedule.push((round, quantity(parse_rate, rate)?));
        round += quantity(parse_duration, duration)?;
    }
    let schedule = Schedule::new(&schedule, Some(round))
        .map_err(|error| bug(format!("the phases of `{}`: {error}", variation.id)))?;
    let fastest = schedule.fastest();
    Ok((LineRate::Schedule(schedule), fastest))
}

/// Returns the limit of the file's fifo, packets. All disciplines get the same limit.
fn limit(document: &Document, variation: &Variation) -> Result<u64, ReproduceError> {
    let spec = document.queue("bottleneck");
    let parameters = spec.map(Spec::parameters).unwrap_or_default();
    let limit = parameters.into_iter().find(|(info, _)| info.name == "limit");
    match limit {
        Some((_, Value::Number(packets))) => Ok(packets),
        _ => Err(bug(format!("`{}` has no limit of packets", variation.file))),
    }
}
