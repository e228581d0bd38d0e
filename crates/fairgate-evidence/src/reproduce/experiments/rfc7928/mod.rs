//! RFC 7928: every discipline with active queue management, in the RFC's scenarios.
//!
//! ```text
//!   files --> bed.rs: networks, variations, runs --> outcome.rs: results of a run --> judge.rs: claims
//!                                                                                \-> figures here, tables
//! ```
//!
//! A scenario is a file with the changes that the experiment's file makes to it. The discipline under test
//! replaces the fifo at the bottleneck, with the same amount of memory.

mod bed;
mod judge;
mod outcome;

use fairgate_report::chart::{Chart, Curve, Drawn, Point, Scale};
use fairgate_report::dots::{Dots, Row};
use fairgate_theory::estimate::Estimate;

use crate::reproduce::findings::Grid;
use crate::reproduce::{Figure, Findings, ReproduceError, Run};
use bed::{Bed, Prepared, Runs};
use outcome::{ALWAYS, DELAY, GOODPUT, JAIN, Measure};

/// Tail drop. The other disciplines are compared with it.
const BASE: &str = "fifo";
/// Scenarios with long transfers of responsive senders only, from one to many.
const RESPONSIVE: [&str; 5] = ["friendly", "aggressive", "mild", "medium", "heavy"];
/// The levels of congestion, rising.
const LEVELS: [&str; 3] = ["mild", "medium", "heavy"];
/// Scenarios with different round-trip times, and one with equal ones.
const TIMES: [&str; 5] = ["rtt-5", "rtt-20", "rtt-100", "rtt-200", "rtt-560"];

impl Runs<'_> {
    /// Returns the disciplines of a scenario in their order.
    fn disciplines(&self, scenario: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(prepared, _)| prepared.variation.id == scenario)
            .flat_map(|(prepared, _)| prepared.disciplines.iter().map(|(name, _)| name.as_str()))
            .collect()
    }

    fn estimate(&self, scenario: &str, discipline: &str, figure: &str) -> Option<Estimate> {
        let (prepared, outcomes) = self
            .0
            .iter()
            .find(|(prepared, _)| prepared.variation.id == scenario)?;
        let index = prepared
            .disciplines
            .iter()
            .position(|(name, _)| name == discipline)?;
        let runs: Vec<f64> = outcomes[index]
            .iter()
            .map(|outcome| outcome.figure(figure))
            .filter(|value| value.is_finite())
            .collect();
        Estimate::of(&runs)
    }

    /// Returns the mean, or NaN if nothing was measured.
    fn mean(&self, scenario: &str, discipline: &str, figure: &str) -> f64 {
        self.estimate(scenario, discipline, figure)
            .map_or(f64::NAN, |estimate| estimate.mean)
    }
}

/// Runs the experiment.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let bed = Bed::read(run)?;
    let runs = bed.run(run)?;
    let mut findings = Findings::default();
    for (prepared, _) in &runs.0 {
        tell(&mut findings, &runs, prepared)?;
    }
    judge::all(&mut findings, &runs);
    remarks(&mut findings, &runs);
    findings.figures = vec![
        Figure::Dots(dots(
            &runs,
            "Mean queueing delay of long transfers, by congestion",
            Scale::logarithmic("ms", 1.0, 100.0),
            &RESPONSIVE,
            DELAY,
        )),
        Figure::Chart(trade_off(&runs)),
        Figure::Dots(dots(
            &runs,
            "Fairness of two flows: 100 ms, and 5 to 560 ms of round-trip time",
            Scale::linear("Jain's index of goodput", 0.5, 1.0),
            &TIMES,
            JAIN,
        )),
        Figure::Dots(dots(
            &runs,
            "Web pages of 100 kB: mean time to completion",
            Scale::logarithmic("ms", 200.0, 2000.0),
            &["bursts-1", "bursts-2", "bursts-3", "bursts-4", "mix"],
            "web: completion",
        )),
    ];
    Ok(findings)
}

