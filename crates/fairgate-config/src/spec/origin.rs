//! Where a tree stands in the text that it was read from, for errors that are found after it was checked.

use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;

use super::check::id_of;
use super::draft::{Draft, Entry as Written, FilterDraft};
use super::filters;
use crate::error::Problem;
use crate::registry::Entry;

/// The places of one discipline's settings and filters. It is no part of what the tree is: equal trees may stand anywhere.
#[derive(Clone)]
pub(crate) struct Origin {
    source: Arc<NamedSource<String>>,
    /// The discipline's name.
    discipline: Range<usize>,
    /// The values that are given.
    settings: Vec<(&'static str, Range<usize>)>,
    /// Of each filter, in their order.
    filters: Vec<FilterOrigin>,
    /// Of each class that is given to hosts: its number, and what it is given by.
    each: Vec<(u16, Range<usize>)>,
}

#[derive(Clone)]
struct FilterOrigin {
    header: Range<usize>,
    conditions: Vec<(&'static str, Range<usize>)>,
}

impl Origin {
    pub(crate) fn of(
        source: &Arc<NamedSource<String>>,
        entry: &dyn Entry,
        draft: &Draft,
        keys: &[&Written],
    ) -> Origin {
        let parameters = entry.parameters();
        let named = |(key, given): &&Written| {
            let info = parameters.iter().find(|info| info.name == key.get_ref())?;
            Some((info.name, given.span()))
        };
        let filter = |filter: &FilterDraft| FilterOrigin {
            header: filter.header.clone(),
            conditions: filters::places(filter),
        };
        let each = |class: &Draft| Some((id_of(class)?, class.setting("each")?.1.span()));
        let discipline = draft.discipline.as_ref().map(toml::Spanned::span);
        Origin {
            source: Arc::clone(source),
            discipline: discipline.unwrap_or(draft.header.clone()),
            settings: keys.iter().filter_map(named).collect(),
            filters: draft.filters.iter().map(filter).collect(),
            each: draft.classes.iter().filter_map(each).collect(),
        }
    }

    /// Of a tree that was never written.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Origin {
        Origin {
            source: Arc::new(NamedSource::new("nowhere", String::new())),
            discipline: 0..0,
            settings: Vec::new(),
            filters: Vec::new(),
            each: Vec::new(),
        }
    }

    /// The value of a parameter; the discipline, where the value is the default.
    pub(crate) fn parameter(&self, name: &str) -> Range<usize> {
        let given = self.settings.iter().find(|(other, _)| *other == name);
        given.map_or(self.discipline.clone(), |(_, place)| place.clone())
    }

    /// A condition of a filter, counted from 0; the filter, where it has no such condition.
    pub(crate) fn condition(&self, filter: usize, name: &str) -> Range<usize> {
        let Some(filter) = self.filters.get(filter) else {
            return self.discipline.clone();
        };
        let given = filter.conditions.iter().find(|(other, _)| *other == name);
        given.map_or(filter.header.clone(), |(_, place)| place.clone())
    }

    /// What a class is given to hosts by.
    pub(crate) fn each(&self, class: u16) -> Range<usize> {
        let given = self.each.iter().find(|(minor, _)| *minor == class);
        given.map_or(self.discipline.clone(), |(_, place)| place.clone())
    }

    /// A problem at a place of this text.
    pub(crate) fn problem(&self, at: Range<usize>, message: String, label: String, help: String) -> Problem {
        Problem::new(&self.source, at, message, label, help)
    }
}
