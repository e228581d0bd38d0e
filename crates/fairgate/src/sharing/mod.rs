//! Link sharing: classes in a tree. The leaves hold disciplines, the inner classes distribute capacity.
//!
//! All disciplines here have in common: the shape of the tree and its rules (`tree`), the leaves and which of
//! them are parked (`leaves`), and the statistics of classes (`statistics`).

mod borrowing;
pub mod cbq;
mod differences;
mod event_queue;
pub mod hfsc;
pub mod htb;
mod index;
mod leaves;
mod ordered_set;
mod round_robins;
mod statistics;
mod tree;

#[cfg(test)]
mod shapes;
#[cfg(test)]
mod succession_tests;

use crate::packet::LAST_CLASS;
use crate::registry::{Lens, PARENT, Parameter, Unit};

/// The parameter of a class that names the class above it.
const fn parent<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        PARENT,
        Unit::Count("class"),
        1..=LAST_CLASS as u64,
        "The class above this one. A class without one is at the top.",
        field,
    )
}