/// Reports the measurements of a scenario.
fn tell(findings: &mut Findings, runs: &Runs<'_>, prepared: &Prepared) -> Result<(), ReproduceError> {
    let variation = &prepared.variation;
    let shown = variation.show.iter().map(String::as_str);
    let measures = ALWAYS
        .into_iter()
        .chain(shown)
        .map(|name| {
            Measure::new(name).ok_or_else(|| ReproduceError::Bug {
                id: "rfc7928".into(),
                what: format!("`{}` shows `{name}`, which is not measured", variation.id),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut grid = Grid {
        title: variation.title.clone(),
        head: measures.iter().map(Measure::head).collect(),
        rows: Vec::new(),
    };
    for (discipline, _) in &prepared.disciplines {
        let estimates = measures
            .iter()
            .map(|measure| runs.estimate(&variation.id, discipline, &measure.name));
        let mut row = Vec::new();
        for (measure, estimate) in measures.iter().zip(estimates) {
            row.push(estimate.map(|estimate| estimate.mean));
            if let Some(estimate) = estimate {
                let name = format!("{}: {}", variation.id, measure.name);
                findings.measure(name, discipline, measure.unit, estimate);
            }
        }
        grid.rows.push((discipline.clone(), row));
    }
    findings.grids.push(grid);
    Ok(())
}

fn remarks(findings: &mut Findings, runs: &Runs<'_>) {
    findings.remark(
        "The link asks the discipline for a packet when it becomes idle, as a network device does. RED's \
         idle time and the end of CoDel's dropping state depend on that. The discipline queues for the link \
         in both directions.",
    );
    findings.remark(
        "If no packet was lost, the time between losses is the whole measured time, which is a lower bound. \
         Start-up is the duration of the handshake. Completion is the time from the first write of a \
         transfer to the arrival of its last byte.",
    );
    let goodput = |scenario, discipline| runs.mean(scenario, discipline, GOODPUT);
    let (one, nine) = (goodput("friendly", "codel"), goodput("heavy", "codel"));
    if one < 0.9 * goodput("friendly", BASE) {
        findings.remark(format!(
            "A single NewReno flow halves its window for each loss and needs 40 round trips of 100 ms to \
             grow back. Only a queue as long as the path keeps the link busy during that time, and the \
             disciplines exist to prevent such a queue. CoDel leaves a single flow {one:.2} Mbit/s, and nine \
             flows {nine:.2}. That decides the claim on delay.",
        ));
    }
    let lone = goodput("unresponsive", "rred");
    if lone < 1.0 {
        findings.remark(format!(
            "RRED treats a flow that keeps sending right after a drop as an attack. It delivers {lone:.2} \
             Mbit/s of the unresponsive sender, even without other traffic. That is the purpose of its \
             filter, and it is not suitable for such traffic.",
        ));
    }
}

/// Draws a row for each discipline and a mark for each scenario.
fn dots(runs: &Runs<'_>, title: &str, x: Scale, scenarios: &[&str], figure: &str) -> Dots {
    let row = |discipline: &str| Row {
        name: discipline.to_owned(),
        values: scenarios
            .iter()
            .map(|scenario| Some(runs.mean(scenario, discipline, figure)))
            .collect(),
    };
    Dots {
        title: title.into(),
        x,
        series: scenarios.iter().map(|&scenario| scenario.to_owned()).collect(),
        rows: runs.disciplines(scenarios[0]).into_iter().map(row).collect(),
        limit: None,
    }
}

/// Draws latency against goodput (section 2.7 of the RFC), from mild to heavy congestion.
fn trade_off(runs: &Runs<'_>) -> Chart {
    let curve = |(colour, discipline): (usize, &str)| {
        let point = |scenario: &&str| {
            let goodput = runs.estimate(scenario, discipline, GOODPUT)?;
            Some(Point {
                x: runs.mean(scenario, discipline, DELAY),
                y: goodput.mean,
                interval: Some((goodput.low, goodput.high)),
            })
        };
        Curve {
            name: discipline.to_owned(),
            colour,
            // Flow queues are dashed, because there are more disciplines than colours.
            dash: usize::from(judge::FLOW_QUEUES.contains(&discipline)),
            drawn: Drawn::LineAndMarks,
            points: LEVELS.iter().filter_map(point).collect(),
        }
    };
    let disciplines = runs.disciplines(LEVELS[0]);
    let goodputs = disciplines
        .iter()
        .flat_map(|discipline| LEVELS.map(|level| runs.mean(level, discipline, GOODPUT)));
    let least = goodputs.fold(f64::INFINITY, f64::min);
    Chart {
        title: "Latency against goodput: mild, medium, heavy congestion".into(),
        x: Scale::logarithmic("mean queueing delay, ms", 1.0, 100.0),
        y: Scale::linear("goodput, Mbit/s", (least * 2.0).floor() / 2.0, 10.0),
        curves: disciplines.into_iter().enumerate().map(curve).collect(),
    }
}
