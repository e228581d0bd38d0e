//! The registry: all disciplines that a program offers, with their parameters, and the sections of files that
//! it reads, with their keys.
//!
//! A discipline's [`Description`] is a `static` next to its `Config`. It describes each parameter once: name,
//! unit, range, meaning, and the field of the `Config` that holds it. Constructors check ranges with it
//! ([`check_ranges`]). Configuration files, command lines and tables are parsed and printed with it.
//!
//! A [`Registry`] is a value. A program with its own discipline creates a registry with all built-in
//! disciplines and adds its own:
//!
//! ```
//! use fairgate::queues::fifo::{Config, Fifo, PARAMETERS};
//! use fairgate::registry::{About, Description, Registry};
//!
//! static DESCRIPTION: Description<Config> = Description::new(
//!     About::new("my_fifo", "The queue of this example", "Where fifo is meant."),
//!     PARAMETERS,
//!     |_| Config::default(),
//!     |config, _| Ok(Box::new(Fifo::node(config)?)),
//! );
//!
//! let mut registry = Registry::builtin();
//! registry.add(&DESCRIPTION)?;
//! assert!(registry.entries("my_fifo").next().is_some());
//! assert!(registry.add(&DESCRIPTION).is_err());
//! # Ok::<(), fairgate::registry::NameTaken>(())
//! ```

mod description;
mod entry;
mod longest;
mod parameter;
mod section;
mod settings;
pub mod tree;
mod unit;
pub mod units;
mod value;

use alloc::vec::Vec;

use thiserror::Error;

pub use crate::words;
pub use description::{Build, Check, Description, Placing};
pub use entry::{About, Children, Entry, Family, PARENT, Parts, Tables};
pub use longest::Longest;
pub use parameter::{Bound, Bucket, Lens, Parameter, ParameterInfo, check_class_ranges, check_ranges};
pub use section::{Section, Shape};
pub use settings::{ClassSettings, Setting, Settings};
pub use tree::{BuildError, Described};
pub use unit::Unit;
pub use units::UnitError;
pub use value::{Field, Smallest, Value, misfit};

/// All disciplines that a program offers, and the sections of files that it reads.
#[derive(Clone, Debug)]
pub struct Registry {
    /// Entries with the same name are next to each other. The one without classes is first.
    entries: Vec<&'static dyn Entry>,
    sections: Vec<&'static Section>,
}

/// A discipline can't be added because its name is taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is already a discipline `{name}`; give this one another name")]
pub struct NameTaken {
    /// The name.
    pub name: &'static str,
}

impl Registry {
    /// Returns a registry of `entries`. Entries with the same name are next to each other, the one without
    /// classes first.
    pub(crate) fn of(entries: &[&'static dyn Entry]) -> Registry {
        Registry {
            entries: entries.to_vec(),
            sections: Vec::new(),
        }
    }

    /// Adds sections. One with the name of another takes its place.
    #[must_use]
    pub fn with_sections(mut self, sections: impl IntoIterator<Item = &'static Section>) -> Registry {
        for section in sections {
            self.sections.retain(|other| other.name() != section.name());
            self.sections.push(section);
        }
        self
    }

    /// Returns the sections, in the order in which they were added. There are none in
    /// [`Registry::builtin`]: the library reads no files.
    pub fn sections(&self) -> impl ExactSizeIterator<Item = &'static Section> {
        self.sections.iter().copied()
    }

    /// Adds a discipline. Two disciplines can have the same name if exactly one of them has classes. The one
    /// with classes is used if the configuration gives classes.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
    pub fn add(&mut self, entry: &'static dyn Entry) -> Result<(), NameTaken> {
        let name = entry.about().name;
        let has_classes = |entry: &dyn Entry| entry.about().children.are_classes();
        let is_same = |other: &&dyn Entry| other.about().name == name;
        let Some(index) = self.entries.iter().position(is_same) else {
            self.entries.push(entry);
            return Ok(());
        };
        if self
            .entries(name)
            .any(|other| has_classes(other) == has_classes(entry))
        {
            return Err(NameTaken { name });
        }
        self.entries
            .insert(index + usize::from(has_classes(entry)), entry);
        Ok(())
    }

    /// Returns all disciplines.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'static dyn Entry> {
        self.entries.iter().copied()
    }

    /// Returns the disciplines with the name `name`. There are two if one has classes and the other does not
    /// (`drr`). The one without classes comes first.
    pub fn entries(&self, name: &str) -> impl Iterator<Item = &'static dyn Entry> {
        self.iter().filter(move |entry| entry.about().name == name)
    }

    /// Returns the names of all disciplines, each once.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let mut last = "";
        self.iter().filter_map(move |entry| {
            let name = entry.about().name;
            (core::mem::replace(&mut last, name) != name).then_some(name)
        })
    }
}

#[cfg(test)]
mod tests;
