//! What a user set of a discipline: checked values, by the place of their parameter in the registry.

use std::ops::RangeInclusive;

use fairgate::classify::{Classifier, Template};

use crate::value::Value;

/// A setting: the parameter's place among the discipline's parameters, and its value.
pub type Setting = (usize, Value);

/// What was set of a discipline. What isn't here has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Its parameters, in their order.
    pub own: Vec<Setting>,
    /// Its classes, in the order of their numbers.
    pub classes: Vec<ClassSettings>,
    /// Handle, filters and default class.
    pub classifier: Classifier,
}

/// What was set of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSettings {
    /// Its number.
    pub minor: u16,
    /// Of classes that are given to hosts, all of them; this one's number is the first.
    pub template: Option<Template>,
    /// Its parameters, in their order.
    pub settings: Vec<Setting>,
}

impl ClassSettings {
    /// The numbers of the classes with these settings: one, or a template's.
    pub fn minors(&self) -> RangeInclusive<u16> {
        match &self.template {
            Some(template) => template.classes(),
            None => self.minor..=self.minor,
        }
    }
}
