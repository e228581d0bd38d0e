//! The guarantees of the QFQ paper's section VI, and those published of the other schedulers: what is measured of them under
//! traffic by chance and under traffic made to hurt.
//!
//! The measuring is [`Survey`]'s, once for each seed; what is told is the worst of all seeds.

use fairgate_report::chart::Scale;
use fairgate_report::dots::{Dots, Row};
use fairgate_report::scaling::{Scaling, Series};
use fairgate_theory::estimate::Estimate;
use fairgate_theory::guarantees::adversary::Effort;
use fairgate_theory::guarantees::candidates::CANDIDATES;
use fairgate_theory::guarantees::survey::Survey;
use fairgate_theory::guarantees::trial::Finding;
use serde::Deserialize;

use crate::{Figure, Findings, ReproduceError, Run};

/// What a short run tries: a traffic of every kind.
const SHORT: Effort = Effort {
    random: 3,
    climbs: 1,
    known: 1,
    coarse: 4,
    fine: 6,
};
/// A fair index that grows with the number of flows grows at least by this part of their number.
const GROWING: f64 = 0.5;
/// One that doesn't may still be so much worse, in packets: rounded time stamps fit some numbers of flows worse than others.
const STEADY: f64 = 1.0;

/// All packets of the traffic in which it grows, bytes.
const PACKET: f64 = 1000.0;

/// The file's parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Names of measures, for people.
    names: Vec<(String, String)>,
    steady: Vec<String>,
    growing: Vec<String>,
}

/// One measure of one scheduler over all seeds.
struct Held {
    scheduler: &'static str,
    measure: String,
    /// The worst under traffic by chance and under traffic made to hurt: of the bound, if there is one, else in packets.
    worst: [Option<f64>; 2],
    /// Formula and source.
    bound: Option<(&'static str, &'static str)>,
    /// Seeds whose traffic has something above the bound in it.
    broken_with: Vec<u64>,
}

/// Names of the two kinds of traffic.
const TRAFFICS: [&str; 2] = ["random", "adversarial"];

/// Runs the experiment.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let parameters: Parameters = run.parameters()?;
    let surveys = surveys(run)?;
    let Some(first) = surveys.first() else {
        return Err(ReproduceError::Fault {
            id: "qfq-bounds",
            what: "it got no seeds".into(),
        });
    };
    let mut held = Vec::new();
    for (place, surveyed) in first.schedulers.iter().enumerate() {
        for (number, row) in surveyed.measures.iter().enumerate() {
            let rows = || {
                surveys
                    .iter()
                    .map(|survey| &survey.schedulers[place].measures[number])
            };
            let worst = |of: fn(&fairgate_theory::guarantees::survey::Row) -> &Option<Finding>| {
                let severities = rows()
                    .filter_map(|row| of(row).as_ref())
                    .map(|finding| finding.severity);
                severities.reduce(f64::max)
            };
            let name = parameters.names.iter().find(|(name, _)| name == row.measure);
            held.push(Held {
                scheduler: surveyed.scheduler,
                measure: name.map_or(row.measure, |(_, name)| name).to_owned(),
                worst: [worst(|row| &row.random), worst(|row| &row.adversarial)],
                bound: row.formula.zip(row.source),
                broken_with: (surveys.iter().zip(rows()))
                    .filter(|(_, row)| row.within == Some(false))
                    .map(|(survey, _)| survey.seed)
                    .collect(),
            });
        }
    }

    let mut findings = Findings::default();
    for held in &held {
        held.tell(&mut findings);
    }
    judge_bounds(&mut findings, &held);
    judge_growth(&mut findings, first, &parameters);
    for surveyed in &first.schedulers {
        if !surveyed.remark.is_empty() && surveyed.measures.iter().all(|row| row.formula.is_none()) {
            findings.remark(format!(
                "No bound is published of {}: {}.",
                surveyed.scheduler, surveyed.remark
            ));
        }
    }
    findings.figures = vec![Figure::Dots(within(&held)), Figure::Scaling(growth(first))];
    Ok(findings)
}

/// A survey for each seed.
fn surveys(run: &Run<'_>) -> Result<Vec<Survey>, ReproduceError> {
    let conditions = run.conditions;
    let effort = if conditions.quick { SHORT } else { Effort::USUAL };
    let trials: u64 = CANDIDATES.iter().map(|candidate| effort.trials(candidate)).sum();
    let all = trials * conditions.seeds.len() as u64;
    let mut tried = 0u64;
    let mut survey = |&seed: &u64| {
        Survey::of_all(effort, seed, &mut |scheduler| {
            // The bar has a thousand steps.
            if tried.is_multiple_of(all.div_ceil(1000)) {
                (conditions.progress)(tried as f64 / all as f64, scheduler);
            }
            tried += 1;
        })
    };
    let surveys: Result<Vec<Survey>, _> = conditions.seeds.iter().map(&mut survey).collect();
    Ok(surveys?)
}

