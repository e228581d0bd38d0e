//! A qdisc or a class with its options, as tc shows it.

use std::fmt;
use std::ops::RangeInclusive;

use fairgate::ClassId;

use super::{Detail, State};

/// A qdisc or a class as tc writes it: `1:` or `1:a`. Fairgate has class numbers above ffff, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Id {
    /// The handle of the qdisc.
    pub handle: u16,
    /// The number of the class, or 0 for the qdisc.
    pub class: u32,
}

impl From<ClassId> for Id {
    fn from(id: ClassId) -> Id {
        Id {
            handle: id.major(),
            class: id.minor().into(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            0 => write!(f, "{:x}:", self.handle),
            class => write!(f, "{:x}:{class:x}", self.handle),
        }
    }
}

/// A qdisc, or a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// tc's kind.
    pub kind: &'static str,
    /// Whether it is a class.
    pub is_class: bool,
    /// What it is called.
    pub id: Id,
    /// The parent. `None` for the root, and for classes that the kernel shows as children of the root.
    pub parent: Option<Id>,
    /// The handle of the qdisc in a class, if the class has no classes below it.
    pub leaf: Option<u16>,
    /// Options in tc's order, including those for `-d`.
    pub options: Vec<Detail>,
    /// Whether its rate is estimated.
    pub has_estimator: bool,
    /// The class numbers on the path from the root.
    pub path: Vec<u32>,
    /// Set if the path leads through a class for hosts, or ends there.
    pub hosts: Option<Hosts>,
}

/// The classes that are given to hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The length of the path up to the class, including it.
    pub depth: usize,
    /// The numbers of the classes.
    pub classes: RangeInclusive<u32>,
}

impl Shown {
    /// Returns its options with the values of its variables, as tc shows them with or without `-d`.
    pub fn options(&self, state: &State, in_detail: bool) -> Vec<Detail> {
        let shown = self.options.iter().filter(|option| option.when.is_now(in_detail));
        shown.filter_map(|option| option.resolved(state)).collect()
    }
}
