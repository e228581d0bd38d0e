//! The checked description of a tree of disciplines.

mod apply;
mod check;
mod draft;
mod filters;
mod given;
mod inline;
mod memory;
mod names;
mod origin;
mod print;
mod refusals;
mod templates;
mod warnings;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use fairgate::classify::{Classifier, Template};
use fairgate::{ConfigError, Discipline};
use miette::NamedSource;
use thiserror::Error;

pub use apply::ApplyError;
#[cfg(test)]
pub(crate) use check::RESERVED_KEYS;
pub use check::check;
pub(crate) use check::check_with;
pub use draft::{Draft, FilterDraft, Written};
pub use given::Given;
pub(crate) use given::in_order;
#[cfg(test)]
pub(crate) use given::read as read_value;
pub(crate) use origin::Origin;
pub use refusals::Frame;

use crate::error::{FileError, Problems};
use crate::registry::Value;
use crate::registry::{ClassSettings, Entry, PARENT, ParameterInfo, Parts, Registry, Setting, Settings};

/// The class number of the one discipline that a shaper holds.
pub const INNER: u16 = 1;

/// A tree of disciplines that is known to be right: what has become a `Spec` can be built.
#[derive(Clone)]
pub struct Spec {
    pub(crate) entry: &'static dyn Entry,
    pub(crate) settings: Settings,
    /// One for each class, in their order (of a tree, for each class that no other names as its parent); or
    /// the inner one.
    pub(crate) children: Vec<Spec>,
    /// Where it was written. Two trees are equal wherever that is.
    pub(crate) origin: Origin,
}

/// A class within a [`Spec`].
#[derive(Debug)]
pub struct ClassSpec<'a> {
    /// Its number; an inner discipline is class 1.
    pub minor: u16,
    /// Of classes that are given to hosts, all of them; this one's number is the first.
    pub template: Option<&'a Template>,
    /// Its parameters and their values.
    pub parameters: Vec<(ParameterInfo, Value)>,
    /// What is in it; `None` of a class that has classes below it.
    pub tree: Option<&'a Spec>,
}

impl ClassSpec<'_> {
    /// How many classes there are with these parameters.
    pub fn count(&self) -> u16 {
        self.template.map_or(1, |template| template.count)
    }
}

/// A description that was checked and still can't be built.
#[derive(Clone, Debug, Error)]
#[error("can't build `{discipline}`: {source}")]
pub struct BuildError {
    /// The discipline at fault.
    pub discipline: &'static str,
    /// What it refuses.
    pub source: ConfigError,
}

impl Spec {
    /// Reads a tree of built-in disciplines on one line: a discipline and its settings, and after each `/`
    /// the discipline that it holds.
    ///
    /// ```
    /// let spec = fairgate_config::Spec::inline("fifo limit=1000")?;
    /// assert_eq!(spec.discipline(), "fifo");
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn inline(text: &str) -> Result<Spec, FileError> {
        Spec::inline_with(text, &Registry::builtin())
    }

    /// Reads a tree of this registry's disciplines on one line.
    ///
    /// # Errors
    /// If the line has mistakes; all of them are reported.
    pub fn inline_with(text: &str, registry: &Registry) -> Result<Spec, FileError> {
        let source = Arc::new(NamedSource::new("command line", text.to_owned()));
        let mut problems = Problems::new(source);
        match inline::parse(text, &mut problems).and_then(|draft| check_with(&draft, registry, &mut problems))
        {
            Some(spec) => problems.unless_any(spec),
            None => Err(problems.into_error()),
        }
    }

