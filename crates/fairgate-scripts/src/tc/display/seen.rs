//! A discipline as the table of kinds sees it: its parameters and classes.

use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use fairgate_config::{ClassSpec, ParameterInfo, Spec, Value};

use super::detail::{Detail, plain};

/// A discipline and its parameters.
pub(in crate::tc) struct Seen<'s> {
    pub(in crate::tc) spec: &'s Spec,
    pub(in crate::tc) parameters: Vec<(ParameterInfo, Value)>,
    /// The discipline's `Config`, made when it is needed first: that of a tree has all its classes.
    config: OnceCell<Box<dyn Any + Send>>,
    /// The places of the classes in the `Config`, by their numbers.
    places: OnceCell<BTreeMap<u32, usize>>,
}

impl<'s> Seen<'s> {
    pub(in crate::tc) fn new(spec: &'s Spec) -> Seen<'s> {
        let parameters = spec.parameters();
        Seen {
            spec,
            parameters,
            config: OnceCell::new(),
            places: OnceCell::new(),
        }
    }

    /// Returns the parameter `name`, if it is a number.
    pub(in crate::tc) fn number(&self, name: &str) -> Option<u64> {
        match value(&self.parameters, name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the parameter `name`, if it is a word.
    pub(in crate::tc) fn word(&self, name: &str) -> Option<&'static str> {
        match value(&self.parameters, name)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the parameter `name` was set.
    pub(in crate::tc) fn is_given(&self, name: &str) -> bool {
        self.spec.is_given(name)
    }

    /// Whether the parameter `name` is this word.
    pub(in crate::tc) fn is_word(&self, name: &str, word: &str) -> bool {
        self.word(name) == Some(word)
    }

    pub(in crate::tc) fn is_none(&self, name: &str) -> bool {
        value(&self.parameters, name) == Some(&Value::None)
    }

    pub(in crate::tc) fn classes(&self) -> Vec<ClassSpec<'s>> {
        self.spec.classes()
    }

    pub(in crate::tc) fn number_of_classes(&self, word: &'static str) -> Detail {
        Detail::new(word, plain(self.classes().len() as u64))
    }

    pub(in crate::tc) fn default_class(&self) -> Option<u32> {
        self.spec.classifier().default
    }

    /// Returns the discipline's `Config`.
    pub(in crate::tc) fn config<C: 'static>(&self) -> &C {
        let made = || self.spec.config().expect("the description was checked");
        let config = self.config.get_or_init(made);
        config.downcast_ref().expect("the kind belongs to the discipline")
    }

    /// Returns the class `minor` of `classes`, the classes of the discipline's `Config`. To search for each
    /// class of a large tree from the start would take quadratic time.
    pub(in crate::tc) fn class_of<'c, C>(
        &self,
        classes: &'c [C],
        minor: u32,
        number: fn(&C) -> u32,
    ) -> Option<&'c C> {
        let places = self.places.get_or_init(|| {
            let numbers = classes.iter().map(number);
            numbers
                .enumerate()
                .map(|(place, number)| (number, place))
                .collect()
        });
        classes.get(*places.get(&minor)?)
    }
}

pub(in crate::tc) fn value<'p>(parameters: &'p [(ParameterInfo, Value)], name: &str) -> Option<&'p Value> {
    let parameter = parameters.iter().find(|(info, _)| info.name == name);
    parameter.map(|(_, value)| value)
}
