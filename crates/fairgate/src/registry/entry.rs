//! What the registry knows of a discipline.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

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
    /// The name in tables and JSON. For a family of this library it is the folder's name.
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

/// Which disciplines a discipline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// None: it queues packets itself.
    None,
    /// One or none, written as `inner`. Without one, it makes the inner discipline itself.
    Inner,
    /// One or none, written as `inner`. Without one, it queues packets itself.
    InnerOrQueue,
    /// One in each class, written as `[[class]]`, with any numbers.
    Classes,
    /// One in each class. The classes are numbered 1, 2, 3 in the order of their priority.
    Bands,
    /// Classes with any numbers, in a tree: a class names the class above it as its `parent`. Only leaves
    /// hold a discipline.
    Tree,
    /// A tree of classes. Without a class, it passes packets on as they come.
    TreeOrNone,
}

impl Children {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Children::None => "none",
            Children::Inner | Children::InnerOrQueue => "inner",
            Children::Classes | Children::Bands | Children::Tree | Children::TreeOrNone => "classes",
        }
    }

    /// Whether it holds classes.
    pub const fn are_classes(self) -> bool {
        matches!(self, Children::Classes | Children::Bands) || self.are_a_tree()
    }

    /// Whether its classes form a tree.
    pub const fn are_a_tree(self) -> bool {
        matches!(self, Children::Tree | Children::TreeOrNone)
    }
}

/// The parameter by which a class of a tree names the class above it.
pub const PARENT: &str = "parent";

/// What a user should know of a discipline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct About {
    /// The name that users configure it by.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// When to use it, in one sentence.
    pub when: &'static str,
    /// Which disciplines it holds.
    pub children: Children,
}

impl About {
    /// A discipline from outside of this library that holds no others.
    pub const fn new(name: &'static str, summary: &'static str, when: &'static str) -> About {
        About {
            name,
            family: Family::External,
            summary,
            when,
            children: Children::None,
        }
    }

    /// The same, holding `children`.
    #[must_use]
    pub const fn holding(mut self, children: Children) -> About {
        self.children = children;
        self
    }
}

/// What a discipline is built from, besides its settings.
#[non_exhaustive]
pub struct Parts {
    /// The disciplines of its classes in the order of their numbers, of a tree those of its leaves; or its
    /// `inner`.
    pub children: Vec<Box<dyn Discipline>>,
    /// The seed of all its random choices.
    pub seed: u64,
}

impl Parts {
    /// These children, and this seed.
    pub fn new(children: Vec<Box<dyn Discipline>>, seed: u64) -> Parts {
        Parts { children, seed }
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

/// The longest packet that a bucket or a limit can hold. A longer one is dropped, however little is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Longest {
    /// By its length, bytes.
    Length(u64),
    /// By the memory that it occupies, bytes.
    Memory(u64),
}

/// A discipline as the registry knows it. [`Description`](super::Description) implements it.
pub trait Entry: Sync {
    /// Name, family, use.
    fn about(&self) -> &About;

    /// Its parameters.
    fn parameters(&self) -> Vec<ParameterInfo>;

    /// The parameters of each of its classes, written beside the class's number.
    fn class_parameters(&self) -> Vec<ParameterInfo>;

    /// Whether `handle`, `filter` and `default` place packets in its classes or flows.
    fn takes_filters(&self) -> bool;

    /// Whether its classes may be given to hosts.
    fn takes_templates(&self) -> bool;

    /// The highest class or flow that filters may name; the lowest is 1. It has no meaning if classes have
    /// any number.
    fn places(&self, settings: &Settings) -> u32;

    /// The discipline's own `Config` with these settings, and defaults for the other parameters.
    ///
    /// # Errors
    /// If the settings contradict one another.
    fn config(&self, settings: &Settings) -> Result<Box<dyn Any>, ConfigError>;

    /// The parameters that limit the length of packets, each with its limit. `has_inner` says whether there
    /// is an inner discipline.
    fn longest(&self, settings: &Settings, has_inner: bool) -> Vec<(&'static str, Longest)>;

    /// Bytes of memory that the discipline allocates when it is built: its tables, without its children and
    /// without statistics.
    fn memory(&self, settings: &Settings) -> u64;

    /// Builds the discipline.
    ///
    /// # Errors
    /// If the discipline refuses the settings.
    fn build(&self, settings: &Settings, parts: Parts) -> Result<Box<dyn Discipline>, ConfigError>;
}

impl fmt::Debug for dyn Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about().name)
    }
}
