//! Tables of a file that are no trees: `[run]`, `[plans.NAME]`, `[[simulate.link]]`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::parameter::{Parameter, ParameterInfo};

/// Describes a table of a file: what it is for, its keys, and the tables within it. Whoever reads the table
/// declares it as a `static`, beside the parameters of its keys.
///
/// ```
/// use fairgate::registry::{Parameter, Registry, Section, Unit};
///
/// #[derive(Default)]
/// struct Values { colour: String }
///
/// static KEYS: [Parameter<Values>; 1] = [
///     Parameter::word("colour", Unit::Text("name"), "The colour.", |values, _| &mut values.colour),
/// ];
/// static PAINT: Section = Section::new("paint", "how it looks", || {
///     Parameter::infos(&KEYS, Values::default())
/// });
///
/// let registry = Registry::builtin().with_sections([&PAINT]);
/// assert_eq!(registry.sections().next().unwrap().keys()[0].name, "colour");
/// ```
#[derive(Debug)]
pub struct Section {
    name: &'static str,
    about: &'static str,
    shape: Shape,
    keys: Option<fn() -> Vec<ParameterInfo>>,
    within: &'static [Section],
}

/// How often a table may be there, and how it is then written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Once: `[run]`.
    One,
    /// Once for each name: `[plans.home]`.
    Named,
    /// Any number of times, in an order: `[[simulate.link]]`.
    List,
}

impl Section {
    /// Describes a table that may be there once. `about` is a phrase without a full stop, and `keys` returns
    /// the keys in the order in which they are documented.
    pub const fn new(name: &'static str, about: &'static str, keys: fn() -> Vec<ParameterInfo>) -> Section {
        Section {
            name,
            about,
            shape: Shape::One,
            keys: Some(keys),
            within: &[],
        }
    }

    /// Describes a table with any keys. Whoever reads it checks them.
    pub const fn open(name: &'static str, about: &'static str) -> Section {
        Section {
            name,
            about,
            shape: Shape::One,
            keys: None,
            within: &[],
        }
    }

    /// Returns the description of a table that may be there in this way.
    #[must_use]
    pub const fn shaped(mut self, shape: Shape) -> Section {
        self.shape = shape;
        self
    }

    /// Adds the tables within it.
    #[must_use]
    pub const fn with(mut self, within: &'static [Section]) -> Section {
        self.within = within;
        self
    }

    /// The key of the table in the one around it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is for.
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// How often it may be there.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether it may have any key.
    pub const fn is_open(&self) -> bool {
        self.keys.is_none()
    }

    /// Returns its keys, without those that are tables.
    pub fn keys(&self) -> Vec<ParameterInfo> {
        self.keys.map_or_else(Vec::new, |keys| keys())
    }

    /// The tables within it.
    pub const fn within(&self) -> &'static [Section] {
        self.within
    }

    /// Returns its path within `outer`, as it is documented: `plans.NAME`.
    pub fn path(&self, outer: &str) -> String {
        let own = match self.shape {
            Shape::One | Shape::List => self.name.to_owned(),
            Shape::Named => format!("{}.NAME", self.name),
        };
        match outer {
            "" => own,
            outer => format!("{outer}.{own}"),
        }
    }
}

impl<S> Parameter<S> {
    /// Returns what users should know about these keys. Their defaults are the values in `start`.
    pub fn infos(parameters: &[Parameter<S>], mut start: S) -> Vec<ParameterInfo> {
        let infos = parameters.iter().map(|parameter| parameter.info(&mut start));
        infos.collect()
    }
}
