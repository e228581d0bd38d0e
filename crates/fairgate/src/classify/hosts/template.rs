//! Templates: a number of equal classes, each for the packets of one host.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use crate::classify::{Classifier, HostBy};
use crate::error::ConfigError;
use crate::packet::LAST_CLASS;

/// Classes of a discipline that are assigned to hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The number of the first class. If a filter, the default or a packet names it, the packet goes to the
    /// class of its host.
    pub class: u32,
    /// The number of classes. Their numbers follow the first.
    pub count: u32,
    /// The fields that identify hosts.
    pub by: HostBy,
    /// The class for hosts that get none. It can be any other class that holds packets.
    pub overflow: u32,
}

/// The templates of a discipline.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// The templates by ascending class number.
    pub list: Vec<Template>,
    /// The key of the hash that identifies hosts. It is secret, because whoever knows it could cause
    /// collisions. A change of parameters does not change it.
    pub seed: u64,
}

/// Leaves out the key, because it is secret.
impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl Template {
    /// Returns the numbers of its classes.
    pub fn classes(&self) -> RangeInclusive<u32> {
        self.class..=self.class.saturating_add(self.count.saturating_sub(1))
    }
}

impl Templates {
    /// Checks that all templates are made of classes that hold packets (`is_leaf`), and that `classifier`
    /// names only the first class of a template.
    pub(crate) fn check(
        &self,
        classifier: &Classifier,
        is_leaf: impl Fn(u32) -> bool,
    ) -> Result<(), ConfigError> {
        for (place, template) in self.list.iter().enumerate() {
            self.check_one(template, self.list[..place].last(), &is_leaf)?;
        }
        let of_filters = classifier.filters.iter();
        let of_filters = of_filters.filter_map(|filter| Some(("class", filter.outcome.class()?)));
        let of_default = classifier.default.map(|class| ("default", class));
        for (parameter, minor) in of_filters.chain(of_default) {
            if let Some(template) = self.of_class(minor)
                && template.class != minor
            {
                let rule = format!("{}, the template that the class is made from", template.class);
                return Err(ConfigError::conflict(
                    parameter,
                    minor,
                    rule,
                    "name the template; its classes are assigned to hosts",
                ));
            }
        }
        Ok(())
    }

    fn check_one(
        &self,
        template: &Template,
        before: Option<&Template>,
        is_leaf: &impl Fn(u32) -> bool,
    ) -> Result<(), ConfigError> {
        let refused = |parameter, value: String, rule: &str, remedy: &str| {
            Err(ConfigError::class_conflict(
                template.class,
                parameter,
                value,
                rule,
                remedy,
            ))
        };
        let Template {
            class,
            count,
            by,
            overflow,
        } = *template;
        if class == 0 || class > LAST_CLASS || count == 0 || count - 1 > LAST_CLASS - class {
            let most = LAST_CLASS.saturating_sub(class) + 1;
            let rule = format!("1 to {most}: each has a class number of its own, at most {LAST_CLASS}");
            return refused(
                "count",
                count.to_string(),
                &rule,
                "reduce it, or the number of the template",
            );
        }
        if by == HostBy::default() {
            return refused(
                "each",
                "nothing".to_owned(),
                "at least one field that identifies hosts",
                "name a field, such as the destination",
            );
        }
        if before.is_some_and(|before| *before.classes().end() >= class) || !template.classes().all(is_leaf) {
            return refused(
                "count",
                count.to_string(),
                "so low that all of these classes exist, hold packets, and belong to no other template",
                "reduce it, or give the other classes different numbers",
            );
        }
        if !is_leaf(overflow) || self.of_class(overflow).is_some() {
            return refused(
                "overflow",
                overflow.to_string(),
                "a class that holds packets and is not made from a template",
                "name a class for hosts that get no class",
            );
        }
        Ok(())
    }

    /// Returns the template of class `minor`.
    fn of_class(&self, minor: u32) -> Option<&Template> {
        self.list
            .iter()
            .find(|template| template.classes().contains(&minor))
    }
}
