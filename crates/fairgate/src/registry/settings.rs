//! The settings that a user gave to a discipline: checked values, each with the index of its parameter.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::value::Value;
use crate::classify::{Classifier, Template};

/// A setting: the index of the parameter in the discipline's list of parameters, and the value.
pub type Setting = (usize, Value);

/// The settings of a discipline. A parameter that is not listed has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The settings of its own parameters, in the order of the parameters.
    pub own: Vec<Setting>,
    /// The settings of its classes, in the order of their numbers.
    pub classes: Vec<ClassSettings>,
    /// The handle, the filters and the default class.
    pub classifier: Classifier,
}

/// The settings of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSettings {
    /// The number of the class.
    pub minor: u32,
    /// The template, if the class is one. `minor` is then the number of its first class.
    pub template: Option<Template>,
    /// The settings of its parameters, in the order of the parameters.
    pub settings: Vec<Setting>,
}

impl ClassSettings {
    /// Returns the numbers of the classes with these settings: one, or all numbers of a template.
    pub fn minors(&self) -> RangeInclusive<u32> {
        match &self.template {
            Some(template) => template.classes(),
            None => self.minor..=self.minor,
        }
    }

    /// Returns how many classes have these settings.
    pub fn count(&self) -> usize {
        self.template
            .as_ref()
            .map_or(1, |template| template.count as usize)
    }
}
