//! The settings that a user gave a discipline: checked values, each with the index of its parameter.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::value::Value;
use crate::classify::{Classifier, Template};

/// A setting: the index of the parameter among the discipline's parameters, and its value.
pub type Setting = (usize, Value);

/// The settings of a discipline. A parameter that is not here has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Its parameters, in their order.
    pub own: Vec<Setting>,
    /// Its classes, in the order of their numbers.
    pub classes: Vec<ClassSettings>,
    /// Handle, filters and default class.
    pub classifier: Classifier,
}

/// The settings of a class.
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
