//! The registry: all disciplines that a program offers, with their parameters.
//!
//! A discipline's [`Description`] is a `static` beside its `Config`. It states each parameter once: name,
//! unit, range, meaning, and the field of the `Config` that holds it. The constructor checks ranges by it
//! ([`check_ranges`]); configuration files, command lines and tables are read and shown by it.
//!
//! A [`Registry`] is a value. A program that has a discipline of its own takes all built-in disciplines and
//! adds it:
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

mod builtin;
mod description;
mod entry;
mod parameter;
mod settings;
mod unit;
pub mod units;
mod value;

use alloc::vec::Vec;

use thiserror::Error;

pub use crate::words;
pub use description::{Build, Description, Placing};
pub use entry::{About, Children, Entry, Family, Longest, PARENT, Parts};
pub use parameter::{Bound, Lens, Parameter, ParameterInfo, check_class_ranges, check_ranges};
pub use settings::{ClassSettings, Setting, Settings};
pub use unit::Unit;
pub use units::UnitError;
pub use value::{Field, Smallest, Value, misfit};

/// All disciplines that a program offers.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The entries of one name are next to each other, the one without classes first.
    entries: Vec<&'static dyn Entry>,
}

/// A discipline can't be added: its name is taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is already a discipline `{name}`; give this one another name")]
pub struct NameTaken {
    /// The name.
    pub name: &'static str,
}

impl Registry {
    /// All disciplines of this library, families together, in the order of the documentation.
    pub fn builtin() -> Registry {
        Registry {
            entries: builtin::ALL.to_vec(),
        }
    }

    /// Adds a discipline. Two may have one name if one of them holds classes and the other does not: which
    /// one is meant follows from whether classes are given.
    ///
    /// # Errors
    /// If there is a discipline of this name already.
    pub fn add(&mut self, entry: &'static dyn Entry) -> Result<(), NameTaken> {
        let name = entry.about().name;
        let has_classes = |entry: &dyn Entry| entry.about().children.are_classes();
        let is_same = |other: &&dyn Entry| other.about().name == name;
        let Some(index) = self.entries.iter().position(|other| is_same(&*other)) else {
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

    /// All disciplines.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'static dyn Entry> {
        self.entries.iter().copied()
    }

    /// The disciplines called `name`. There are two if one holds classes and the other does not (`drr`); the
    /// one without classes comes first.
    pub fn entries(&self, name: &str) -> impl Iterator<Item = &'static dyn Entry> {
        self.iter().filter(move |entry| entry.about().name == name)
    }

    /// The names of all disciplines, each once.
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
