//! The results that an experiment's function returns.

use fairgate_report::chart::{Chart, Point};
use fairgate_report::dots::Dots;
use fairgate_report::scaling::Scaling;
use fairgate_report::sheet::{Block, Cell, Table};
use fairgate_report::violin::Violins;
use fairgate_theory::estimate::Estimate;
use serde::Serialize;

use crate::lab::Machine;
use crate::reproduce::digits::digits;

/// The results of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The measured values, in the order of the table.
    pub measurements: Vec<Measurement>,
    /// One verdict for each claim of the experiment's file, and for each statement of ours beside a claim.
    pub verdicts: Vec<Verdict>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Tables of measurements, if there are too many for a list.
    pub grids: Vec<Grid>,
    /// Remarks on the accuracy of the results.
    pub remarks: Vec<String>,
    /// The same measured in other ways: simulated, if the results are those of live runs, or with the
    /// kernel's own discipline.
    pub beside: Vec<Beside>,
    /// How busy the machine was, if the results are those of live runs.
    pub live: Option<LiveReport>,
}

/// The same measured in another way.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The way, in a word or two: `simulated`.
    pub name: String,
    /// The values.
    pub measurements: Vec<Measurement>,
}

/// How busy the machine was during live runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveReport {
    /// The number of live runs.
    pub runs: u64,
    /// The share of the processors' time in which they were idle: the least of all runs, the mean, and the
    /// greatest.
    pub idle: [f64; 3],
    /// How often a bridge woke up more than 1 ms late.
    pub late_wake_ups: u64,
    /// How often a bridge made no progress for more than 5 ms although it had work.
    pub stalls: u64,
    /// How often a datagram left more than 1 ms late.
    pub late_datagrams: u64,
}

impl LiveReport {
    /// Returns the report of runs on this machine.
    pub(crate) fn of(machines: &[Machine]) -> LiveReport {
        let idle = || machines.iter().map(|machine| machine.idle);
        let sum = |figure: fn(&Machine) -> u64| machines.iter().map(figure).sum();
        LiveReport {
            runs: machines.len() as u64,
            idle: [
                idle().fold(1.0, f64::min),
                idle().sum::<f64>() / machines.len().max(1) as f64,
                idle().fold(0.0, f64::max),
            ],
            late_wake_ups: sum(|machine| machine.late_wake_ups),
            stalls: sum(|machine| machine.stalls),
            late_datagrams: sum(|machine| machine.late_datagrams),
        }
    }

    /// Returns the report in sentences.
    pub(crate) fn text(&self) -> String {
        let [least, mean, most] = self.idle.map(|share| 100.0 * share);
        format!(
            "{} live runs. The processors were idle for {mean:.0} % of the time ({least:.0} to {most:.0} % \
             in a run). Bridges woke up more than 1 ms late {} times and were held up for more than 5 ms {} \
             times; {} datagrams left more than 1 ms late.",
            self.runs, self.late_wake_ups, self.stalls, self.late_datagrams
        )
    }

    /// Returns how idle the processors were, in words for the end of a verdict.
    pub fn idle_text(&self) -> String {
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        let [least, _, most] = self.idle.map(percent);
        match least == most {
            true => format!("processors {least} % idle"),
            false => format!("processors {least} to {most} % idle"),
        }
    }
}

/// A table of means.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The title.
    pub title: String,
    /// The names of the columns, with units.
    pub head: Vec<String>,
    /// A name and one value for each column; `None` if nothing was measured.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// A figure of the results.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Curves over two axes.
    Chart(Chart),
    /// A figure that shows growth.
    Scaling(Scaling),
    /// A dot plot.
    Dots(Dots),
    /// Distributions side by side.
    Violins(Violins),
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What was measured.
    pub measure: String,
    /// The case in which it was measured.
    pub case: String,
    /// The unit; empty for a number without one.
    pub unit: String,
    /// The value.
    pub value: Estimate,
    /// The published value and its source, if it is a formula that the file of published values can't have.
    pub published: Option<(String, String)>,
}

/// The verdict on a claim, or on a statement of ours beside one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The name of the claim or statement.
    pub claim: String,
    /// Whether it was measured to hold, as it is stated.
    pub holds: bool,
    /// Whether there were enough data to judge it. If not, `holds` is false.
    pub is_judged: bool,
    /// If it does not hold, but chance may be the reason: how far the published value, or a limit, is from
    /// the mean of our runs, in standard deviations of a single run.
    pub chance: Option<f64>,
    /// The numbers by which it was judged, the worst first.
    pub found: String,
}

impl Figure {
    /// Returns the figure as an SVG file.
    pub fn svg(&self) -> String {
        match self {
            Figure::Chart(chart) => chart.svg(),
            Figure::Scaling(scaling) => scaling.svg(),
            Figure::Dots(dots) => dots.svg(),
            Figure::Violins(violins) => violins.svg(),
        }
    }

