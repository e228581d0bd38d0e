//! The section `[sweep]`.

use fairgate::registry::{Field, Parameter, Section, Unit, Value, misfit};
use fairgate_config::language::Problems;
use fairgate_config::{Document, FileError, Table};
use toml::Value as Toml;

use super::Axis;
use crate::results::Measure;

/// The section `[sweep]`.
pub(crate) static SWEEP: Section = Section::new(
    "sweep",
    "a scenario with many values and seeds: docs/simulation.md#sweeps",
    || Parameter::infos(&KEYS, Keys::default()),
)
.with(&WITHIN);

static WITHIN: [Section; 1] = [Section::open(
    "grid",
    "lists of values by path: queue.wan.target = [...]",
)];

static KEYS: [Parameter<Keys>; 2] = [
    Parameter::new(
        "seeds",
        Unit::CountOrNumbers("seeds"),
        0..=i64::MAX as u64,
        "How many seeds from that of the scenario on, or which ones.",
        |keys, _| &mut keys.seeds,
    ),
    Parameter::word(
        "measure",
        Unit::Choice(Measure::WORDS),
        "The table that is kept of each run.",
        |keys, _| &mut keys.measure,
    ),
];

/// What the section says besides its grid.
pub(super) struct Keys {
    pub(super) seeds: Seeds,
    pub(super) measure: Measure,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            seeds: Seeds::Count(1),
            measure: Measure::Groups,
        }
    }
}

impl Keys {
    /// Reads the keys of a checked table.
    pub(super) fn read(table: &Table) -> Keys {
        table.read(&KEYS, Keys::default())
    }
}

/// How many seeds, or which ones.
pub(super) enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

impl Field for Seeds {
    fn read(&self) -> Value {
        match self {
            Seeds::Count(count) => Value::Number(*count),
            Seeds::List(seeds) => Value::List(seeds.clone()),
        }
    }

    fn write(&mut self, value: &Value) {
        *self = match value {
            Value::Number(count) => Seeds::Count(*count),
            Value::List(seeds) => Seeds::List(seeds.clone()),
            _ => misfit("Seeds", value),
        };
    }
}

/// Returns all paths of a grid with their values. Tables and points in keys are the same: `queue.wan.target =
/// [...]` and `"queue.wan.target" = [...]`. A table is where its first key is, so the order is that of
/// Python's reader of TOML.
///
/// # Errors
/// Reports all values that are not lists.
pub(super) fn axes(grid: &Table, document: &Document) -> Result<Vec<Axis>, FileError> {
    let (mut axes, mut problems) = (Vec::new(), document.problems());
    collect(grid, "", &mut axes, &mut problems);
    problems.unless_any(axes)
}

fn collect(table: &Table, above: &str, axes: &mut Vec<Axis>, problems: &mut Problems) {
    for (key, given) in table.entries() {
        let path = match above {
            "" => key.get_ref().clone(),
            above => format!("{above}.{}", key.get_ref()),
        };
        if let Some(below) = table.table(key.get_ref()) {
            collect(&below, &path, axes, problems);
            continue;
        }
        let mut wrong = |what: &str| {
            problems.add(
                given.span(),
                format!("the values of `{path}` are {what}, but must be a list with at least one"),
                "here",
                format!("write a list: {path} = [..., ...]"),
            );
        };
        match given.get_ref().to_toml() {
            Some(Toml::Array(values)) if values.is_empty() => wrong("an empty list"),
            Some(Toml::Array(values)) => axes.push(Axis {
                spans: table.spans_in(key.get_ref()),
                path,
                values,
            }),
            Some(_) => wrong("a single value"),
            None => wrong("dates, or numbers that are too large"),
        }
    }
}
