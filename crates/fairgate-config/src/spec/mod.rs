//! The checked description of a tree of disciplines.

mod assemble;
mod check;
mod computed;
mod draft;
mod dscp;
mod edit;
mod estimator;
mod fields;
mod filters;
mod given;
mod header_bytes;
mod inline;
mod memory;
mod names;
mod origin;
mod outcomes;
mod print;
mod refusals;
mod shards;
mod super_packets;
mod templates;
mod warnings;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fairgate::change::{Change, ChangeError};
use fairgate::classify::{Classifier, Template};
use fairgate::registry::tree::{build, inner_classes, trees};
use fairgate::registry::{BuildError, Described};
use fairgate::{ConfigError, Discipline};
use miette::NamedSource;

pub use assemble::{Assembly, Branch};
#[cfg(test)]
pub(crate) use check::RESERVED_KEYS;
pub use check::check;
pub(crate) use check::check_with;
pub use draft::{Draft, FilterDraft, Written};
pub(crate) use dscp::read_value;
pub use edit::CHANGE;
pub use estimator::{Estimator, EstimatorError};
pub use given::Given;
pub(crate) use given::in_order;
pub(crate) use given::spanned_from_toml;
pub(crate) use origin::Origin;
pub use print::{quoted, renamed};
pub use refusals::Frame;
pub use shards::{ShardBy, ShardedSpec, Workers};

use crate::error::{FileError, Problems};
use crate::registry::Value;
use crate::registry::{ClassSettings, Entry, PARENT, ParameterInfo, Registry, Setting, Settings, Tables};

pub use fairgate::registry::tree::INNER;

/// The number of disciplines up to which all tables are made when a tree is built. A reserve for so few would
/// not be smaller.
const FEW: usize = 256;

/// A checked tree of disciplines. It can be built.
///
/// Copies share their parts until one is changed: thousands of classes hold the same discipline, and a run
/// keeps a tree in several places.
#[derive(Clone)]
pub struct Spec {
    pub(crate) entry: &'static dyn Entry,
    pub(crate) settings: Arc<Settings>,
    /// One child for each class that holds a discipline, in the order of the classes; or the inner
    /// discipline.
    pub(crate) children: Arc<Vec<Spec>>,
    /// How a run estimates the rates of this discipline and of its classes.
    pub(crate) estimators: Arc<Estimators>,
    /// Where the tree was written. It does not take part in comparisons.
    pub(crate) origin: Arc<Origin>,
}

/// The estimators of a discipline and of its classes. Drivers use them. The discipline does not know them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Estimators {
    pub(crate) own: Option<Estimator>,
    /// Those of the classes, by the number of the class. All classes of a template have the same.
    pub(crate) classes: BTreeMap<u32, Estimator>,
}

/// A class within a [`Spec`].
#[derive(Debug)]
pub struct ClassSpec<'a> {
    /// The class number. An inner discipline is class 1.
    pub minor: u32,
    /// The template, if the class is given to hosts. The number of this class is the first of the template's.
    pub template: Option<&'a Template>,
    /// The class's parameters and their values.
    pub parameters: Vec<(ParameterInfo, Value)>,
    /// How a run estimates the rate of the class.
    pub estimator: Option<Estimator>,
    /// The tree in the class. `None` for a class that has classes below it.
    pub tree: Option<&'a Spec>,
}

impl ClassSpec<'_> {
    /// Returns the number of classes with these parameters.
    pub fn count(&self) -> u32 {
        self.template.map_or(1, |template| template.count)
    }

    /// Returns the number of the class that this class names as its parent.
    pub fn parent(&self) -> Option<u32> {
        match self.parameters.iter().find(|(info, _)| info.name == PARENT)? {
            (_, Value::Number(minor)) => u32::try_from(*minor).ok(),
            _ => None,
        }
    }
}

impl Described for Spec {
    fn entry(&self) -> &'static dyn Entry {
        self.entry
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn children(&self) -> &[Spec] {
        &self.children
    }
}

impl Spec {
    /// Reads a tree of built-in disciplines from one line: a discipline and its settings, and after each `/`
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

    /// Reads a tree of this registry's disciplines from one line.
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