    /// The name of the tree's root.
    pub fn discipline(&self) -> &'static str {
        self.entry.about().name
    }

    /// Builds the tree. Each discipline gets a seed of its own, derived from `seed` and its place in the
    /// tree.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, BuildError> {
        let children = self
            .trees()
            .map(|(minor, child)| child.build(derive(seed, minor)))
            .collect::<Result<_, BuildError>>()?;
        self.entry
            .build(&self.settings, Parts::new(children, seed))
            .map_err(|source| BuildError {
                discipline: self.discipline(),
                source,
            })
    }

    /// The registry's entry of the tree's root.
    pub fn entry(&self) -> &'static dyn Entry {
        self.entry
    }

    /// The root's parameters and their values, those that were set and those at their defaults.
    pub fn parameters(&self) -> Vec<(ParameterInfo, Value)> {
        values(self.entry.parameters(), &self.settings.own)
    }

    /// Whether the root's parameter `name` was given. If not, it has its default.
    pub fn is_given(&self, name: &str) -> bool {
        let parameters = self.entry.parameters();
        let position = parameters.iter().position(|info| info.name == name);
        position.is_some_and(|position| self.settings.own.iter().any(|(given, _)| *given == position))
    }

    /// The `Config` of the root's discipline. Parameters that were not given have their defaults.
    ///
    /// # Errors
    /// Only if the discipline refuses what it accepted when the description was checked.
    pub fn config(&self) -> Result<Box<dyn Any>, ConfigError> {
        self.entry.config(&self.settings)
    }

    /// The disciplines that the root holds.
    pub fn classes(&self) -> Vec<ClassSpec<'_>> {
        if !self.entry.about().children.are_classes() {
            let inner = |tree| ClassSpec {
                minor: INNER,
                template: None,
                parameters: Vec::new(),
                tree: Some(tree),
            };
            return self.children.iter().map(inner).collect();
        }
        self.classes_and_trees()
            .map(|(class, tree)| ClassSpec {
                minor: class.minor,
                template: class.template.as_ref(),
                parameters: values(self.entry.class_parameters(), &class.settings),
                tree,
            })
            .collect()
    }

    /// The classes, each with what it holds.
    fn classes_and_trees(&self) -> impl Iterator<Item = (&ClassSettings, Option<&Spec>)> {
        let inner = inner_classes(self.entry, &self.settings.classes);
        let mut trees = self.children.iter();
        self.settings.classes.iter().map(move |class| {
            let tree = match inner.contains(&class.minor) {
                true => None,
                false => trees.next(),
            };
            (class, tree)
        })
    }

    /// Handle, filters and default class of the root.
    pub fn classifier(&self) -> &Classifier {
        &self.settings.classifier
    }

    /// What each class holds, those of a template one by one; or the inner discipline.
    fn trees(&self) -> Box<dyn Iterator<Item = (u16, &Spec)> + '_> {
        if !self.entry.about().children.are_classes() {
            return Box::new(self.children.iter().map(|tree| (INNER, tree)));
        }
        let alike = |class: &ClassSettings, tree| class.minors().map(move |minor| (minor, tree));
        let of_class = move |(class, tree): (_, Option<_>)| tree.map(|tree| alike(class, tree));
        Box::new(self.classes_and_trees().filter_map(of_class).flatten())
    }
}

/// The classes that others name as their parent.
fn inner_classes(entry: &dyn Entry, classes: &[ClassSettings]) -> BTreeSet<u16> {
    let parameters = entry.class_parameters();
    let parent = parameters.iter().position(|info| info.name == PARENT);
    let parents = classes
        .iter()
        .filter_map(|class| parent_of(parent, &class.settings));
    parents.collect()
}

/// The parent that a class names, if the parameter for it is at `place`.
fn parent_of(place: Option<usize>, settings: &[Setting]) -> Option<u16> {
    let (_, value) = settings.iter().find(|(other, _)| Some(*other) == place)?;
    match value {
        Value::Number(minor) => u16::try_from(*minor).ok(),
        _ => None,
    }
}

/// Each parameter with its value. A required one is always set.
fn values(parameters: Vec<ParameterInfo>, settings: &[Setting]) -> Vec<(ParameterInfo, Value)> {
    let value_of = |(place, info): (usize, ParameterInfo)| {
        let set = settings.iter().find(|(other, _)| *other == place);
        let value = set.map(|(_, value)| value.clone()).or(info.default.clone());
        (info, value.expect("a required parameter is set"))
    };
    parameters.into_iter().enumerate().map(value_of).collect()
}

/// A seed for child `minor`, unlike its parent's and its siblings' (SplitMix64's finaliser, Steele et al.
/// 2014).
fn derive(seed: u64, minor: u16) -> u64 {
    let mut z = seed.wrapping_add((u64::from(minor) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        self.discipline() == other.discipline()
            && self.settings == other.settings
            && self.children == other.children
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.discipline())
            .field("settings", &self.settings)
            .field("children", &self.children)
            .finish()
    }
}

#[cfg(test)]
mod entries;
#[cfg(test)]
mod extremes;
#[cfg(test)]
mod tests;
