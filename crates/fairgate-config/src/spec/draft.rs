//! A tree as written: its shape is known, its meaning not yet.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::given::{Given, in_order, spanned_from_toml};
use crate::error::Problems;

/// A discipline as written.
pub(crate) struct Draft {
    pub(crate) discipline: Spanned<String>,
    pub(crate) settings: Vec<(Spanned<String>, Spanned<Given>)>,
    pub(crate) inner: Option<(Range<usize>, Box<Draft>)>,
}

impl Draft {
    /// Reads a table. `header` is the place to point at where something is missing.
    pub(crate) fn from_toml(
        header: Range<usize>,
        table: &DeTable<'_>,
        problems: &mut Problems,
    ) -> Option<Draft> {
        let mut discipline = None;
        let mut settings = Vec::new();
        let mut inner = None;
        let mut broken = false;
        for (key, value) in in_order(table) {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("discipline", DeValue::String(name)) => {
                    discipline = Some(Spanned::new(value.span(), name.to_string()));
                }
                ("discipline", other) => {
                    let message = format!("`discipline` is {}, but must be text", other.type_str());
                    problems.add(value.span(), message, "expected a name", SEE_LIST);
                    broken = true;
                }
                ("inner", DeValue::Table(table)) => match Draft::from_toml(key.span(), table, problems) {
                    Some(draft) => inner = Some((key.span(), Box::new(draft))),
                    None => broken = true,
                },
                ("inner", other) => {
                    let message = format!("`inner` is {}, but must be a table", other.type_str());
                    let help = "write inner = { discipline = \"fq_codel\" }";
                    problems.add(value.span(), message, "expected a table", help);
                    broken = true;
                }
                (name, _) => {
                    settings.push((
                        Spanned::new(key.span(), name.to_owned()),
                        spanned_from_toml(value),
                    ));
                }
            }
        }
        if discipline.is_none() && !broken {
            let message = "no `discipline` is named";
            let help = format!("add a line like discipline = \"fifo\"; {SEE_LIST}");
            problems.add(header, message, "`discipline` is missing here", help);
        }
        match (discipline, broken) {
            (Some(discipline), false) => Some(Draft {
                discipline,
                settings,
                inner,
            }),
            _ => None,
        }
    }
}

/// Where to look names up.
pub(crate) const SEE_LIST: &str = "`fairgate list` shows all disciplines";
