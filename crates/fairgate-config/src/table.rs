//! Tables of a file that a [`Section`] describes: their keys are described as parameters of disciplines are.

use std::ops::Range;

use fairgate::registry::{Field, Parameter, ParameterInfo, Section, Shape, Smallest, Unit};
use toml::Spanned;

use crate::error::Problems;
use crate::spec::{Given, read_value};
use crate::suggest;

/// A table as the file has it, with the places of its keys.
#[derive(Clone, Debug, Default)]
pub struct Table {
    place: Range<usize>,
    /// In the order of the file.
    entries: Vec<(Spanned<String>, Spanned<Given>)>,
}

impl Table {
    /// Returns the value as a table, if it is one.
    pub(crate) fn of(value: &Spanned<Given>) -> Option<Table> {
        match value.get_ref() {
            Given::Table(entries) => Some(Table {
                place: value.span(),
                entries: entries.clone(),
            }),
            _ => None,
        }
    }

    /// Returns where the table is: its head, or its braces.
    pub fn span(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Returns where the value of a key is written, if it is.
    pub fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.value(key).map(Spanned::span)
    }

    /// Returns the text of a key and its place, if it is written.
    pub fn text(&self, key: &str) -> Option<Spanned<String>> {
        let value = self.value(key)?;
        match value.get_ref() {
            Given::Text(text) => Some(Spanned::new(value.span(), text.clone())),
            _ => None,
        }
    }