impl Held {
    fn tell(&self, findings: &mut Findings) {
        for (traffic, worst) in TRAFFICS.iter().zip(self.worst) {
            let Some(worst) = worst else { continue };
            let case = format!("{}, {traffic}", self.scheduler);
            match self.bound {
                Some((formula, source)) => findings.measure_beside(
                    &self.measure,
                    case,
                    "% of bound",
                    Estimate::exact(worst * 100.0),
                    "<100",
                    format!("{formula}: {source}"),
                ),
                None => findings.measure(&self.measure, case, "packets", Estimate::exact(worst)),
            }
        }
    }

    /// The worst of all traffic.
    fn severity(&self) -> f64 {
        self.worst.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max)
    }
}

fn judge_bounds(findings: &mut Findings, held: &[Held]) {
    let bounded: Vec<&Held> = held.iter().filter(|held| held.bound.is_some()).collect();
    let words = |held: &Held| {
        format!(
            "{}'s {}: {:.1} %",
            held.scheduler,
            held.measure,
            held.severity() * 100.0
        )
    };
    let seeds = |held: &Held| {
        let seeds: Vec<String> = held.broken_with.iter().map(u64::to_string).collect();
        format!("{} (seed {})", words(held), seeds.join(", "))
    };
    let broken: Vec<String> = bounded
        .iter()
        .filter(|held| !held.broken_with.is_empty())
        .map(|held| seeds(held))
        .collect();
    let nearest = bounded
        .iter()
        .max_by(|a, b| a.severity().total_cmp(&b.severity()));
    let found = match (broken.is_empty(), nearest) {
        (true, Some(nearest)) => format!(
            "all {} of {} schedulers; the nearest, {} of its bound",
            bounded.len(),
            count_schedulers(&bounded),
            words(nearest)
        ),
        _ => format!("above: {}", broken.join("; ")),
    };
    findings.judge("within", broken.is_empty() && !bounded.is_empty(), found);
}

fn count_schedulers(held: &[&Held]) -> usize {
    let mut names: Vec<&str> = held.iter().map(|held| held.scheduler).collect();
    names.dedup();
    names.len()
}

/// Of whom the fair index of a heavy flow grows with the number of light ones, and of whom it does not.
fn judge_growth(findings: &mut Findings, survey: &Survey, parameters: &Parameters) {
    let (least, most) = (1, survey.light_flows.len() - 1);
    let flows = |place: usize| f64::from(survey.light_flows[place]);
    for surveyed in &survey.schedulers {
        for (&light, packets) in survey.light_flows.iter().zip(&surveyed.heavy_b_wfi) {
            if let Some(packets) = packets {
                findings.measure(
                    "B-WFI of a flow with half of the link",
                    format!("{}, beside {light} light flows", surveyed.scheduler),
                    "packets",
                    Estimate::exact(*packets),
                );
            }
        }
    }
    let ends = |name: &str| {
        let surveyed = survey
            .schedulers
            .iter()
            .find(|surveyed| surveyed.scheduler == name)?;
        Some((surveyed.heavy_b_wfi[least]?, surveyed.heavy_b_wfi[most]?))
    };
    let mut judge = |claim: &str, names: &[String], is_so: &dyn Fn(f64, f64) -> bool| {
        let mut holds = true;
        let found: Vec<String> = names
            .iter()
            .map(|name| match ends(name) {
                Some((few, many)) => {
                    holds &= is_so(few, many);
                    format!("{name} {few:.1} to {many:.1}")
                }
                None => {
                    holds = false;
                    format!("{name} was not measured")
                }
            })
            .collect();
        let found = format!(
            "packets beside {} and {} light flows: {}",
            flows(least),
            flows(most),
            found.join(", ")
        );
        findings.judge(claim, holds, found);
    };
    let growth = GROWING * flows(most) / flows(least);
    judge("steady", &parameters.steady, &|few, many| many <= few + STEADY);
    judge("growing", &parameters.growing, &|few, many| many > growth * few);
}

/// How much of each bound was reached.
fn within(held: &[Held]) -> Dots {
    let rows = held.iter().filter(|held| held.bound.is_some()).map(|held| Row {
        name: format!("{}: {}", held.scheduler, held.measure),
        values: held
            .worst
            .iter()
            .map(|worst| worst.map(|worst| worst * 100.0))
            .collect(),
    });
    let rows: Vec<Row> = rows.collect();
    let most = rows
        .iter()
        .flat_map(|row| row.values.iter().flatten())
        .copied()
        .fold(100.0, f64::max);
    Dots {
        title: "The worst that was found, as a part of the published bound".into(),
        x: Scale::linear("% of the bound", 0.0, (most / 10.0).floor() * 10.0 + 10.0),
        series: TRAFFICS.map(|traffic| format!("{traffic} traffic")).to_vec(),
        rows,
        limit: Some(100.0),
    }
}

fn growth(survey: &Survey) -> Scaling {
    let curves = survey.schedulers.iter().map(|surveyed| Series {
        name: surveyed.scheduler.to_owned(),
        points: (survey.light_flows.iter().zip(&surveyed.heavy_b_wfi))
            .filter_map(|(&light, &packets)| Some((f64::from(light), packets? * PACKET)))
            .collect(),
    });
    Scaling {
        title: "B-WFI of a flow with half of the link, by the number of light flows beside it".into(),
        x: "light flows",
        y: "B-WFI, bytes",
        curves: curves.filter(|series| !series.points.is_empty()).collect(),
    }
}
