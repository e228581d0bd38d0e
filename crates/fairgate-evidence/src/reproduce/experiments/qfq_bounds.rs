//! The guarantees of the QFQ paper's section VI, and the published guarantees of the other schedulers. They
//! are compared with measurements under random and under adversarial traffic.
//!
//! [`Survey`] measures once for each seed. The worst value of all seeds is reported. There are two surveys:
//! one against the bounds as publications print them, by which the claim is judged, and one against the
//! bounds that our implementations keep, which stands beside it. The adversary of each climbs towards its own
//! bounds.

use fairgate_report::chart::Scale;
use fairgate_report::dots::{Dots, Row};
use fairgate_report::scaling::{Scaling, Series};
use fairgate_theory::estimate::Estimate;
use fairgate_theory::guarantees::adversary::Effort;
use fairgate_theory::guarantees::candidates::CANDIDATES;
use fairgate_theory::guarantees::survey::Survey;
use fairgate_theory::guarantees::trial::Finding;
use serde::Deserialize;

use crate::reproduce::{Figure, Findings, ReproduceError, Run};

/// The effort of a short run: one traffic of each kind.
const SHORT: Effort = Effort {
    random: 3,
    climbs: 1,
    known: 1,
    coarse: 4,
    fine: 6,
};
/// A fair index that grows with the number of flows grows by at least this part of their number.
const GROWING: f64 = 0.5;
/// A fair index that does not grow may still be worse by this many packets. Rounded time stamps fit some
/// numbers of flows worse than others.
const STEADY: f64 = 1.0;

/// The length of all packets in the growth measurement, bytes.
const PACKET: f64 = 1000.0;

/// The parameters in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The measures, each with the name that is shown.
    names: Vec<(String, String)>,
    steady: Vec<String>,
    growing: Vec<String>,
}

/// Which bounds a survey compares with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// As publications print them.
    Printed,
    /// Those that our implementations keep: published, corollaries, or derived by us.
    Kept,
}

/// The results of one measure of one scheduler over all seeds.
struct Comparison {
    scheduler: &'static str,
    bounds: Bounds,
    measure: String,
    /// The worst under random and under adversarial traffic: as a part of the bound, or in packets if there
    /// is no bound.
    worst: [Option<f64>; 2],
    /// The formula and the source of the bound.
    bound: Option<(&'static str, &'static str)>,
    /// The seeds of traffic with a value above the bound.
    exceeded_with: Vec<u64>,
}

/// The names of the two kinds of traffic.
const TRAFFICS: [&str; 2] = ["random", "adversarial"];

/// Runs the experiment.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let parameters: Parameters = run.parameters()?;
    let (printed, kept) = surveys(run)?;
    let Some(first) = kept.first() else {
        return Err(ReproduceError::Bug {
            id: "qfq-bounds".into(),
            what: "it has no seeds".into(),
        });
    };
    let mut comparisons = compare(&printed, Bounds::Printed, &parameters);
    comparisons.retain(|one| one.bound.is_some());
    comparisons.extend(compare(&kept, Bounds::Kept, &parameters));

    let mut findings = Findings::default();
    for comparison in &comparisons {
        comparison.tell(&mut findings);
    }
    judge_bounds(&mut findings, "within", &comparisons, Bounds::Printed);
    judge_bounds(&mut findings, "within-kept", &comparisons, Bounds::Kept);
    judge_growth(&mut findings, first, &parameters);
    for comparison in comparisons.iter().filter(|one| one.bounds == Bounds::Kept) {
        if let Some((formula, source)) = comparison.bound {
            findings.remark(format!(
                "Our bound on {}'s {}: {formula} ({source}).",
                comparison.scheduler, comparison.measure
            ));
        }
    }
    for surveyed in &first.schedulers {
        if !surveyed.remark.is_empty() && surveyed.measures.iter().all(|row| row.formula.is_none()) {
            findings.remark(format!(
                "There is no bound for {}: {}.",
                surveyed.scheduler, surveyed.remark
            ));
        }
    }
    findings.figures = vec![Figure::Dots(within(&comparisons)), Figure::Scaling(growth(first))];
    Ok(findings)
}

/// Makes both surveys for each seed: of the printed bounds, and of the bounds that our implementations keep.
fn surveys(run: &Run<'_>) -> Result<(Vec<Survey>, Vec<Survey>), ReproduceError> {
    let conditions = run.conditions;
    let effort = if conditions.quick { SHORT } else { Effort::USUAL };
    let printed = Survey::printed_candidates();
    let trials: u64 = CANDIDATES
        .iter()
        .chain(&printed)
        .map(|candidate| effort.trials(candidate))
        .sum();
    let all = trials * conditions.seeds.len() as u64;
    let mut tried = 0u64;
    let mut report = |scheduler: &'static str| {
        // The progress bar has a thousand steps.
        if tried.is_multiple_of(all.div_ceil(1000)) {
            (conditions.progress)(tried as f64 / all as f64, scheduler);
        }
        tried += 1;
    };
    let mut surveys = (Vec::new(), Vec::new());
    for &seed in conditions.seeds {
        surveys.0.push(Survey::of_printed(effort, seed, &mut report)?);
        surveys.1.push(Survey::of_all(effort, seed, &mut report)?);
    }
    Ok(surveys)
}

