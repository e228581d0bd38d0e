//! What can be wrong with a setting.

use alloc::string::String;
use alloc::string::ToString;

use thiserror::Error;

/// A parameter that a discipline refuses. `fairgate-config` adds the place in the user's file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A value outside of what the parameter may be.
    #[error("`{parameter}` is {value}, but must be {rule}; {remedy}")]
    OutOfRange {
        /// The parameter's name, as users write it.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        rule: String,
        /// What to do about it.
        remedy: String,
    },
    /// A parameter of a class outside of what it may be beside the other classes.
    #[error("`{parameter}` of class {class:x} is {value}, but must be {rule}; {remedy}")]
    OfClass {
        /// The class's number.
        class: u16,
        /// The parameter's name, as users write it.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        rule: String,
        /// What to do about it.
        remedy: String,
    },
    /// Settings of one discipline were handed to another.
    #[error("these settings are not for `{discipline}`; replace the discipline instead of reconfiguring it")]
    WrongDiscipline {
        /// The discipline that was to be reconfigured.
        discipline: &'static str,
    },
    /// A class was named that this discipline does not have.
    #[error("`{discipline}` has no class {class}; name one of its classes or add it")]
    NoSuchClass {
        /// The discipline.
        discipline: &'static str,
        /// The class that was asked for.
        class: String,
    },
}

impl ConfigError {
    /// Says that `parameter` was `value`, must be `rule`, and what to do.
    pub fn out_of_range(
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> ConfigError {
        ConfigError::OutOfRange {
            parameter,
            value: value.to_string(),
            rule: rule.to_string(),
            remedy: remedy.to_string(),
        }
    }

    /// Says that `parameter` of class `class` was `value`, must be `rule`, and what to do.
    pub fn of_class(
        class: u16,
        parameter: &'static str,
        value: impl ToString,
        rule: impl ToString,
        remedy: impl ToString,
    ) -> ConfigError {
        ConfigError::OfClass {
            class,
            parameter,
            value: value.to_string(),
            rule: rule.to_string(),
            remedy: remedy.to_string(),
        }
    }

    /// The parameter at fault, if it is one.
    pub fn parameter(&self) -> Option<&'static str> {
        match self {
            ConfigError::OutOfRange { parameter, .. } | ConfigError::OfClass { parameter, .. } => {
                Some(parameter)
            }
            _ => None,
        }
    }
}
