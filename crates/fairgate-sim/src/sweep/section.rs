//! The section `[sweep]` as it is written.

use std::fmt;

use fairgate_config::{Document, FileError};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::{Spanned, Value};

use super::Axis;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) seeds: Option<Spanned<Seeds>>,
    pub(super) measure: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) grid: Grid,
}

/// How many seeds, or which ones.
pub(super) enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seeds, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seeds, such as 5, or a list of them, such as [1, 2, 7]")
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Seeds, E> {
                let error = |_| E::invalid_value(serde::de::Unexpected::Signed(count), &self);
                u64::try_from(count).map(Seeds::Count).map_err(error)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Seeds, A::Error> {
                let mut list = Vec::new();
                while let Some(seed) = values.next_element::<u64>()? {
                    list.push(seed);
                }
                Ok(Seeds::List(list))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Lists of values by path. Tables and points in keys are the same: `queue.wan.target = [...]` and
/// `"queue.wan.target" = [...]`.
#[derive(Default)]
pub(super) struct Grid(Vec<(Spanned<String>, Spanned<Branch>)>);

enum Branch {
    Values(Vec<Spanned<Value>>),
    Below(Grid),
    /// What is neither a list nor a table.
    Single,
}

impl Grid {
    /// Returns all paths with their values. A table is where its first key is, so the order is that of
    /// Python's reader of TOML.
    pub(super) fn axes(&self, document: &Document) -> Result<Vec<Axis>, FileError> {
        let mut axes = Vec::new();
        self.collect("", document, &mut axes)?;
        Ok(axes)
    }

    fn collect(&self, above: &str, document: &Document, axes: &mut Vec<Axis>) -> Result<(), FileError> {
        let mut entries: Vec<&(Spanned<String>, Spanned<Branch>)> = self.0.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, branch) in entries {
            let path = match above {
                "" => key.get_ref().clone(),
                above => format!("{above}.{}", key.get_ref()),
            };
            let wrong = |what: &str| {
                document.error(
                    branch.span(),
                    format!("the values of `{path}` are {what}, but must be a list with at least one"),
                    format!("write a list: {path} = [..., ...]"),
                )
            };
            match branch.get_ref() {
                Branch::Below(grid) => grid.collect(&path, document, axes)?,
                Branch::Single => return Err(wrong("a single value")),
                Branch::Values(values) if values.is_empty() => return Err(wrong("an empty list")),
                Branch::Values(values) => axes.push(Axis {
                    path,
                    values: values.iter().map(|value| value.get_ref().clone()).collect(),
                    spans: values.iter().map(Spanned::span).collect(),
                }),
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Grid, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Grid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Grid, A::Error> {
                let mut grid = Grid::default();
                while let Some(entry) = entries.next_entry()? {
                    grid.0.push(entry);
                }
                Ok(grid)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Branch, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Branch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Branch, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = values.next_element()? {
                    list.push(value);
                }
                Ok(Branch::Values(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Branch, A::Error> {
                let mut grid = Grid::default();
                while let Some(entry) = entries.next_entry()? {
                    grid.0.push(entry);
                }
                Ok(Branch::Below(grid))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Branch, E> {
                Ok(Branch::Single)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Branch, E> {
                Ok(Branch::Single)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Branch, E> {
                Ok(Branch::Single)
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Branch, E> {
                Ok(Branch::Single)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
