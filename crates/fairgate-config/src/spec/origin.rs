//! Where a tree stands in the text that it was read from, for errors that are found after it was checked.

use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;

use super::check::id_of;
use super::draft::{Draft, FilterDraft, Written};
use super::filters;
use crate::error::Problem;
use crate::registry::{Entry, ParameterInfo};

/// A key, and the place of its value.
type Place = (&'static str, Range<usize>);

/// The places of one discipline's settings and filters. It is no part of what the tree is: equal trees may stand anywhere.
#[derive(Clone)]
pub(crate) struct Origin {
    source: Arc<NamedSource<String>>,
    /// The discipline's name.
    discipline: Range<usize>,
    /// The values that are given.
    settings: Vec<Place>,
    /// Of each filter, in their order.
    filters: Vec<FilterOrigin>,
    /// Of each class: its number, and the values that stand beside it.
    classes: Vec<(u16, Vec<Place>)>,
}

#[derive(Clone)]
struct FilterOrigin {
    header: Range<usize>,
    conditions: Vec<Place>,
}

impl Origin {
    pub(crate) fn of(
        source: &Arc<NamedSource<String>>,
        entry: &dyn Entry,
        draft: &Draft,
        keys: &[&Written],
    ) -> Origin {
        let parameters = entry.parameters();
        let of_classes = entry.class_parameters();
        let place = |known: Option<&'static str>, (_, given): &Written| Some((known?, given.span()));
        let named = |parameters: &[ParameterInfo], written: &Written| {
            let name = written.0.get_ref();
            let info = parameters.iter().find(|info| info.name == name);
            place(info.map(|info| info.name), written)
        };
        let filter = |filter: &FilterDraft| FilterOrigin {
            header: filter.header.clone(),
            conditions: filters::places(filter),
        };
        let class = |class: &Draft| {
            let each = class.setting("each").and_then(|each| place(Some("each"), each));
            let written = class.settings.iter();
            let settings = written
                .filter_map(|written| named(&of_classes, written))
                .chain(each);
            Some((id_of(class)?, settings.collect()))
        };
        let discipline = draft.discipline.as_ref().map(toml::Spanned::span);
        Origin {
            source: Arc::clone(source),
            discipline: discipline.unwrap_or(draft.header.clone()),
            settings: keys
                .iter()
                .filter_map(|written| named(&parameters, written))
                .collect(),
            filters: draft.filters.iter().map(filter).collect(),
            classes: draft.classes.iter().filter_map(class).collect(),
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
            classes: Vec::new(),
        }
    }

    /// The discipline's name.
    pub(crate) fn discipline(&self) -> Range<usize> {
        self.discipline.clone()
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

    /// The value of a class's parameter, or what the class is given to hosts by, `each`.
    pub(crate) fn class_parameter(&self, class: u16, name: &str) -> Range<usize> {
        let of_class = self.classes.iter().find(|(minor, _)| *minor == class);
        let given = of_class.and_then(|(_, settings)| settings.iter().find(|(other, _)| *other == name));
        given.map_or(self.discipline.clone(), |(_, place)| place.clone())
    }

    /// A problem at a place of this text.
    pub(crate) fn problem(&self, at: Range<usize>, message: String, label: String, help: String) -> Problem {
        Problem::new(&self.source, at, message, label, help)
    }
}