    /// Returns the title.
    pub fn title(&self) -> &str {
        match self {
            Figure::Chart(chart) => &chart.title,
            Figure::Scaling(scaling) => &scaling.title,
            Figure::Dots(dots) => &dots.title,
            Figure::Violins(violins) => &violins.title,
        }
    }

    pub(crate) fn block(&self) -> Block {
        match self {
            Figure::Chart(chart) => Block::Chart(chart.clone()),
            Figure::Scaling(scaling) => Block::Scaling(scaling.clone()),
            Figure::Dots(dots) => Block::Dots(dots.clone()),
            Figure::Violins(violins) => Block::Violins(violins.clone()),
        }
    }

    /// Returns the points, each with the name of its curve. For [`Dots`] `y` is the number of the row, from 1
    /// at the top, and the name is that of row and series. For [`Violins`] `x` is the share of values at or
    /// below `y`, and the name is that of group and series.
    pub(crate) fn points(&self) -> Vec<(String, Point)> {
        let point = |x: f64, y: f64| Point { x, y, interval: None };
        match self {
            Figure::Chart(chart) => (chart.curves.iter())
                .flat_map(|curve| curve.points.iter().map(|&point| (curve.name.clone(), point)))
                .collect(),
            Figure::Scaling(scaling) => (scaling.curves.iter())
                .flat_map(|series| (series.points.iter()).map(|&(x, y)| (series.name.clone(), point(x, y))))
                .collect(),
            Figure::Dots(dots) => (dots.rows.iter().enumerate())
                .flat_map(|(number, row)| {
                    let values = dots.series.iter().zip(&row.values);
                    values.filter_map(move |(series, value)| {
                        let name = format!("{}, {series}", row.name);
                        value.map(|value| (name, point(value, (number + 1) as f64)))
                    })
                })
                .collect(),
            Figure::Violins(violins) => (violins.groups.iter())
                .flat_map(|group| {
                    violins
                        .series
                        .iter()
                        .zip(&group.violins)
                        .map(move |pair| (group, pair))
                })
                .filter_map(|(group, (series, quantiles))| {
                    Some((format!("{}, {series}", group.name), quantiles.as_ref()?))
                })
                .flat_map(|(name, quantiles)| {
                    quantiles
                        .shares()
                        .map(move |(share, value)| (name.clone(), point(share, value)))
                })
                .collect(),
        }
    }
}

impl Grid {
    /// Formats a value. A dash means that there is none.
    pub fn text(value: Option<f64>) -> String {
        value.map_or("–".into(), digits)
    }

    pub(crate) fn table(&self) -> Table {
        let first = ["".to_owned()];
        Table {
            head: first.iter().chain(&self.head).cloned().collect(),
            rows: (self.rows.iter())
                .map(|(name, values)| {
                    let values = values.iter().map(|&value| Cell::Number(Grid::text(value)));
                    std::iter::once(Cell::Words(name.clone())).chain(values).collect()
                })
                .collect(),
        }
    }
}

impl Findings {
    /// Adds a measured value.
    pub fn measure(
        &mut self,
        measure: impl Into<String>,
        case: impl Into<String>,
        unit: impl Into<String>,
        value: Estimate,
    ) {
        self.measurements.push(Measurement {
            measure: measure.into(),
            case: case.into(),
            unit: unit.into(),
            value,
            published: None,
        });
    }

    /// Adds a measured value with its published value and where that is published.
    pub fn measure_beside(
        &mut self,
        measure: impl Into<String>,
        case: impl Into<String>,
        unit: impl Into<String>,
        value: Estimate,
        published: impl Into<String>,
        place: impl Into<String>,
    ) {
        self.measurements.push(Measurement {
            measure: measure.into(),
            case: case.into(),
            unit: unit.into(),
            value,
            published: Some((published.into(), place.into())),
        });
    }

    /// Adds a verdict.
    pub fn judge(&mut self, claim: &str, holds: bool, found: impl Into<String>) {
        self.verdicts.push(Verdict {
            claim: claim.to_owned(),
            holds,
            is_judged: true,
            chance: None,
            found: found.into(),
        });
    }

    /// Adds the verdict that a claim does not hold by our means, but that single runs of ours are as far from
    /// them as `distance`, in standard deviations.
    pub(crate) fn judge_by_chance(&mut self, claim: &str, distance: f64, found: impl Into<String>) {
        self.judge(claim, false, found);
        self.verdicts.last_mut().expect("it was added").chance = Some(distance);
    }

    /// Adds the verdict that there are too few data to judge a claim, with what is missing.
    pub fn leave_open(&mut self, claim: &str, missing: impl Into<String>) {
        self.verdicts.push(Verdict {
            claim: claim.to_owned(),
            holds: false,
            is_judged: false,
            chance: None,
            found: missing.into(),
        });
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }
}
