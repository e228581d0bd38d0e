//! The table of all disciplines: what each is for, what its parameters are, and how it is made from them.
//!
//! One entry per discipline, in one file per family. A parameter names a field of the discipline's own `Config`, from
//! which its default is read: no default is written down twice. To add a discipline, describe it in its family's file
//! and name it in [`REGISTRY`]; the tests below hold it to the rules.

mod aqm;
mod cake;
mod description;
mod implicit;
mod queues;
mod rounds;
mod schedulers;
mod settings;
mod sharing;
mod timestamps;

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;

use fairgate::{ConfigError, Discipline};

use crate::suggest;
use crate::value::{Unit, Value};

use description::{Description, Lens, Parameter, Placing};
pub use settings::{ClassSettings, Setting, Settings};

static REGISTRY: &[&dyn Entry] = &[
    &queues::FIFO,
    &queues::PFIFO_FAST,
    &queues::PRIO,
    &queues::TBF,
    &queues::LEAKY_BUCKET,
    &queues::POLICER,
    &aqm::RED,
    &aqm::ARED,
    &aqm::WRED,
    &aqm::RRED,
    &aqm::CHOKE,
    &aqm::CODEL,
    &aqm::PIE,
    &aqm::DUALPI2,
    &rounds::FQ_NAGLE,
    &rounds::FQ_NAGLE_CLASSES,
    &rounds::SFQ,
    &rounds::DRR,
    &rounds::DRR_CLASSES,
    &rounds::ETS,
    &rounds::FQ,
    &rounds::FQ_CODEL,
    &rounds::FQ_PIE,
    &rounds::MSFC,
    &cake::CAKE,
    &timestamps::SCFQ,
    &timestamps::SCFQ_CLASSES,
    &timestamps::QFQ,
    &timestamps::QFQ_CLASSES,
    &timestamps::QFQ_PLUS,
    &timestamps::QFQ_PLUS_CLASSES,
    &timestamps::WF2Q_PLUS,
    &timestamps::WF2Q_PLUS_CLASSES,
    &timestamps::WFQ,
    &timestamps::PFQ,
    &timestamps::S_KPS,
    &timestamps::S_KPS_CLASSES,
    &timestamps::FRR,
    &timestamps::FRR_CLASSES,
    &timestamps::GFQ,
    &timestamps::GFQ_CLASSES,
    &implicit::SQF,
    &implicit::LQF,
    &implicit::HSQF,
    &implicit::PDRR,
    &implicit::ADMISSION,
    &sharing::HTB,
    &sharing::HFSC,
    &sharing::CBQ,
];

/// All disciplines, families together, in the order of the documentation.
pub fn registry() -> &'static [&'static dyn Entry] {
    REGISTRY
}

/// The entries of the discipline that users configure as `name`. There are two for one that holds classes or does
/// without (`drr`); the classless one is the first.
pub fn entries(name: &str) -> impl Iterator<Item = &'static dyn Entry> {
    REGISTRY
        .iter()
        .copied()
        .filter(move |entry| entry.about().name == name)
}

/// The name that `name` was probably meant to be.
pub fn similar_name(name: &str) -> Option<&'static str> {
    suggest::similar(name, names())
}

/// The names of all disciplines, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    REGISTRY.iter().filter_map(move |entry| {
        let name = entry.about().name;
        (std::mem::replace(&mut last, name) != name).then_some(name)
    })
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
    /// Fair queueing by time stamps.
    Timestamps,
    /// Implicit service differentiation.
    Implicit,
    /// Link sharing.
    Sharing,
}

impl Family {
    /// The name of the folder.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Queues => "queues",
            Family::Aqm => "aqm",
            Family::Rounds => "rounds",
            Family::Timestamps => "timestamps",
            Family::Implicit => "implicit",
            Family::Sharing => "sharing",
        }
    }
}

/// Which disciplines a discipline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// None: it queues packets itself.
    None,
    /// One or none, written as `inner`; without one it makes what it holds itself.
    Inner,
    /// The same, but without one it queues packets itself.
    InnerOrQueue,
    /// One in each class, written as `[[class]]`, with any numbers.
    Classes,
    /// The same, but numbered 1, 2, 3 in the order of their priority.
    Bands,
    /// Classes with any numbers, in a tree: a class names the one above it as its `parent`, and only those that no other
    /// names hold a discipline.
    Tree,
    /// The same; without a class it passes packets on as they come.
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

    pub(crate) const fn are_classes(self) -> bool {
        matches!(self, Children::Classes | Children::Bands) || self.are_a_tree()
    }

    pub(crate) const fn are_a_tree(self) -> bool {
        matches!(self, Children::Tree | Children::TreeOrNone)
    }
}

/// The parameter by which a class of a tree names the one above it.
pub const PARENT: &str = "parent";

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

/// What a user should know of a parameter.
#[derive(Clone, Debug)]
pub struct ParameterInfo {
    /// The name that users set it by.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The numbers that it may be, in the base unit. Of no meaning for flags and words.
    pub range: RangeInclusive<u64>,
    /// What it is if it is left out, read from the discipline's own default settings; `None` if it is required.
    pub default: Option<Value>,
    /// Whether it may be `"none"`.
    pub optional: bool,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

impl ParameterInfo {
    /// What the parameter may be, for people: `1 to 65536`.
    pub fn allowed(&self) -> String {
        let range = self.unit.show_range(&self.range);
        if self.optional {
            format!("{range}, or none")
        } else {
            range
        }
    }

    /// What to write, and what it is for.
    pub(crate) fn remedy(&self) -> String {
        match self.doc {
            "" => self.unit.example(),
            doc => format!("{}. {doc}", self.unit.example()),
        }
    }

    /// The default as users write it.
    pub fn shown_default(&self) -> Option<String> {
        self.default.as_ref().map(|value| self.unit.show(value))
    }
}

/// What a discipline is built from besides its settings.
pub struct Parts {
    /// The disciplines of its classes (of a tree, of those that hold one), in the order of their numbers; its `inner`, if
    /// it has one.
    pub children: Vec<Box<dyn Discipline>>,
    /// The seed of all its random choices.
    pub seed: u64,
}

/// The longest packet that a bucket or a limit can hold. One beyond it is dropped, however little is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Longest {
    /// By its length, bytes.
    Length(u64),
    /// By the memory that it occupies, bytes.
    Memory(u64),
}

/// A discipline as the registry knows it.
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

    /// The classes or flows that filters may name are 1 to this. Of no meaning where they are classes of any number.
    fn places(&self, settings: &Settings) -> u32;

    /// The discipline's own `Config` with these settings, the rest at their defaults.
    ///
    /// # Errors
    /// If the settings contradict one another.
    fn config(&self, settings: &Settings) -> Result<Box<dyn Any>, ConfigError>;

    /// The parameters that bound the longest packet, as they are set, each with its bound. `has_inner` is whether a discipline
    /// is inside.
    fn longest(&self, settings: &Settings, has_inner: bool) -> Vec<(&'static str, Longest)>;

    /// The discipline, ready to use.
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

#[cfg(test)]
mod tests;