/// Returns the worst values of all seeds.
fn compare(surveys: &[Survey], bounds: Bounds, parameters: &Parameters) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let Some(first) = surveys.first() else {
        return comparisons;
    };
    for (index, surveyed) in first.schedulers.iter().enumerate() {
        for (number, row) in surveyed.measures.iter().enumerate() {
            let rows = || {
                surveys
                    .iter()
                    .map(|survey| &survey.schedulers[index].measures[number])
            };
            let worst = |of: fn(&fairgate_theory::guarantees::survey::Row) -> &Option<Finding>| {
                let severities = rows()
                    .filter_map(|row| of(row).as_ref())
                    .map(|finding| finding.severity);
                severities.reduce(f64::max)
            };
            let name = parameters.names.iter().find(|(name, _)| name == row.measure);
            comparisons.push(Comparison {
                scheduler: surveyed.scheduler,
                bounds,
                measure: name.map_or(row.measure, |(_, name)| name).to_owned(),
                worst: [worst(|row| &row.random), worst(|row| &row.adversarial)],
                bound: row.formula.zip(row.source),
                exceeded_with: (surveys.iter().zip(rows()))
                    .filter(|(_, row)| row.within == Some(false))
                    .map(|(survey, _)| survey.seed)
                    .collect(),
            });
        }
    }
    comparisons
}

impl Comparison {
    fn tell(&self, findings: &mut Findings) {
        for (traffic, worst) in TRAFFICS.iter().zip(self.worst) {
            let Some(worst) = worst else { continue };
            let case = format!("{}, {traffic}", self.scheduler);
            match self.bound {
                Some(_) if self.bounds == Bounds::Kept => findings.measure(
                    format!("{}, by our bound", self.measure),
                    case,
                    "% of bound",
                    Estimate::exact(worst * 100.0),
                ),
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

    /// Returns the worst value of all traffic.
    fn severity(&self) -> f64 {
        self.worst.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Judges whether no value is above its bound.
fn judge_bounds(findings: &mut Findings, claim: &str, comparisons: &[Comparison], bounds: Bounds) {
    let bounded: Vec<&Comparison> = (comparisons.iter())
        .filter(|one| one.bounds == bounds && one.bound.is_some())
        .collect();
    let words = |one: &Comparison| {
        format!(
            "{}'s {}: {:.1} %",
            one.scheduler,
            one.measure,
            one.severity() * 100.0
        )
    };
    let seeds = |one: &Comparison| {
        let seeds: Vec<String> = one.exceeded_with.iter().map(u64::to_string).collect();
        format!("{} (seed {})", words(one), seeds.join(", "))
    };
    let exceeded: Vec<String> = bounded
        .iter()
        .filter(|one| !one.exceeded_with.is_empty())
        .map(|one| seeds(one))
        .collect();
    let nearest = bounded
        .iter()
        .max_by(|a, b| a.severity().total_cmp(&b.severity()));
    let found = match (exceeded.is_empty(), nearest) {
        (true, Some(nearest)) => format!(
            "no value is above one of {} bounds of {} schedulers; the value nearest to its bound is {}",
            bounded.len(),
            count_schedulers(&bounded),
            words(nearest)
        ),
        _ => format!("above the bound: {}", exceeded.join("; ")),
    };
    findings.judge(claim, exceeded.is_empty() && !bounded.is_empty(), found);
}

fn count_schedulers(comparisons: &[&Comparison]) -> usize {
    let mut names: Vec<&str> = comparisons.iter().map(|one| one.scheduler).collect();
    names.dedup();
    names.len()
}

/// Judges for which schedulers the fair index of a heavy flow grows with the number of light flows.
fn judge_growth(findings: &mut Findings, survey: &Survey, parameters: &Parameters) {
    let (least, most) = (1, survey.light_flows.len() - 1);
    let flows = |index: usize| f64::from(survey.light_flows[index]);
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

/// Draws the measured part of each bound.
fn within(comparisons: &[Comparison]) -> Dots {
    let rows = comparisons
        .iter()
        .filter(|one| one.bound.is_some())
        .map(|one| Row {
            name: match one.bounds {
                Bounds::Printed => format!("{}: {}, as printed", one.scheduler, one.measure),
                Bounds::Kept => format!("{}: {}", one.scheduler, one.measure),
            },
            values: one
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
        title: "The worst measured value, as a part of the bound: printed, and ours".into(),
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
