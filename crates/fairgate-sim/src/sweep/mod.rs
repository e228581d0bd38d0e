//! Sweeps: a scenario with all combinations of values and seeds, as the section `[sweep]` of its file lists
//! them.
//!
//! ```toml
//! [sweep]
//! seeds = 5                 # from the scenario's seed on; or a list
//! measure = "groups"        # the table that is kept of each run
//!
//! [sweep.grid]
//! queue.wan.target = ["1ms", "5ms", "20ms"]
//! simulate.flow.downloads.count = [1, 4, 16]
//! ```
//!
//! A path leads to the value that is replaced. A step of it is a key, the name of an entry of a list, or its
//! position, counted from 0.

mod identity;
mod place;
mod section;

use std::ops::Range;

use fairgate_config::{Document, FileError, Registry};
use toml::{Table, Value};

use crate::batch::Batch;
use crate::results::Measure;
use crate::scenario::Scenario;
use section::{Keys, Seeds, axes};

pub use identity::identity;
pub(crate) use section::SWEEP;

/// The largest number of runs.
const MOST_RUNS: usize = 10_000_000;

/// A path and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is replaced, like `queue.wan.target`.
    pub path: String,
    /// At least one.
    pub values: Vec<Value>,
    /// The location of each value.
    spans: Vec<Range<usize>>,
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Run {
    /// The scenario, with the run's seed.
    pub scenario: Scenario,
    /// What tells the run from all others, also from those of other sweeps ([`identity`]).
    pub id: String,
    /// Which value each axis has.
    point: usize,
}

/// A sweep whose combinations are all checked.
#[derive(Clone, Debug)]
pub struct Sweep<'r> {
    document: Document,
    registry: &'r Registry,
    memory: u64,
    base: Table,
    axes: Vec<Axis>,
    seeds: Vec<u64>,
    measure: Measure,
}

impl<'r> Sweep<'r> {
    /// Reads the sections `[sweep]` and `[simulate]` of a file, for a machine with `memory` bytes available,
    /// and checks the scenario with each combination of values.
    ///
    /// # Errors
    /// Reports the mistakes with their locations. If values of the grid make the scenario wrong, the location
    /// is the first such value.
    pub fn read(document: &Document, registry: &'r Registry, memory: u64) -> Result<Sweep<'r>, FileError> {
        let mut problems = document.problems();
        let scenario = problems.of(Scenario::read_for(document, memory));
        let section = problems.of(document.table(&SWEEP));
        let Some(section) = section.flatten() else {
            if problems.count() == 0 {
                problems.add(
                    0..0,
                    "there is no [sweep] section",
                    "here",
                    "add one with `seeds`, and [sweep.grid] with a line like queue.wan.limit = [100, 1000]",
                );
            }
            return Err(problems.into_error());
        };
        let keys = Keys::read(&section);
        let grid = section.table("grid").unwrap_or_default();
        let axes = problems.of(axes(&grid, document));
        let place = section.span_of("seeds");
        let first = scenario.as_ref().map_or(1, |scenario| scenario.seed);
        let seeds = problems.of(seeds(document, &keys.seeds, place, first));
        let (Some(axes), Some(seeds)) = (axes, seeds) else {
            return Err(problems.into_error());
        };
        problems.unless_any(())?;
        let mut base: Table = toml::from_str(document.text()).expect("the text was parsed before");
        base.remove("sweep");
        let sweep = Sweep {
            document: document.clone(),
            registry,
            memory,
            base,
            axes,
            seeds,
            measure: keys.measure,
        };
        sweep.check()?;
        Ok(sweep)
    }

    /// Returns the paths with their values, in the order of the file.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns which table is kept.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.points() * self.seeds.len()
    }

