//! A tree as written. Its shape is known, but names and values are not checked.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::given::{Given, class_number, in_order, spanned_from_toml};
use crate::error::Problems;

/// A key and its value, with their locations in the text.
pub type Written = (Spanned<String>, Spanned<Given>);

/// A discipline as written, or a class with the discipline in it.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The location that an error points at if something is missing.
    pub header: Range<usize>,
    /// The name of the discipline.
    pub discipline: Option<Spanned<String>>,
    /// All keys without a field of their own here.
    pub settings: Vec<Written>,
    /// What a shaper holds.
    pub inner: Option<Box<Draft>>,
    /// Its classes, in the order of the text.
    pub classes: Vec<Draft>,
    /// Its filters, in the order in which they are tried.
    pub filters: Vec<FilterDraft>,
    /// If the language is tc's, the handle of the qdisc, 0 for none: messages name a class as tc does.
    pub qdisc: Option<u16>,
    /// Whether something was reported and left out. Then nothing is reported that may follow from this.
    pub is_broken: bool,
    /// Whether a setting was reported and left out. Then none is reported as missing.
    pub is_incomplete: bool,
}

/// A filter as written.
#[derive(Clone, Debug)]
pub struct FilterDraft {
    /// The location that an error points at if something is missing.
    pub header: Range<usize>,
    /// Its class and its conditions.
    pub entries: Vec<Written>,
}

impl Draft {
    /// Reads a table. What has the wrong shape is reported and left out.
    pub(crate) fn from_toml(header: Range<usize>, table: &DeTable<'_>, problems: &mut Problems) -> Draft {
        let before = problems.count();
        let mut draft = Draft {
            header,
            ..Draft::default()
        };
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                "discipline" => match value.get_ref() {
                    DeValue::String(name) => {
                        draft.discipline = Some(Spanned::new(value.span(), name.to_string()));
                    }
                    other => {
                        let message = format!("`discipline` is {}, but must be text", other.type_str());
                        problems.add(value.span(), message, "expected a name", SEE_LIST);
                    }
                },
                "inner" => match value.get_ref() {
                    DeValue::Table(inner) => {
                        draft.inner = Some(Box::new(Draft::from_toml(key.span(), inner, problems)));
                    }
                    other => {
                        let message = format!("`inner` is {}, but must be a table", other.type_str());
                        let help = "write inner = { discipline = \"fq_codel\" }";
                        problems.add(value.span(), message, "expected a table", help);
                    }
                },
                "class" => {
                    for (header, class) in tables(key.get_ref(), value, problems) {
                        draft.classes.push(Draft::from_toml(header, class, problems));
                    }
                }
                "filter" => {
                    draft.filters = tables(key.get_ref(), value, problems)
                        .into_iter()
                        .map(|(header, filter)| FilterDraft {
                            header,
                            entries: entries(filter),
                        })
                        .collect();
                }
                _ => draft.settings.push(entry((key, value))),
            }
        }
        draft.is_broken = problems.count() > before;
        draft
    }

    /// Returns the class number for messages, in the author's notation.
    pub(crate) fn class_name(&self, minor: u32) -> String {
        match self.qdisc {
            None => minor.to_string(),
            Some(0) => format!(":{minor:x}"),
            Some(handle) => format!("{handle:x}:{minor:x}"),
        }
    }

    /// Returns the number of the class, if it is valid.
    pub(super) fn id(&self) -> Option<u32> {
        let (_, given) = self.setting("id")?;
        class_number("id", given).ok()
    }

    /// Returns the setting `name`.
    pub(crate) fn setting(&self, name: &str) -> Option<&Written> {
        self.settings.iter().find(|(key, _)| key.get_ref() == name)
    }
}

fn entry((key, value): (&Spanned<toml::de::DeString<'_>>, &Spanned<DeValue<'_>>)) -> Written {
    (
        Spanned::new(key.span(), key.get_ref().to_string()),
        spanned_from_toml(value),
    )
}

fn entries(table: &DeTable<'_>) -> Vec<Written> {
    in_order(table).into_iter().map(entry).collect()
}

/// Returns the tables of an array of tables, with their locations.
fn tables<'t, 'i>(
    key: &str,
    value: &'t Spanned<DeValue<'i>>,
    problems: &mut Problems,
) -> Vec<(Range<usize>, &'t DeTable<'i>)> {
    let mut found = Vec::new();
    let DeValue::Array(elements) = value.get_ref() else {
        let message = format!(
            "`{key}` is {}, but must be a list of tables",
            value.get_ref().type_str()
        );
        let help = format!("begin each {key} with a line in double brackets, like [[queue.wan.{key}]]");
        problems.add(value.span(), message, "expected a list of tables", help);
        return found;
    };
    for element in elements {
        match element.get_ref() {
            DeValue::Table(table) => found.push((element.span(), table)),
            other => {
                let message = format!("a {key} is {}, but must be a table", other.type_str());
                let help =
                    format!("write {key} = [{{ ... }}, {{ ... }}], or a line in double brackets for each");
                problems.add(element.span(), message, "expected a table", help);
            }
        }
    }
    found
}

/// The remedy that says where all names are listed.
pub(crate) const SEE_LIST: &str = "`fairgate list` shows all disciplines";
