//! What can be wrong with a scenario, and with which part of it.

use thiserror::Error;

/// The part of a scenario at fault, for whoever knows where in a file it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// No part in particular.
    Scenario,
    /// The link of this index.
    Link(usize),
    /// The flow of this index.
    Flow(usize),
}

/// A scenario that can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct ScenarioError {
    /// The part at fault.
    pub culprit: Culprit,
    /// The field at fault, as files name it.
    pub field: &'static str,
    /// The rule that it breaks, and the remedy.
    pub what: String,
}

/// A mistake in one part, which doesn't know where it stands in the whole.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) field: &'static str,
    pub(crate) what: String,
}

impl Mistake {
    pub(crate) fn new(field: &'static str, what: impl Into<String>) -> Mistake {
        Mistake {
            field,
            what: what.into(),
        }
    }

    pub(crate) fn of(self, culprit: Culprit) -> ScenarioError {
        ScenarioError {
            culprit,
            field: self.field,
            what: self.what,
        }
    }
}
