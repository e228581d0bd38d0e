//! Parameters: what users should know about them, and the field of the settings that holds the value.

use alloc::string::String;
use core::ops::RangeInclusive;

use super::longest::Longest;
use super::unit::Unit;
use super::value::{Field, Value};
use crate::error::ConfigError;

/// Returns the field of the settings that holds a parameter's value. For a parameter of a class, the second
/// argument is the index of the class.
pub type Lens<S> = fn(&mut S, usize) -> &mut dyn Field;

/// Returns the longest packet that a parameter allows, or `None` if it does not limit the length. The second
/// argument says whether there is an inner discipline.
pub type Bound<S> = fn(&S, bool) -> Option<Longest>;

/// A shaper's token bucket, whose depth is a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The name of the parameter that sets the rate of the tokens.
    pub rate: &'static str,
    /// Whether a packet waits for tokens for all its bytes. If not, it leaves as soon as there are any.
    pub is_for_whole_packets: bool,
}

/// A parameter of a discipline, or a key of another section of a file, with settings `S`: name, unit, range
/// and meaning. The default is read from the default settings.
#[derive(Debug)]
pub struct Parameter<S> {
    name: &'static str,
    unit: Unit,
    range: RangeInclusive<u64>,
    is_required: bool,
    doc: &'static str,
    field: Lens<S>,
    longest: Option<Bound<S>>,
    bucket: Option<Bucket>,
    reads_marks: bool,
}

impl<S> Parameter<S> {
    /// Returns a parameter that is a number or a list of numbers, each within `range`. `doc` is one sentence.
    pub const fn new(
        name: &'static str,
        unit: Unit,
        range: RangeInclusive<u64>,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        Parameter {
            name,
            unit,
            range,
            is_required: false,
            doc,
            field,
            longest: None,
            bucket: None,
            reads_marks: false,
        }
    }

    /// Returns a parameter without a range: a word, a flag, or a service curve.
    pub const fn word(name: &'static str, unit: Unit, doc: &'static str, field: Lens<S>) -> Parameter<S> {
        Parameter::new(name, unit, 0..=u64::MAX, doc, field)
    }

    /// Returns a number without a default. The user must give it.
    pub const fn required(
        name: &'static str,
        unit: Unit,
        range: RangeInclusive<u64>,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        let mut parameter = Parameter::new(name, unit, range, doc, field);
        parameter.is_required = true;
        parameter
    }

    /// Returns a parameter without a range and without a default. The user must give it.
    pub const fn required_word(
        name: &'static str,
        unit: Unit,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        Parameter::required(name, unit, 0..=u64::MAX, doc, field)
    }

    /// Returns the parameter with a limit on the length of packets. A packet longer than `longest` returns is
    /// always dropped.
    pub const fn bounding(longest: Bound<S>, mut parameter: Parameter<S>) -> Parameter<S> {
        parameter.longest = Some(longest);
        parameter
    }

    /// Returns the parameter as the depth of a shaper's bucket. A program that wakes up late loses tokens if
    /// the bucket is shallow, and can warn of it.
    pub const fn shaping(bucket: Bucket, mut parameter: Parameter<S>) -> Parameter<S> {
        parameter.bucket = Some(bucket);
        parameter
    }

    /// Returns the parameter as one that reads the firewall marks of packets, unless its value is 0 or none.
    pub const fn reading_marks(mut parameter: Parameter<S>) -> Parameter<S> {
        parameter.reads_marks = true;
        parameter
    }

    /// The name by which users set it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the field that holds the value. The index of the class has a meaning for parameters of classes
    /// only.
    pub fn field<'a>(&self, settings: &'a mut S, class: usize) -> &'a mut dyn Field {
        (self.field)(settings, class)
    }

    pub(super) fn longest(&self) -> Option<Bound<S>> {
        self.longest
    }

    /// Returns what users should know. The default is the value of the parameter in `start`.
    pub fn info(&self, start: &mut S) -> ParameterInfo {
        let field = self.field(start, 0);
        ParameterInfo {
            name: self.name,
            unit: self.unit,
            range: self.range.clone(),
            default: (!self.is_required).then(|| field.read()),
            optional: field.is_optional(),
            bucket: self.bucket,
            reads_marks: self.reads_marks,
            or_table: false,
            doc: self.doc,
        }
    }

    /// Returns the value, the rule and the remedy if the field is out of range.
    fn refuse(&self, settings: &mut S, class: usize) -> Option<(String, String, &'static str)> {
        let field = self.field(settings, class);
        let value = field.read();
        let wrong = match &value {
            Value::Number(number) => Some(*number),
            // A curve is three numbers with three units. The discipline checks it.
            Value::List(_) if self.unit == Unit::Curve => None,
            Value::List(numbers) => numbers
                .iter()
                .copied()
                .find(|number| !self.unit.allows(*number, &self.range)),
            Value::Flag(_) | Value::Word(_) | Value::Text(_) | Value::Texts(_) | Value::None => None,
        };
        let wrong = wrong.filter(|number| !self.unit.allows(*number, &self.range))?;
        let remedy = match self.is_required {
            true => "choose a value in this range",
            false => "choose a value in this range, or leave it out for the default",
        };
        let rule = rule(self.unit, &self.range, field.is_optional(), wrong.into());
        Some((self.unit.show(&Value::Number(wrong)), rule, remedy))
    }
}

