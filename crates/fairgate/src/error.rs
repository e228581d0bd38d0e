//! Errors in settings.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::string::ToString;
use core::fmt;

use thiserror::Error;

/// An error in the settings of a discipline. `fairgate-config` finds the location in the user's file with the
/// [`ParameterPath`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is outside the parameter's range.
    #[error("{0}")]
    OutOfRange(Box<Refusal>),
    /// A value is within its range, but breaks another rule, usually because of another setting.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// Settings of one discipline were given to another.
    #[error("these settings are not for `{discipline}`; replace the discipline instead of reconfiguring it")]
    WrongDiscipline {
        /// The discipline that was to be reconfigured.
        discipline: &'static str,
    },
    /// The discipline does not have the requested class.
    #[error("`{discipline}` has no class {class}; name one of its classes or add it")]
    NoSuchClass {
        /// The discipline.
        discipline: &'static str,
        /// The requested class.
        class: String,
    },
}

/// A rejected value: the parameter, the rule, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The parameter.
    pub path: ParameterPath,
    /// The given value.
    pub value: String,
    /// The rule: what is allowed.
    pub rule: String,
    /// The remedy: what to do.
    pub remedy: String,
}

/// Identifies a parameter of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParameterPath {
    /// The number of the class, or `None` for a parameter of the discipline itself.
    pub class: Option<u32>,
    /// The parameter's name.
    pub parameter: &'static str,
    /// The parameter that users write, if the rejected value is an element of its list. For a `weight` it is
    /// `weights`.
    pub list: Option<&'static str>,
}

impl ParameterPath {
    /// Returns the name of the parameter that users write.
    pub fn key(&self) -> &'static str {
        self.list.unwrap_or(self.parameter)
    }
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Some(class) => write!(f, "`{}` of class {class:x}", self.parameter),
            None => write!(f, "`{}`", self.parameter),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            path,
            value,
            rule,
            remedy,
        } = self;
        write!(f, "{path} is {value}, but must be {rule}; {remedy}")
    }
}

impl Refusal {
    fn new(
        class: Option<u32>,
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> Box<Refusal> {
        Box::new(Refusal {
            path: ParameterPath {
                class,
                parameter,
                list: None,
            },
            value: value.to_string(),
            rule: rule.to_string(),
            remedy: remedy.to_string(),
        })
    }
}

impl ConfigError {
    /// Returns an error: `parameter` is `value`, which is out of range. `rule` completes the sentence "must
    /// be ...". `remedy` says what to do.
    pub fn out_of_range(
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> ConfigError {
        ConfigError::OutOfRange(Refusal::new(None, parameter, value, rule, remedy))
    }

    /// Returns an error: `parameter` is `value`, which breaks a rule. `rule` completes the sentence "must be
    /// ...". `remedy` says what to do.
    pub fn conflict(
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> ConfigError {
        ConfigError::Conflict(Refusal::new(None, parameter, value, rule, remedy))
    }

    /// Returns an error: `parameter` of class `class` is `value`, which breaks a rule. `rule` completes the
    /// sentence "must be ...". `remedy` says what to do.
    pub fn class_conflict(
        class: u32,
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> ConfigError {
        ConfigError::Conflict(Refusal::new(Some(class), parameter, value, rule, remedy))
    }

    /// Changes the error to one about a parameter of class `class`.
    #[must_use]
    pub fn of_class(mut self, class: u32) -> ConfigError {
        if let Some(refusal) = self.refusal_mut() {
            refusal.path.class = Some(class);
        }
        self
    }

    /// Changes the error to one about an element of the list that users write as the parameter `list`.
    #[must_use]
    pub fn in_list(mut self, list: &'static str) -> ConfigError {
        if let Some(refusal) = self.refusal_mut() {
            refusal.path.list = Some(list);
        }
        self
    }

    /// Returns the rejected value, if the error is about a value.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            ConfigError::OutOfRange(refusal) | ConfigError::Conflict(refusal) => Some(refusal),
            _ => None,
        }
    }

    fn refusal_mut(&mut self) -> Option<&mut Refusal> {
        match self {
            ConfigError::OutOfRange(refusal) | ConfigError::Conflict(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns the name of the parameter, if the error is about a value.
    pub fn parameter(&self) -> Option<&'static str> {
        self.refusal().map(|refusal| refusal.path.parameter)
    }
}
