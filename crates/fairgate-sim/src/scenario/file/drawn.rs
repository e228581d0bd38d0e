//! A quantity in a file that may be random: `"100ms"`, or a table that names its distribution.
//!
//! ```toml
//! size = "1000b"
//! size = { uniform = ["200b", "1400b"] }
//! off = { exponential = "100ms" }
//! on = { pareto = "100ms", shape = 1.5 }
//! size = { pareto = "25kb", shape = 1.5, between = ["8kb", "1mb"] }
//! on = { normal = "1s", deviation = "1s", between = ["0s", "2s"] }
//! size = { log_normal = "20kb", deviation = "40kb" }   # or sigma = 1.2, that of the logarithm
//! size = { empirical = "sizes.txt" }                   # a value in each line, or a value and its weight
//! ```
//!
//! `between` cuts a distribution: values outside do not occur. The mean and the deviation are those before
//! the cut.

use std::path::Path;
use std::sync::Arc;

use fairgate::registry::{Parameter, Section, Unit};
use fairgate_config::{FileError, Table};

use super::Reader;
use crate::random::{Distribution, Empirical, log_normal_sigma};

/// The keys of a distribution: one of those up to `empirical`, with the keys that belong to it.
#[derive(Default)]
struct Keys {
    uniform: Vec<u64>,
    exponential: Option<u64>,
    pareto: Option<u64>,
    normal: Option<u64>,
    log_normal: Option<u64>,
    empirical: String,
    shape: Option<f64>,
    deviation: Option<u64>,
    sigma: Option<f64>,
    between: Vec<u64>,
}

/// A number without a unit.
const NUMBER: Unit = Unit::Decimal("number", 0, i64::MAX);

/// Returns the keys of distributions of this unit.
const fn keys(unit: &'static Unit) -> [Parameter<Keys>; 10] {
    const ANY: std::ops::RangeInclusive<u64> = 0..=u64::MAX;
    [
        Parameter::new(
            "uniform",
            Unit::Several(unit, 2, 2),
            ANY,
            "Between these two, all equally likely.",
            |keys, _| &mut keys.uniform,
        ),
        Parameter::new(
            "exponential",
            *unit,
            ANY,
            "Exponential, with this mean.",
            |keys, _| &mut keys.exponential,
        ),
        Parameter::new(
            "pareto",
            *unit,
            ANY,
            "Pareto, with this mean and a `shape`.",
            |keys, _| &mut keys.pareto,
        ),
        Parameter::new(
            "normal",
            *unit,
            ANY,
            "Normal, with this mean, a `deviation` and `between`.",
            |keys, _| &mut keys.normal,
        ),
        Parameter::new(
            "log_normal",
            *unit,
            ANY,
            "Log-normal, with this mean, and a `deviation` or `sigma`.",
            |keys, _| &mut keys.log_normal,
        ),
        Parameter::word(
            "empirical",
            Unit::Text("file"),
            "As often as in a file: a value in each line, or a value and its weight.",
            |keys, _| &mut keys.empirical,
        ),
        Parameter::word(
            "shape",
            NUMBER,
            "The shape of `pareto`, above 1; the smaller, the heavier is the tail.",
            |keys, _| &mut keys.shape,
        ),
        Parameter::new(
            "deviation",
            *unit,
            ANY,
            "The standard deviation of `normal` and `log_normal`.",
            |keys, _| &mut keys.deviation,
        ),
        Parameter::word(
            "sigma",
            NUMBER,
            "The standard deviation of the logarithm of `log_normal`.",
            |keys, _| &mut keys.sigma,
        ),
        Parameter::new(
            "between",
            Unit::Several(unit, 2, 2),
            ANY,
            "Values outside of these two do not occur; the mean and the deviation are those before the cut.",
            |keys, _| &mut keys.between,
        ),
    ]
}

static OF_TIMES: [Parameter<Keys>; 10] = keys(&Unit::Time);
static OF_SIZES: [Parameter<Keys>; 10] = keys(&Unit::Bytes);
static OF_NUMBERS: [Parameter<Keys>; 10] = keys(&Unit::Amount("number"));

/// Describes a duration that may be random.
pub(super) const fn time(name: &'static str, default: &'static str, about: &'static str) -> Section {
    Section::new(name, about, || Parameter::infos(&OF_TIMES, Keys::default())).or(Unit::Time, default)
}

/// Describes a size that may be random.
pub(super) const fn size(name: &'static str, default: &'static str, about: &'static str) -> Section {
    Section::new(name, about, || Parameter::infos(&OF_SIZES, Keys::default())).or(Unit::Bytes, default)
}

/// Describes a number without a unit that may be random.
pub(super) const fn number(name: &'static str, default: &'static str, about: &'static str) -> Section {
    Section::new(name, about, || Parameter::infos(&OF_NUMBERS, Keys::default()))
        .or(Unit::Amount("number"), default)
}

