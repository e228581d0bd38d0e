//! RFC 7928: every discipline that manages a queue, in the RFC's scenarios.
//!
//! ```text
//!   files --> bed.rs: networks, variations, runs --> outcome.rs: figures of a run --> judge.rs: claims
//!              line.rs: the bottleneck                                           \-> drawings here, tables
//! ```
//!
//! A scenario is a file and what the experiment's file changes in it; the discipline under test takes the fifo's place at the
//! bottleneck, with as much memory.

mod bed;
mod judge;
mod line;
mod outcome;

use fairgate_report::chart::{Chart, Curve, Drawn, Point, Scale};
use fairgate_report::dots::{Dots, Row};
use fairgate_theory::estimate::Estimate;

use crate::findings::Grid;
use crate::{Figure, Findings, ReproduceError, Run};
use bed::{Bed, Prepared, Runs};
use outcome::{ALWAYS, DELAY, GOODPUT, JAIN, Measure};

/// Tail drop: what the others are held against.
const BASE: &str = "fifo";
/// Senders that respond, long transfers only: from one to many.
const RESPONSIVE: [&str; 5] = ["friendly", "aggressive", "mild", "medium", "heavy"];
/// The levels of congestion, rising.
const LEVELS: [&str; 3] = ["mild", "medium", "heavy"];
/// Unequal round-trip times, and equal ones among them.
const TIMES: [&str; 5] = ["rtt-5", "rtt-20", "rtt-100", "rtt-200", "rtt-560"];

impl Runs<'_> {
    /// The disciplines of a scenario in their order.
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
        let place = prepared
            .disciplines
            .iter()
            .position(|(name, _)| name == discipline)?;
        let runs: Vec<f64> = outcomes[place]
            .iter()
            .map(|outcome| outcome.figure(figure))
            .filter(|value| value.is_finite())
            .collect();
        Estimate::of(&runs)
    }

    /// The mean; not a number where nothing was measured.
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

/// The figures of a scenario.
fn tell(findings: &mut Findings, runs: &Runs<'_>, prepared: &Prepared) -> Result<(), ReproduceError> {
    let variation = &prepared.variation;
    let shown = variation.show.iter().map(String::as_str);
    let measures = ALWAYS
        .into_iter()
        .chain(shown)
        .map(|name| {
            Measure::new(name).ok_or_else(|| ReproduceError::Fault {
                id: "rfc7928",
                what: format!("`{}` shows `{name}`, which nothing measures", variation.id),
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
        "A discipline is asked for a packet when the line falls idle, as a device asks: RED's idle time and the end of CoDel's dropping \
         state hang on that. It stands in front of the line in both directions.",
    );
    findings.remark(
        "Where no packet was lost, the time between losses is the whole time measured: a lower bound. Start-up is the handshake; \
         completion, of a transfer, is from its first write to the last byte's arrival.",
    );
    let goodput = |scenario, discipline| runs.mean(scenario, discipline, GOODPUT);
    let (one, nine) = (goodput("friendly", "codel"), goodput("heavy", "codel"));
    if one < 0.9 * goodput("friendly", BASE) {
        findings.remark(format!(
            "A lone NewReno flow halves its window for each loss and takes 40 round trips of 100 ms to grow back: only a queue as long \
             as the path keeps the line busy meanwhile, which is what the disciplines are there to prevent. CoDel leaves it {one:.2} \
             Mbit/s, nine flows {nine:.2}. That decides the claim on delay.",
        ));
    }
    let lone = goodput("unresponsive", "rred");
    if lone < 1.0 {
        findings.remark(format!(
            "RRED takes a flow that goes on sending right after a drop for an attack. Of the unresponsive sender it lets {lone:.2} Mbit/s \
             pass, even where there is nobody else: it is what its filter is for, and no choice for such traffic.",
        ));
    }
}

/// A row for each discipline, a mark for each scenario.
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

/// Latency against goodput (section 2.7 of the RFC), from mild to heavy congestion.
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
            // Flow queues are dashed: there are more disciplines than colours.
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