    /// Returns a run by its number. The seeds of a combination follow one another, and the last axis changes
    /// first.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn run(&self, number: usize) -> Run {
        let (point, seed) = (number / self.seeds.len(), self.seeds[number % self.seeds.len()]);
        let (table, scenario) = self.scenario(&self.values(point)).expect("it was checked");
        Run {
            scenario: Scenario {
                seed,
                captures: Vec::new(),
                ..scenario
            },
            id: identity(&table, seed),
            point,
        }
    }

    /// Returns the value of each axis in a run.
    pub fn values_of(&self, run: &Run) -> Vec<&Value> {
        self.values(run.point)
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }

    fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// Returns the values of a combination by number, with their axes.
    fn values(&self, point: usize) -> Vec<(&Axis, &Value)> {
        let mut rest = point;
        let mut values: Vec<(&Axis, &Value)> = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push((axis, &axis.values[rest % axis.values.len()]));
            rest /= axis.values.len();
        }
        values.reverse();
        values
    }

    /// Returns the file with these values, and the scenario in it.
    fn scenario(&self, values: &[(&Axis, &Value)]) -> Result<(Table, Scenario), Wrong> {
        let mut table = self.base.clone();
        for (axis, value) in values {
            place::set(&mut table, &axis.path, (*value).clone())?;
        }
        let text = toml::to_string(&table).map_err(|error| Wrong {
            message: error.to_string(),
            help: "write the value as it would stand in the file".to_owned(),
        })?;
        let document = Document::parse_with(self.document.name(), &text, self.registry)?;
        let scenario = Scenario::read_for(&document, self.memory)?;
        Ok((table, scenario))
    }

    /// Checks the scenario with each combination of values.
    fn check(&self) -> Result<(), FileError> {
        let counts = self.axes.iter().map(|axis| axis.values.len());
        let runs = counts.chain([self.seeds.len()]).try_fold(1, usize::checked_mul);
        if runs.is_none_or(|runs| runs > MOST_RUNS) {
            return Err(self.document.error(
                self.axes.first().map_or(0..0, |axis| axis.spans[0].clone()),
                format!("the sweep has more than {MOST_RUNS} runs"),
                "make lists shorter, or split the sweep into several files",
            ));
        }
        // A path or a value that is wrong alone is found first, because its location is known best.
        for axis in &self.axes {
            for (value, span) in axis.values.iter().zip(&axis.spans) {
                self.scenario(&[(axis, value)]).map_err(|wrong| {
                    let message = format!("with this value of `{}`: {}", axis.path, wrong.message);
                    self.document.error(span.clone(), message, wrong.help)
                })?;
            }
        }
        if self.axes.len() < 2 {
            return Ok(());
        }
        let points: Vec<usize> = (0..self.points()).collect();
        let checked = Batch::default().map(&points, |&point| {
            self.scenario(&self.values(point))
                .err()
                .map(|wrong| (point, wrong))
        });
        let Some((point, wrong)) = checked.into_iter().flatten().next() else {
            return Ok(());
        };
        let values = self.values(point);
        let shown: Vec<String> = values
            .iter()
            .map(|(axis, value)| format!("{} = {value}", axis.path))
            .collect();
        let message = format!("with {} together: {}", shown.join(", "), wrong.message);
        let span = self.axes[0].spans[0].clone();
        Err(self.document.error(span, message, wrong.help))
    }
}

/// What is wrong with a scenario after values were replaced.
#[derive(Debug)]
struct Wrong {
    message: String,
    help: String,
}

impl From<FileError> for Wrong {
    /// Keeps the first mistake. Its location is in a text that no user has seen.
    fn from(error: FileError) -> Wrong {
        let problem = &error.problems()[0];
        Wrong {
            message: problem.message.clone(),
            help: problem.help.clone(),
        }
    }
}

/// Returns the seeds: those of a list, or how many from the scenario's on.
fn seeds(
    document: &Document,
    given: &Seeds,
    place: Option<Range<usize>>,
    first: u64,
) -> Result<Vec<u64>, FileError> {
    let wrong = |message: String, help: &str| {
        let place = place.clone().unwrap_or(0..0);
        Err(document.error(place, message, help))
    };
    match given {
        Seeds::Count(0) => wrong(
            "`seeds` is 0, but there must be at least one".to_owned(),
            "write seeds = 1",
        ),
        Seeds::Count(count) if *count > MOST_RUNS as u64 => wrong(
            format!("`seeds` is {count}, but a sweep has at most {MOST_RUNS} runs"),
            "write fewer seeds; the width of an interval shrinks only with the square root of their number",
        ),
        Seeds::Count(count) => match first.checked_add(count - 1) {
            Some(last) if i64::try_from(last).is_ok() => Ok((first..=last).collect()),
            _ => wrong(
                format!(
                    "there are no {count} seeds from {first} on: the last one is {}",
                    i64::MAX
                ),
                "begin with a lower `seed` in [simulate]",
            ),
        },
        Seeds::List(seeds) if seeds.is_empty() => wrong(
            "`seeds` is empty".to_owned(),
            "list at least one seed, or leave the key out",
        ),
        Seeds::List(seeds) => {
            let mut sorted = seeds.clone();
            sorted.sort_unstable();
            match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                Some(pair) => wrong(
                    format!("the seed {} is listed twice", pair[0]),
                    "list each seed once",
                ),
                None => Ok(seeds.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
