//! What an experiment's function hands back.

use fairgate_report::chart::{Chart, Point};
use fairgate_report::dots::Dots;
use fairgate_report::scaling::Scaling;
use fairgate_report::sheet::{Block, Cell, Table};
use fairgate_theory::estimate::Estimate;
use serde::Serialize;

use crate::reproduction::digits;

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The figures, in the order of the table.
    pub measurements: Vec<Measurement>,
    /// One for each claim of the experiment's file.
    pub verdicts: Vec<Verdict>,
    /// The figure, or several.
    pub figures: Vec<Figure>,
    /// Measurements side by side, where there are more than a list can show.
    pub grids: Vec<Grid>,
    /// What to know before believing it.
    pub remarks: Vec<String>,
}

/// Means in rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// Names of the columns, with units.
    pub head: Vec<String>,
    /// A name and its values, one for each column; `None` where nothing was measured.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// A drawing of what came out.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Curves over two axes.
    Chart(Chart),
    /// How something grows.
    Scaling(Scaling),
    /// Names and places.
    Dots(Dots),
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What was measured.
    pub measure: String,
    /// Under which circumstances.
    pub case: String,
    /// Its unit; empty for a number without one.
    pub unit: String,
    /// The value.
    pub value: Estimate,
    /// What is published of it and where, if that is a formula whose value no file of published values can have.
    pub published: Option<(String, String)>,
}

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The claim's name.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
    /// The figures it was judged by.
    pub found: String,
}

impl Figure {
    /// As a file of its own.
    pub fn svg(&self) -> String {
        match self {
            Figure::Chart(chart) => chart.svg(),
            Figure::Scaling(scaling) => scaling.svg(),
            Figure::Dots(dots) => dots.svg(),
        }
    }

    /// What it shows.
    pub fn title(&self) -> &str {
        match self {
            Figure::Chart(chart) => &chart.title,
            Figure::Scaling(scaling) => &scaling.title,
            Figure::Dots(dots) => &dots.title,
        }
    }

    pub(crate) fn block(&self) -> Block {
        match self {
            Figure::Chart(chart) => Block::Chart(chart.clone()),
            Figure::Scaling(scaling) => Block::Scaling(scaling.clone()),
            Figure::Dots(dots) => Block::Dots(dots.clone()),
        }
    }

    /// Its points with the names of what they belong to. Of [`Dots`] `y` is the row's number, from 1 at the top, and the
    /// name is series and row.
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
        }
    }
}

impl Grid {
    /// A value for people; a dash if there is none.
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
    /// Adds a figure.
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

    /// Adds a figure with what is published of it, and where.
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
            found: found.into(),
        });
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }
}
