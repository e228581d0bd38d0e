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

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use fairgate_config::UnitError;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::random::{Distribution, Empirical, log_normal_sigma};
use crate::scenario::file::pair::Pair;

/// The quantity as written in the file.
pub(super) enum Drawn {
    Constant(String),
    Table(Box<Table>),
}

/// A table: one of the fields up to `empirical`, with the fields that belong to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    uniform: Option<Pair>,
    exponential: Option<String>,
    pareto: Option<String>,
    normal: Option<String>,
    log_normal: Option<String>,
    empirical: Option<String>,
    shape: Option<f64>,
    deviation: Option<String>,
    sigma: Option<f64>,
    between: Option<Pair>,
}

/// What is wrong with a quantity, and the remedy.
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) remedy: String,
}

impl From<UnitError> for Wrong {
    fn from(error: UnitError) -> Wrong {
        Wrong {
            what: error.message,
            remedy: error.remedy,
        }
    }
}

impl<'de> Deserialize<'de> for Drawn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Drawn, D::Error> {
        struct DrawnVisitor;

        impl<'de> Visitor<'de> for DrawnVisitor {
            type Value = Drawn;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text with a unit, or a table that names a distribution")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Drawn, E> {
                Ok(Drawn::Constant(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Drawn, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Drawn::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(DrawnVisitor)
    }
}

impl Drawn {
    /// Returns the distribution. `parse` parses its quantities. Files are in `folder`.
    pub(super) fn read(
        &self,
        parse: impl Fn(&str) -> Result<u64, UnitError>,
        folder: &Path,
    ) -> Result<Distribution, Wrong> {
        let distribution = match self {
            Drawn::Constant(text) => Distribution::Constant(parse(text)?),
            Drawn::Table(table) => table.read(&parse, folder)?,
        };
        distribution.check().map_err(|what| {
            // The text after the semicolon is the remedy.
            let (what, remedy) = what.rsplit_once("; ").unwrap_or((&what, EXAMPLE));
            Wrong {
                what: what.to_owned(),
                remedy: remedy.to_owned(),
            }
        })?;
        Ok(distribution)
    }
}

/// The remedy for a distribution that is not one.
const EXAMPLE: &str = "write for example { exponential = \"100ms\" } or { pareto = \"100ms\", shape = 1.5 }";

impl Table {
    fn read(
        &self,
        parse: &dyn Fn(&str) -> Result<u64, UnitError>,
        folder: &Path,
    ) -> Result<Distribution, Wrong> {
        let kinds = [
            self.uniform.is_some(),
            self.exponential.is_some(),
            self.pareto.is_some(),
            self.normal.is_some(),
            self.log_normal.is_some(),
            self.empirical.is_some(),
        ];
        let extras = (&self.shape, &self.deviation, &self.sigma, &self.between);
        let is_one = kinds.iter().filter(|&&is_given| is_given).count() == 1;
        if is_one && let (None, None, None, None) = extras {
            if let Some(Pair([low, high])) = &self.uniform {
                let (low, high) = (parse(low)?, parse(high)?);
                return Ok(Distribution::Uniform { low, high });
            }
            if let Some(mean) = &self.exponential {
                return Ok(Distribution::Exponential { mean: parse(mean)? });
            }
            if let Some(file) = &self.empirical {
                return read_values(&folder.join(file), parse);
            }
        }
        if is_one && let (Some(mean), (&Some(shape), None, None, between)) = (&self.pareto, extras) {
            let mean = parse(mean)?;
            return Ok(match between {
                None => Distribution::Pareto { mean, shape },
                Some(Pair([low, high])) => Distribution::TruncatedPareto {
                    mean,
                    shape,
                    low: parse(low)?,
                    high: parse(high)?,
                },
            });
        }
        if is_one
            && let (Some(mean), (None, Some(deviation), None, Some(Pair([low, high])))) =
                (&self.normal, extras)
        {
            return Ok(Distribution::Normal {
                mean: parse(mean)?,
                deviation: parse(deviation)?,
                low: parse(low)?,
                high: parse(high)?,
            });
        }
        if is_one && let Some(mean) = &self.log_normal {
            let mean = parse(mean)?;
            let (low, high) = match &self.between {
                None => (0, u64::MAX),
                Some(Pair([low, high])) => (parse(low)?, parse(high)?),
            };
            let sigma = match (&self.deviation, self.sigma) {
                (None, Some(sigma)) => Some(sigma),
                (Some(deviation), None) => Some(log_normal_sigma(mean, parse(deviation)?)),
                _ => None,
            };
            if let (Some(sigma), None) = (sigma, self.shape) {
                return Ok(Distribution::LogNormal {
                    mean,
                    sigma,
                    low,
                    high,
                });
            }
        }
        Err(Wrong {
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
fn read_values(path: &Path, parse: &dyn Fn(&str) -> Result<u64, UnitError>) -> Result<Distribution, Wrong> {
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
        let value = parse(value).map_err(|error| wrong(error.message))?;
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