impl Reader<'_> {
    /// Reads durations, in nanoseconds, if the key is written.
    pub(super) fn times(&self, table: &Table, key: &str) -> Result<Option<Distribution>, FileError> {
        self.drawn(table, key, Unit::Time, &OF_TIMES)
    }

    pub(super) fn sizes(&self, table: &Table, key: &str) -> Result<Option<Distribution>, FileError> {
        self.drawn(table, key, Unit::Bytes, &OF_SIZES)
    }

    pub(super) fn numbers(&self, table: &Table, key: &str) -> Result<Option<Distribution>, FileError> {
        self.drawn(table, key, Unit::Amount("number"), &OF_NUMBERS)
    }

    fn drawn(
        &self,
        table: &Table,
        key: &str,
        unit: Unit,
        parameters: &[Parameter<Keys>],
    ) -> Result<Option<Distribution>, FileError> {
        let Some(span) = table.span_of(key) else {
            return Ok(None);
        };
        let drawn = match table.table(key) {
            Some(drawn) => drawn
                .read(parameters, Keys::default())
                .distribution(unit, self.folder()),
            None => Ok(Distribution::Constant(table.plain(key, unit).unwrap_or_default())),
        };
        let checked = drawn.and_then(|distribution| {
            distribution.check().map_err(|what| {
                // The text after the semicolon is the remedy.
                let (what, remedy) = what.rsplit_once("; ").unwrap_or((&what, EXAMPLE));
                Wrong {
                    what: what.to_owned(),
                    remedy: remedy.to_owned(),
                }
            })?;
            Ok(distribution)
        });
        let refused = |wrong: Wrong| self.document.error(span, wrong.what, wrong.remedy);
        checked.map(Some).map_err(refused)
    }
}

/// What is wrong with a distribution, and the remedy.
struct Wrong {
    what: String,
    remedy: String,
}

/// The remedy for a distribution that is not one.
const EXAMPLE: &str = "write for example { exponential = \"100ms\" } or { pareto = \"100ms\", shape = 1.5 }";

impl Keys {
    fn distribution(&self, unit: Unit, folder: &Path) -> Result<Distribution, Wrong> {
        let means = [self.exponential, self.pareto, self.normal, self.log_normal];
        let kinds = means.iter().flatten().count()
            + usize::from(!self.uniform.is_empty())
            + usize::from(!self.empirical.is_empty());
        let extras = (self.shape, self.deviation, self.sigma, &self.between[..]);
        let found = match (means, extras) {
            _ if kinds != 1 => None,
            ([None, None, None, None], (None, None, None, [])) => match self.uniform[..] {
                [low, high] => Some(Distribution::Uniform { low, high }),
                _ => return read_values(&folder.join(&self.empirical), unit),
            },
            ([Some(mean), ..], (None, None, None, [])) => Some(Distribution::Exponential { mean }),
            ([_, Some(mean), ..], (Some(shape), None, None, [])) => {
                Some(Distribution::Pareto { mean, shape })
            }
            ([_, Some(mean), ..], (Some(shape), None, None, &[low, high])) => {
                Some(Distribution::TruncatedPareto {
                    mean,
                    shape,
                    low,
                    high,
                })
            }
            ([_, _, Some(mean), _], (None, Some(deviation), None, &[low, high])) => {
                Some(Distribution::Normal {
                    mean,
                    deviation,
                    low,
                    high,
                })
            }
            ([.., Some(mean)], (None, deviation, sigma, between)) => {
                let (low, high) = match *between {
                    [low, high] => (low, high),
                    _ => (0, u64::MAX),
                };
                let sigma = match (deviation, sigma) {
                    (Some(deviation), None) => Some(log_normal_sigma(mean, deviation)),
                    (None, sigma) => sigma,
                    (Some(_), Some(_)) => None,
                };
                sigma.map(|sigma| Distribution::LogNormal {
                    mean,
                    sigma,
                    low,
                    high,
                })
            }
            _ => None,
        };
        found.ok_or_else(|| Wrong {
            what: "a distribution must be one of `uniform`, `exponential`, `pareto` with `shape`, `normal` \
                   with `deviation` and `between`, `log_normal` with `deviation` or `sigma`, or `empirical`; \
                   `pareto` and `log_normal` may have `between`"
                .to_owned(),
            remedy: EXAMPLE.to_owned(),
        })
    }
}

/// Reads a file with a value in each line, or a value and its weight. Empty lines, and what follows a `#`,
/// are comments.
fn read_values(path: &Path, unit: Unit) -> Result<Distribution, Wrong> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Wrong {
        what: format!("the file {name} can't be read: {error}"),
        remedy: "name a text file; its path is relative to the folder of this file".to_owned(),
    })?;
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |what: String| Wrong {
            what: format!("{name}, line {number}: {what}"),
            remedy:
                "write a value in each line, such as `1500b`, or a value and its weight, such as `1500b 3`"
                    .to_owned(),
        };
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        let mut words = content.split_whitespace();
        let Some(value) = words.next() else { continue };
        let value = unit.parse(value).map_err(|error| wrong(error.message))?;
        let weight = match words.next() {
            None => 1.0,
            Some(word) => word
                .parse::<f64>()
                .ok()
                .filter(|weight| weight.is_finite() && *weight > 0.0)
                .ok_or_else(|| wrong(format!("the weight is `{word}`, but must be a number above 0")))?,
        };
        if let Some(word) = words.next() {
            return Err(wrong(format!("`{word}` follows the weight")));
        }
        values.push((value, weight));
    }
    let empirical = Empirical::new(values).map_err(|what| Wrong {
        what: format!("{name}: {what}"),
        remedy: "write at least one value".to_owned(),
    })?;
    Ok(Distribution::Empirical(Arc::new(empirical)))
}
