//! The table of all disciplines: what each is for, what its parameters are, and how it is made from them.
//!
//! One entry per discipline, in one file per family. A parameter names a field of the discipline's own `Config`, from
//! which its default is read: no default is written down twice.

mod queues;

use std::any::Any;
use std::ops::RangeInclusive;

use fairgate::{ConfigError, Discipline};

use crate::suggest;
use crate::value::{Field, Unit, Value};

/// All disciplines, families together, in the order of the documentation.
pub fn registry() -> &'static [&'static dyn Entry] {
    REGISTRY
}

static REGISTRY: &[&dyn Entry] = &[&queues::FIFO];

/// The entry of the discipline that users configure as `name`.
pub fn entry(name: &str) -> Option<&'static dyn Entry> {
    REGISTRY.iter().copied().find(|entry| entry.about().name == name)
}

/// The entry whose name `name` was probably meant to be.
pub fn closest_entry(name: &str) -> Option<&'static dyn Entry> {
    let names = REGISTRY.iter().map(|entry| entry.about().name);
    suggest::similar(name, names).and_then(entry)
}

/// A family of disciplines: a folder of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Queues without flows.
    Queues,
    /// Active queue management over one queue.
    Aqm,
    /// Fair queueing by rounds.
    Rounds,
}

impl Family {
    /// The name of the folder.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Queues => "queues",
            Family::Aqm => "aqm",
            Family::Rounds => "rounds",
        }
    }
}

/// Which disciplines a discipline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// None: it queues packets itself.
    None,
    /// One, written as `inner`.
    Inner,
    /// One in each class, written as `[[class]]`.
    Classes,
}

impl Children {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Children::None => "classless",
            Children::Inner => "inner",
            Children::Classes => "classes",
        }
    }
}

/// What a user should know of a discipline.
#[derive(Debug)]
pub struct About {
    /// The name that users configure it by.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// What it is, in one line.
    pub summary: &'static str,
    /// When to use it, in one line.
    pub when: &'static str,
    /// Which disciplines it holds.
    pub children: Children,
}

/// A parameter of a discipline with the settings `C`.
pub(crate) struct Parameter<C> {
    about: ParameterInfo,
    field: fn(&mut C) -> &mut dyn Field,
}

/// What a user should know of a parameter.
#[derive(Clone, Debug)]
pub struct ParameterInfo {
    /// The name that users set it by.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The numbers that it may be, in the base unit. Of no meaning for flags and words.
    pub range: RangeInclusive<u64>,
    /// Whether there is no default.
    pub required: bool,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

impl ParameterInfo {
    /// What the parameter may be, for people: `1 to 65536`.
    pub fn allowed(&self) -> String {
        self.unit.show_range(&self.range)
    }
}

impl<C> Parameter<C> {
    /// A parameter with a range.
    const fn new(
        name: &'static str,
        unit: Unit,
        range: RangeInclusive<u64>,
        doc: &'static str,
        field: fn(&mut C) -> &mut dyn Field,
    ) -> Parameter<C> {
        let about = ParameterInfo {
            name,
            unit,
            range,
            required: false,
            doc,
        };
        Parameter { about, field }
    }

    /// A parameter of words or flags, which has no range.
    const fn word(
        name: &'static str,
        unit: Unit,
        doc: &'static str,
        field: fn(&mut C) -> &mut dyn Field,
    ) -> Parameter<C> {
        Parameter::new(name, unit, 0..=u64::MAX, doc, field)
    }
}

/// An entry of the registry.
struct Description<C: 'static> {
    about: About,
    parameters: &'static [Parameter<C>],
    /// The settings that parameters left out have.
    start: fn() -> C,
    build: fn(C, Parts) -> Result<Box<dyn Discipline>, ConfigError>,
}

/// What a discipline is built from besides its settings.
pub struct Parts {
    /// The disciplines of its classes, by their minor numbers; of its `inner` as number 1.
    pub children: Vec<(u16, Box<dyn Discipline>)>,
    /// The seed of all its random choices.
    pub seed: u64,
}

/// A setting: the parameter's place in [`Entry::parameters`], and its value.
pub type Setting = (usize, Value);

/// A discipline as the registry knows it.
pub trait Entry: Sync {
    /// Name, family, use.
    fn about(&self) -> &About;

    /// Its parameters.
    fn parameters(&self) -> Vec<&ParameterInfo>;

    /// The default of the parameter at `place`, read from the discipline's own default settings. Of no meaning for a
    /// required parameter.
    fn default_of(&self, place: usize) -> Value;

    /// Whether the parameter at `place` may be `"none"`.
    fn is_optional(&self, place: usize) -> bool;

    /// The discipline's own `Config` with these settings, the rest at their defaults.
    fn config(&self, settings: &[Setting]) -> Box<dyn Any>;

    /// The discipline, ready to use.
    ///
    /// # Errors
    /// If the discipline refuses the settings.
    fn build(&self, settings: &[Setting], parts: Parts) -> Result<Box<dyn Discipline>, ConfigError>;
}

impl<C: 'static> Description<C> {
    fn settle(&self, settings: &[Setting]) -> C {
        let mut config = (self.start)();
        for (place, value) in settings {
            (self.parameters[*place].field)(&mut config).write(value);
        }
        config
    }
}

impl<C: 'static> Entry for Description<C> {
    fn about(&self) -> &About {
        &self.about
    }

    fn parameters(&self) -> Vec<&ParameterInfo> {
        self.parameters.iter().map(|parameter| &parameter.about).collect()
    }

    fn default_of(&self, place: usize) -> Value {
        (self.parameters[place].field)(&mut (self.start)()).read()
    }

    fn is_optional(&self, place: usize) -> bool {
        (self.parameters[place].field)(&mut (self.start)()).is_optional()
    }

    fn config(&self, settings: &[Setting]) -> Box<dyn Any> {
        Box::new(self.settle(settings))
    }

    fn build(&self, settings: &[Setting], parts: Parts) -> Result<Box<dyn Discipline>, ConfigError> {
        (self.build)(self.settle(settings), parts)
    }
}