/// Checks that each field is within the range of its parameter. The discipline checks the rules between
/// parameters.
///
/// # Errors
/// Names the first parameter that is out of range.
pub fn check_ranges<S>(parameters: &[Parameter<S>], settings: &mut S) -> Result<(), ConfigError> {
    for parameter in parameters {
        if let Some((value, rule, remedy)) = parameter.refuse(settings, 0) {
            return Err(ConfigError::out_of_range(parameter.name, value, rule, remedy));
        }
    }
    Ok(())
}

/// Checks the parameters of class `minor`, which has the index `class` among the classes.
///
/// # Errors
/// Names the class and the first parameter that is out of range.
pub fn check_class_ranges<S>(
    parameters: &[Parameter<S>],
    settings: &mut S,
    class: usize,
    minor: u32,
) -> Result<(), ConfigError> {
    for parameter in parameters {
        if let Some((value, rule, remedy)) = parameter.refuse(settings, class) {
            return Err(ConfigError::out_of_range(parameter.name, value, rule, remedy).of_class(minor));
        }
    }
    Ok(())
}

/// What a user should know about a parameter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParameterInfo {
    /// The name by which users set it.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The allowed numbers, in the base unit. It has no meaning for flags and words.
    pub range: RangeInclusive<u64>,
    /// The value if the user does not set it, read from the default settings. `None` if it is required.
    pub default: Option<Value>,
    /// Whether it can be `"none"`.
    pub optional: bool,
    /// The bucket whose depth it is, if it is one.
    pub bucket: Option<Bucket>,
    /// Whether it reads the firewall marks of packets, unless its value is 0 or none.
    pub reads_marks: bool,
    /// Whether a table may stand in its place.
    pub or_table: bool,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

impl ParameterInfo {
    /// Describes a required plain number of `of` that is not a parameter of a discipline, for example the
    /// number of a class.
    pub const fn number(name: &'static str, of: &'static str, range: RangeInclusive<u64>) -> ParameterInfo {
        let mut info = ParameterInfo::plain(name, Unit::Count(of), "");
        info.range = range;
        info
    }

    /// Describes a required value of any size that is not a parameter of a discipline.
    pub const fn plain(name: &'static str, unit: Unit, doc: &'static str) -> ParameterInfo {
        ParameterInfo {
            name,
            unit,
            range: 0..=u64::MAX,
            default: None,
            optional: false,
            bucket: None,
            reads_marks: false,
            or_table: false,
            doc,
        }
    }

    /// Returns the allowed values as text: `1 to 65536`.
    pub fn allowed(&self) -> String {
        let allowed = allowed(self.unit, &self.range, self.optional);
        match self.or_table {
            true => format!("{allowed}, or a table"),
            false => allowed,
        }
    }

    /// Returns the rule that `number` breaks. The number must be out of range.
    pub fn rule_broken_by(&self, number: i128) -> String {
        rule(self.unit, &self.range, self.optional, number)
    }

    /// Returns what to write, and the meaning of the parameter.
    pub fn remedy(&self) -> String {
        match self.doc {
            "" => self.unit.example(),
            doc => format!("{}. {doc}", self.unit.example()),
        }
    }

    /// Returns the default as users write it.
    pub fn shown_default(&self) -> Option<String> {
        self.default.as_ref().map(|value| self.unit.show(value))
    }
}

fn allowed(unit: Unit, range: &RangeInclusive<u64>, is_optional: bool) -> String {
    let range = unit.show_range(range);
    match is_optional {
        true => format!("{range}, or none"),
        false => range,
    }
}

/// Returns the rule that `number` breaks. The largest number of a machine word is named only if `number`
/// exceeds it.
fn rule(unit: Unit, range: &RangeInclusive<u64>, is_optional: bool, number: i128) -> String {
    let most = *range.end();
    match number > i128::from(most) && unit.hides(most) {
        true => format!("at most {}", unit.show(&Value::Number(most))),
        false => allowed(unit, range, is_optional),
    }
}