    /// Returns the name of the root discipline.
    pub fn discipline(&self) -> &'static str {
        self.entry.about().name
    }

    /// Builds the tree. Each discipline gets its own seed, derived from `seed` and the path to the
    /// discipline.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, BuildError> {
        build(self, seed, Tables::Now)
    }

    /// Builds the same tree for a driver that [refills](fairgate::Pool::refill) the reserve of its pool. If
    /// there are many disciplines, each makes its tables when its first packet comes: of thousands of
    /// subscribers most are idle.
    ///
    /// # Errors
    /// As [`build`](Spec::build).
    pub fn build_for_refills(&self, seed: u64) -> Result<Box<dyn Discipline>, BuildError> {
        build(self, seed, self.tables())
    }

    /// When the disciplines make their tables, if the driver refills its pool.
    fn tables(&self) -> Tables {
        match self.disciplines() > FEW {
            true => Tables::WhenUsed,
            false => Tables::Now,
        }
    }

    /// The number of disciplines in the tree.
    fn disciplines(&self) -> usize {
        1 + trees(self).map(|(_, tree)| tree.disciplines()).sum::<usize>()
    }

    /// Plans the change of a running tree from this description to `wanted`. It may be any other tree. New
    /// disciplines get their seeds from `seed`.
    ///
    /// ```
    /// use fairgate::{Packet, Pool, Time};
    /// use fairgate_config::Spec;
    ///
    /// let running = Spec::inline("fifo limit=100")?;
    /// let wanted = Spec::inline("tbf rate=20mbit burst=5kb / fq_codel")?;
    /// let mut pool = Pool::with_capacity(10);
    /// let mut root = running.build(1)?;
    /// let id = pool.insert(Packet::of_length(1000))?;
    /// root.enqueue(id, Time::ZERO, &mut pool);
    ///
    /// let change = running.change_to(&wanted, 2)?;
    /// change.apply(&mut root, Time::from_millis(1), &mut pool)?;
    /// assert_eq!((root.name(), root.backlog().packets), ("tbf", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn change_to(&self, wanted: &Spec, seed: u64) -> Result<Change, ChangeError> {
        Change::plan(self, wanted, seed, Tables::Now)
    }

    /// Plans the same change for a driver that [refills](fairgate::Pool::refill) the reserve of its pool, as
    /// of [`build_for_refills`](Spec::build_for_refills).
    ///
    /// # Errors
    /// As [`change_to`](Spec::change_to).
    pub fn change_for_refills(&self, wanted: &Spec, seed: u64) -> Result<Change, ChangeError> {
        Change::plan(self, wanted, seed, wanted.tables())
    }

    /// Plans that this tree takes the place of a running tree whose description is not known. It takes over
    /// all packets and the statistics of the root.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn take_over(&self, seed: u64) -> Result<Change, ChangeError> {
        Change::to_take_over(self, seed)
    }

    /// Returns whether a discipline of the tree gives packets a time to leave at: a delay (`netem`), or one
    /// that the sender has chosen (`etf`). A driver must not send such a packet before its time. A shaper's
    /// packets may leave a little earlier, because the rate stays the same.
    ///
    /// ```
    /// use fairgate_config::Spec;
    ///
    /// assert!(Spec::inline("tbf rate=10mbit burst=3kb / netem delay=10ms")?.keeps_times());
    /// assert!(!Spec::inline("tbf rate=10mbit burst=3kb / fq_codel")?.keeps_times());
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn keeps_times(&self) -> bool {
        matches!(self.discipline(), "netem" | "etf") || trees(self).any(|(_, tree)| tree.keeps_times())
    }

    /// Returns the registry's entry for the root discipline.
    pub fn entry(&self) -> &'static dyn Entry {
        self.entry
    }

    /// Returns the root's parameters with their values. A parameter that was not set has its default.
    pub fn parameters(&self) -> Vec<(ParameterInfo, Value)> {
        values(self.entry.parameters(), &self.settings.own)
    }

    /// Returns whether the root's parameter `name` was set. If not, it has its default.
    pub fn is_given(&self, name: &str) -> bool {
        let parameters = self.entry.parameters();
        let position = parameters.iter().position(|info| info.name == name);
        position.is_some_and(|position| self.settings.own.iter().any(|(given, _)| *given == position))
    }

    /// Returns the `Config` of the root discipline. Parameters that were not set have their defaults.
    ///
    /// # Errors
    /// Only if the discipline refuses what it accepted when the description was checked.
    pub fn config(&self) -> Result<Box<dyn Any + Send>, ConfigError> {
        self.entry.config(&self.settings)
    }

    /// Returns the root's classes, or its inner discipline as class 1.
    pub fn classes(&self) -> Vec<ClassSpec<'_>> {
        if !self.entry.about().children.are_classes() {
            let inner = |tree| ClassSpec {
                minor: INNER,
                template: None,
                parameters: Vec::new(),
                estimator: None,
                tree: Some(tree),
            };
            return self.children.iter().map(inner).collect();
        }
        self.classes_and_trees()
            .map(|(class, tree)| ClassSpec {
                minor: class.minor,
                template: class.template.as_ref(),
                parameters: values(self.entry.class_parameters(), &class.settings),
                estimator: self.estimators.classes.get(&class.minor).copied(),
                tree,
            })
            .collect()
    }

    /// Returns the classes, each with the tree in it.
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

    /// Returns the number of each class, how many equal ones there are of it, and the tree in it. It does not
    /// gather the parameters, which takes long for thousands of classes.
    fn trees(&self) -> Box<dyn Iterator<Item = (u32, u64, Option<&Spec>)> + '_> {
        if !self.entry.about().children.are_classes() {
            return Box::new(self.children.iter().map(|tree| (INNER, 1, Some(tree))));
        }
        let count = |class: &ClassSettings| class.template.as_ref().map_or(1, |template| template.count);
        let trees = self.classes_and_trees();
        Box::new(trees.map(move |(class, tree)| (class.minor, count(class).into(), tree)))
    }

    /// Returns how a run estimates the rate of the root.
    pub fn estimator(&self) -> Option<Estimator> {
        self.estimators.own
    }

    /// Returns whether a discipline or a class of the tree has an estimator.
    pub fn has_estimators(&self) -> bool {
        *self.estimators != Estimators::default() || self.children.iter().any(Spec::has_estimators)
    }

    /// Returns the root's handle, filters and default class.
    pub fn classifier(&self) -> &Classifier {
        &self.settings.classifier
    }
}

/// Returns each parameter with its value. A required parameter is always set.
fn values(parameters: Vec<ParameterInfo>, settings: &[Setting]) -> Vec<(ParameterInfo, Value)> {
    let value_of = |(index, info): (usize, ParameterInfo)| {
        let set = settings.iter().find(|(other, _)| *other == index);
        let value = set.map(|(_, value)| value.clone()).or(info.default.clone());
        (info, value.expect("a required parameter is set"))
    };
    parameters.into_iter().enumerate().map(value_of).collect()
}

/// Compares parts that are often the same one.
fn is_same<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        self.discipline() == other.discipline()
            && is_same(&self.settings, &other.settings)
            && is_same(&self.estimators, &other.estimators)
            && is_same(&self.children, &other.children)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.discipline())
            .field("settings", &self.settings)
            .field("estimators", &self.estimators)
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
