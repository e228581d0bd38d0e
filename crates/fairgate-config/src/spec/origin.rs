//! The location of a tree in its text, for errors that are found after the check.

use std::ops::Range;
use std::sync::Arc;

use miette::NamedSource;

use super::draft::{Draft, FilterDraft, Written};
use super::filters;
use crate::error::Problem;
use crate::registry::{Entry, ParameterInfo};

/// A key, and the location of its value.
type Location = (&'static str, Range<usize>);

/// The locations of one discipline's settings and filters. Equal trees may have different origins.
#[derive(Clone)]
pub(crate) struct Origin {
    source: Arc<NamedSource<String>>,
    /// The location of the discipline's name.
    discipline: Range<usize>,
    /// The settings.
    settings: Vec<Location>,
    /// The filters, in their order.
    filters: Vec<FilterOrigin>,
    /// The number of each class, and the settings beside it.
    classes: Vec<(u32, Vec<Location>)>,
}

#[derive(Clone)]
struct FilterOrigin {
    header: Range<usize>,
    conditions: Vec<Location>,
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
        let location = |known: Option<&'static str>, (_, given): &Written| Some((known?, given.span()));
        let named = |parameters: &[ParameterInfo], written: &Written| {
            let name = written.0.get_ref();
            let info = parameters.iter().find(|info| info.name == name);
            location(info.map(|info| info.name), written)
        };
        let filter = |filter: &FilterDraft| FilterOrigin {
            header: filter.header.clone(),
            conditions: filters::condition_locations(filter),
        };
        let class = |class: &Draft| {
            let each = class
                .setting("each")
                .and_then(|each| location(Some("each"), each));
            let written = class.settings.iter();
            let settings = written
                .filter_map(|written| named(&of_classes, written))
                .chain(each);
            Some((class.id()?, settings.collect()))
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

    /// Returns the origin of a tree that was not read from a text.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Origin {
        Origin::whole(Arc::new(NamedSource::new("nowhere", String::new())))
    }

    /// Returns the origin of a tree that a program has made of this text: errors point at its beginning.
    pub(crate) fn whole(source: Arc<NamedSource<String>>) -> Origin {
        Origin {
            source,
            discipline: 0..0,
            settings: Vec::new(),
            filters: Vec::new(),
            classes: Vec::new(),
        }
    }

    /// Returns the location of the discipline's name.
    pub(crate) fn discipline(&self) -> Range<usize> {
        self.discipline.clone()
    }

    /// Returns the location of a parameter's value, or of the discipline if the value is the default.
    pub(crate) fn parameter(&self, name: &str) -> Range<usize> {
        let given = self.settings.iter().find(|(other, _)| *other == name);
        given.map_or(self.discipline.clone(), |(_, location)| location.clone())
    }

    /// Returns the location of a condition of a filter (counted from 0), or of the filter if it has no such
    /// condition.
    pub(crate) fn condition(&self, filter: usize, name: &str) -> Range<usize> {
        let Some(filter) = self.filters.get(filter) else {
            return self.discipline.clone();
        };
        let given = filter.conditions.iter().find(|(other, _)| *other == name);
        given.map_or(filter.header.clone(), |(_, location)| location.clone())
    }

    /// Returns the location of a class's parameter, or of its key `each`.
    pub(crate) fn class_parameter(&self, class: u32, name: &str) -> Range<usize> {
        let of_class = self.classes.iter().find(|(minor, _)| *minor == class);
        let given = of_class.and_then(|(_, settings)| settings.iter().find(|(other, _)| *other == name));
        given.map_or(self.discipline.clone(), |(_, location)| location.clone())
    }

    /// Returns a problem at a location in this text.
    pub(crate) fn problem(&self, at: Range<usize>, message: String, label: String, help: String) -> Problem {
        Problem::new(&self.source, at, message, label, help)
    }
}