    /// Returns where each value of a list is written.
    pub fn spans_in(&self, key: &str) -> Vec<Range<usize>> {
        match self.value(key).map(Spanned::get_ref) {
            Some(Given::List(values)) => values.iter().map(Spanned::span).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns where the first key is, or the table if it has none.
    pub(crate) fn first_span(&self) -> Range<usize> {
        let first = self.entries.first();
        first.map_or_else(|| self.span(), |(_, value)| value.span())
    }

    /// Returns a table within this one, if it is there.
    pub fn table(&self, key: &str) -> Option<Table> {
        self.value(key).and_then(Table::of)
    }

    /// Returns the tables of a list within this one: those of [`Shape::List`].
    pub fn list(&self, key: &str) -> Vec<Table> {
        match self.value(key).map(Spanned::get_ref) {
            Some(Given::List(values)) => values.iter().filter_map(Table::of).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the value that stands in the place of a table, if one does: of a section with a shorthand of
    /// this unit.
    pub fn plain<F: Field + Smallest>(&self, key: &str, unit: Unit) -> Option<F> {
        let read = read_value(&ParameterInfo::plain("", unit, ""), self.value(key)?);
        let mut field = F::SMALLEST;
        field.write(&read.ok()?);
        Some(field)
    }

    /// Returns the keys and the values, in the order of the file.
    pub fn entries(&self) -> &[(Spanned<String>, Spanned<Given>)] {
        &self.entries
    }

    /// Returns the tables within this one, with their names: those of [`Shape::Named`].
    pub fn tables(&self) -> impl Iterator<Item = (&str, Table)> {
        let entries = self.entries.iter();
        entries.filter_map(|(key, value)| Some((key.get_ref().as_str(), Table::of(value)?)))
    }

    /// Returns `settings` with the values that are written. The table must have been checked: what is not
    /// allowed is left out.
    pub fn read<S>(&self, parameters: &[Parameter<S>], mut settings: S) -> S {
        for (key, given) in &self.entries {
            let described = parameters
                .iter()
                .find(|parameter| parameter.name() == key.get_ref());
            let Some(parameter) = described else { continue };
            if let Ok(value) = read_value(&parameter.info(&mut settings), given) {
                parameter.field(&mut settings, 0).write(&value);
            }
        }
        settings
    }

    /// Checks the table and those within it as `section` describes them: each key is known, each value has
    /// the unit and the range of its key, and none that must be there is missing. `path` is the name of the
    /// table in messages.
    pub fn check(&self, section: &Section, path: &str, problems: &mut Problems) {
        if section.is_open() {
            return;
        }
        let keys = section.keys();
        let within = section.within();
        for (key, given) in &self.entries {
            if let Some(inner) = within.iter().find(|inner| inner.name() == key.get_ref()) {
                check(given, inner, path, problems);
            } else if let Some(info) = keys.iter().find(|info| info.name == key.get_ref()) {
                if let Err(mistake) = read_value(info, given) {
                    mistake.report(problems);
                }
            } else {
                let names = keys.iter().map(|info| info.name);
                let names = names.chain(within.iter().map(Section::name));
                problems.add(
                    key.span(),
                    format!("`{}` is no key of [{path}]", key.get_ref()),
                    "not known here",
                    suggest::remedy(key.get_ref(), "known here", names),
                );
            }
        }
        let keys = keys.iter().filter(|info| info.default.is_none());
        let keys = keys.map(|info| (info.name, info.remedy()));
        let tables = within.iter().filter(|inner| inner.is_required());
        let tables = tables.map(|inner| {
            let keys = inner.keys().into_iter().filter(|info| info.default.is_none());
            let keys: Vec<String> = keys.map(|info| format!("{} = ...", info.name)).collect();
            let in_braces = || format!("write its keys in braces: {{ {} }}", keys.join(", "));
            let remedy = inner.shorthand().map_or_else(in_braces, |info| info.remedy());
            (inner.name(), remedy)
        });
        for (name, remedy) in keys.chain(tables).filter(|(name, _)| self.value(name).is_none()) {
            problems.add(
                self.span(),
                format!("`{name}` is missing"),
                format!("must have `{name}`"),
                format!("add a line like {name} = ..., and {remedy}"),
            );
        }
    }

    fn value(&self, key: &str) -> Option<&Spanned<Given>> {
        let (_, value) = self.entries.iter().find(|(known, _)| known.get_ref() == key)?;
        Some(value)
    }
}

/// Checks a value that must be as `section` describes it, with all tables within it. `outer` is the name of
/// the table around it, or empty.
pub(crate) fn check(value: &Spanned<Given>, section: &Section, outer: &str, problems: &mut Problems) {
    let path = match outer {
        "" => section.name().to_owned(),
        outer => format!("{outer}.{}", section.name()),
    };
    let (rule, help) = match section.shape() {
        Shape::One if outer.is_empty() => ("a table", format!("begin it with a line [{path}]")),
        Shape::One => (
            "a table",
            format!("write it in braces, {{ key = value }}, or begin it with a line [{path}]"),
        ),
        Shape::Named => (
            "tables with names",
            format!("begin each with a line like [{path}.NAME]"),
        ),
        Shape::List => ("a list of tables", format!("begin each with a line [[{path}]]")),
    };
    let (is_of_shape, tables): (bool, Vec<(String, &Spanned<Given>)>) =
        match (section.shape(), value.get_ref()) {
            (Shape::Named, Given::Table(entries)) => {
                let named = entries.iter();
                let named = named.map(|(name, value)| (format!("{path}.{}", name.get_ref()), value));
                (true, named.collect())
            }
            (Shape::List, Given::List(values)) => {
                (true, values.iter().map(|value| (path.clone(), value)).collect())
            }
            (shape, _) => (shape == Shape::One, vec![(path, value)]),
        };
    for (path, value) in tables {
        match (Table::of(value).filter(|_| is_of_shape), section.shorthand()) {
            (Some(table), _) => table.check(section, &path, problems),
            (None, Some(info)) => {
                if let Err(mut mistake) = read_value(&info, value) {
                    if !matches!(value.get_ref(), Given::Text(_)) {
                        let end = if mistake.help.ends_with('.') { "" } else { "." };
                        mistake.help.push_str(end);
                        mistake.help.push_str(" It may also be a table, { key = value }");
                    }
                    mistake.report(problems);
                }
            }
            (None, None) => {
                let message = format!("`{path}` is {}, but must be {rule}", value.get_ref().type_name());
                problems.add(value.span(), message, format!("expected {rule}"), help.clone());
            }
        }
    }
}
