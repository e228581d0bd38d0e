//! Tables of a file that are no trees: `[run]`, `[plans.NAME]`, `[[simulate.link]]`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::parameter::{Parameter, ParameterInfo};
use super::unit::Unit;
use super::value::Value;

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
    /// The unit of a value that may stand in the place of the table.
    shorthand: Option<(Unit, &'static str)>,
    is_required: bool,
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
            shorthand: None,
            is_required: false,
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
            shorthand: None,
            is_required: false,
        }
    }

    /// Returns the description of a table in whose place a value of this unit may stand: `"2ms"` instead of
    /// `{ exponential = "2ms" }`. `default` says in a word what holds if neither is there.
    #[must_use]
    pub const fn or(mut self, unit: Unit, default: &'static str) -> Section {
        self.shorthand = Some((unit, default));
        self
    }

    /// Returns the description of a table that must be there.
    #[must_use]
    pub const fn required(mut self) -> Section {
        self.is_required = true;
        self
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

    /// Returns the value that may stand in its place, if one may.
    pub fn shorthand(&self) -> Option<ParameterInfo> {
        match self.shorthand {
            Some((unit, default)) => {
                let mut info = ParameterInfo::plain(self.name, unit, self.about);
                info.or_table = true;
                if !self.is_required {
                    info.default = Some(Value::Word(default));
                }
                Some(info)
            }
            None => None,
        }
    }

    /// Whether it must be there.
    pub const fn is_required(&self) -> bool {
        self.is_required
    }

    /// Whether it may have any key.
    pub const fn is_open(&self) -> bool {
        self.keys.is_none()
    }

    /// Returns its keys, and behind them those that are a value or a table, as values.
    pub fn values(&self) -> Vec<ParameterInfo> {
        let mut all = self.keys();
        all.extend(self.within.iter().filter_map(Section::shorthand));
        all
    }

    /// Returns its keys, without those that may be tables.
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
