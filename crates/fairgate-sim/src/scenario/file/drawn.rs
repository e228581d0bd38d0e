//! A quantity in a file that may be random: `"100ms"`, or a table that names its distribution.
//!
//! ```toml
//! size = "1000b"
//! size = { uniform = ["200b", "1400b"] }
//! off = { exponential = "100ms" }
//! on = { pareto = "100ms", shape = 1.5 }
//! on = { normal = "1s", deviation = "1s", between = ["0s", "2s"] }
//! ```

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::random::Distribution;
use crate::scenario::file::pair::Pair;

/// The quantity as written in the file.
pub(super) enum Drawn {
    Constant(String),
    Table(Table),
}

/// A table: one of the first four fields, with the fields that belong to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    uniform: Option<Pair>,
    exponential: Option<String>,
    pareto: Option<String>,
    normal: Option<String>,
    shape: Option<f64>,
    deviation: Option<String>,
    between: Option<Pair>,
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
                Table::deserialize(MapAccessDeserializer::new(map)).map(Drawn::Table)
            }
        }

        deserializer.deserialize_any(DrawnVisitor)
    }
}

impl Drawn {
    /// Returns the distribution. `parse` parses its quantities, `complain` makes errors.
    pub(super) fn read<E>(
        &self,
        parse: impl Fn(&str) -> Result<u64, E>,
        complain: impl Fn(&str) -> E,
    ) -> Result<Distribution, E> {
        let table = match self {
            Drawn::Constant(text) => return Ok(Distribution::Constant(parse(text)?)),
            Drawn::Table(table) => table,
        };
        match table {
            Table {
                uniform: Some(Pair([low, high])),
                exponential: None,
                pareto: None,
                normal: None,
                shape: None,
                deviation: None,
                between: None,
            } => Ok(Distribution::Uniform {
                low: parse(low)?,
                high: parse(high)?,
            }),
            Table {
                uniform: None,
                exponential: Some(mean),
                pareto: None,
                normal: None,
                shape: None,
                deviation: None,
                between: None,
            } => Ok(Distribution::Exponential { mean: parse(mean)? }),
            Table {
                uniform: None,
                exponential: None,
                pareto: Some(mean),
                normal: None,
                shape: Some(shape),
                deviation: None,
                between: None,
            } => Ok(Distribution::Pareto {
                mean: parse(mean)?,
                shape: *shape,
            }),
            Table {
                uniform: None,
                exponential: None,
                pareto: None,
                normal: Some(mean),
                shape: None,
                deviation: Some(deviation),
                between: Some(Pair([low, high])),
            } => Ok(Distribution::Normal {
                mean: parse(mean)?,
                deviation: parse(deviation)?,
                low: parse(low)?,
                high: parse(high)?,
            }),
            _ => Err(complain(
                "a distribution must be one of `uniform`, `exponential`, `pareto` with `shape`, or `normal` \
                 with `deviation` and `between`",
            )),
        }
    }
}
