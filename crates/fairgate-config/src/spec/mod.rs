//! The checked description of a tree of disciplines.

mod check;
mod draft;
mod given;
mod inline;

use std::fmt;
use std::sync::Arc;

use fairgate::{ConfigError, Discipline};
use miette::NamedSource;
use thiserror::Error;

pub(crate) use check::check;
pub(crate) use draft::Draft;
pub(crate) use given::in_order;

use crate::error::{FileError, Problems};
use crate::registry::{Entry, Parts, Setting};

/// The class number of the one discipline that a shaper holds.
pub(crate) const INNER: u16 = 1;

/// A tree of disciplines that is known to be right: what has become a `Spec` can be built.
#[derive(Clone)]
pub struct Spec {
    pub(crate) entry: &'static dyn Entry,
    /// Only what was set, in the order of the parameters.
    pub(crate) settings: Vec<Setting>,
    pub(crate) children: Vec<Child>,
}

/// A discipline within another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    pub(crate) minor: u16,
    pub(crate) spec: Spec,
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
    /// Reads a tree on one line: a discipline and its settings, and after each `/` the discipline that it holds.
    ///
    /// ```
    /// let spec = fairgate_config::Spec::inline("fifo limit=1000")?;
    /// assert_eq!(spec.discipline(), "fifo");
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn inline(text: &str) -> Result<Spec, FileError> {
        let source = Arc::new(NamedSource::new("command line", text.to_owned()));
        let mut problems = Problems::new(source);
        match inline::parse(text, &mut problems).and_then(|draft| check(&draft, &mut problems)) {
            Some(spec) => problems.unless_any(spec),
            None => Err(problems.into_error()),
        }
    }

    /// The name of the tree's root.
    pub fn discipline(&self) -> &'static str {
        self.entry.about().name
    }

    /// Builds the tree. Each discipline gets a seed of its own, derived from `seed` and its place in the tree.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, BuildError> {
        let children = self
            .children
            .iter()
            .map(|child| Ok((child.minor, child.spec.build(derive(seed, child.minor))?)))
            .collect::<Result<_, BuildError>>()?;
        self.entry
            .build(&self.settings, Parts { children, seed })
            .map_err(|source| BuildError {
                discipline: self.discipline(),
                source,
            })
    }
}

/// A seed for child `minor`, unlike its parent's and its siblings' (SplitMix64's finaliser, Steele et al. 2014).
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

/// The tree for people: a discipline a line with all its parameters, those it holds indented below.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, 0)
    }
}

impl Spec {
    fn show(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        write!(f, "{:indent$}{}", "", self.discipline(), indent = 2 * depth)?;
        for (place, info) in self.entry.parameters().into_iter().enumerate() {
            let set = self.settings.iter().find(|(other, _)| *other == place);
            let value = set.map_or_else(|| self.entry.default_of(place), |(_, value)| value.clone());
            write!(f, " {}={}", info.name, info.unit.show(&value))?;
        }
        self.children.iter().try_for_each(|child| {
            writeln!(f)?;
            child.spec.show(f, depth + 1)
        })
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
