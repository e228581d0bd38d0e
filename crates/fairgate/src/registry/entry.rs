//! What the registry stores about a discipline.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use super::longest::Longest;
use super::parameter::ParameterInfo;
use super::settings::Settings;
use crate::discipline::Discipline;
use crate::error::ConfigError;

/// A family of disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Queues without flows.
    Queues,
    /// Active queue management over one queue.
    Aqm,
    /// Fair queueing by rounds.
    Rounds,
    /// Fair queueing by time stamps.
    Timestamps,
    /// Implicit service differentiation.
    Implicit,
    /// Link sharing.
    Sharing,
    /// Disciplines that are not part of this library.
    External,
}

impl Family {
    /// The name in tables and JSON. For a family of this library it is the name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Queues => "queues",
            Family::Aqm => "aqm",
            Family::Rounds => "rounds",
            Family::Timestamps => "timestamps",
            Family::Implicit => "implicit",
            Family::Sharing => "sharing",
            Family::External => "external",
        }
    }
}

/// Which child disciplines a discipline has. The enum is exhaustive, because a configuration language must
/// express each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// None. It queues packets itself.
    None,
    /// One or none, written as `inner`. If there is none, the discipline creates its default child.
    Inner,
    /// One or none, written as `inner`. If there is none, the discipline queues packets itself.
    InnerOrQueue,
    /// One in each class, written as `[[class]]`. The classes can have any numbers.
    Classes,
    /// One in each class. The classes are numbered 1, 2, 3 in the order of their priority.
    Bands,
    /// Classes with any numbers, in a tree. A class names the class above it as its `parent`. Only leaves
    /// have a discipline.
    Tree,
    /// A tree of classes that may be empty. Without classes, packets pass unchanged (htb) or are dropped
    /// (hfsc).
    TreeOrNone,
}

impl Children {
    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Children::None => "none",
            Children::Inner | Children::InnerOrQueue => "inner",
            Children::Classes | Children::Bands | Children::Tree | Children::TreeOrNone => "classes",
        }
    }

    /// Whether the discipline has classes.
    pub const fn are_classes(self) -> bool {
        matches!(self, Children::Classes | Children::Bands) || self.are_a_tree()
    }

    /// Whether the classes form a tree.
    pub const fn are_a_tree(self) -> bool {
        matches!(self, Children::Tree | Children::TreeOrNone)
    }
}

/// The parameter by which a class in a tree names the class above it.
pub const PARENT: &str = "parent";

/// What a user should know about a discipline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct About {
    /// The name by which users configure it.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// When to use it, in one sentence.
    pub when: &'static str,
    /// Which child disciplines it has.
    pub children: Children,
}

impl About {
    /// Describes a discipline that is not part of this library and has no children.
    pub const fn new(name: &'static str, summary: &'static str, when: &'static str) -> About {
        About {
            name,
            family: Family::External,
            summary,
            when,
            children: Children::None,
        }
    }

    /// Sets which child disciplines it has.
    #[must_use]
    pub const fn holding(mut self, children: Children) -> About {
        self.children = children;
        self
    }
}

/// What a discipline is built from, in addition to its settings.
#[non_exhaustive]
pub struct Parts {
    /// The disciplines of its classes in the order of their numbers, or those of the leaves of its tree, or
    /// its `inner`.
    pub children: Vec<Box<dyn Discipline>>,
    /// The seed of all its random choices.
    pub seed: u64,
    /// When it makes its tables.
    pub tables: Tables,
}

/// When a discipline makes its tables of flows, if they are large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// When it is built.
    #[default]
    Now,
    /// When its first packet comes: it takes them from the reserve of the pool, which the driver
    /// [refills](crate::Pool::refill). A discipline that does not know this makes them when it is built.
    WhenUsed,
}

impl Parts {
    /// Returns parts with these children and this seed.
    pub fn new(children: Vec<Box<dyn Discipline>>, seed: u64) -> Parts {
        Parts {
            children,
            seed,
            tables: Tables::Now,
        }
    }

    /// Returns the same parts for a discipline that makes its tables then.
    #[must_use]
    pub fn with_tables(self, tables: Tables) -> Parts {
        Parts { tables, ..self }
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.children.iter().map(|child| child.name()).collect();
        f.debug_struct("Parts")
            .field("children", &names)
            .field("seed", &self.seed)
            .finish()
    }
}

/// A discipline in the registry. [`Description`](super::Description) implements it.
pub trait Entry: Sync {
    /// Returns its name, family and purpose.
    fn about(&self) -> &About;

    /// Returns its parameters.
    fn parameters(&self) -> Vec<ParameterInfo>;

    /// Returns the parameters of each of its classes. They are written next to the class's number.
    fn class_parameters(&self) -> Vec<ParameterInfo>;

    /// Whether `handle`, `filter` and `default` assign packets to its classes or flows.
    fn takes_filters(&self) -> bool;

    /// Whether its classes can be templates: a class for each host.
    fn takes_templates(&self) -> bool;

    /// Returns the highest class or flow that filters can name. The lowest is 1. It has no meaning if classes
    /// can have any number.
    fn places(&self, settings: &Settings) -> u32;

    /// Returns the discipline's own `Config` with these settings. The other parameters have their defaults.
    ///
    /// # Errors
    /// Returns an error if settings contradict each other.
    fn config(&self, settings: &Settings) -> Result<Box<dyn Any + Send>, ConfigError>;

    /// Returns the parameters that limit the length of packets, with their limits. `has_inner` says whether
    /// there is an inner discipline.
    fn longest(&self, settings: &Settings, has_inner: bool) -> Vec<(&'static str, Longest)>;

    /// Returns the number of bytes that the discipline allocates when it is built: its tables, without its
    /// children and without statistics.
    fn memory(&self, settings: &Settings) -> u64;

    /// Returns warnings about settings that are valid, but probably not intended: a sentence each.
    fn warnings(&self, settings: &Settings) -> Vec<String>;

    /// Finds out whether [`build`](Entry::build) would succeed.
    ///
    /// # Errors
    /// Returns the error that `build` would return.
    fn check(&self, settings: &Settings, parts: Parts) -> Result<(), ConfigError> {
        self.build(settings, parts).map(drop)
    }

    /// Builds the discipline.
    ///
    /// # Errors
    /// Returns an error if the discipline rejects the settings.
    fn build(&self, settings: &Settings, parts: Parts) -> Result<Box<dyn Discipline>, ConfigError>;
}

impl fmt::Debug for dyn Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about().name)
    }
}
