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
    /// The rule that it breaks, and the remedy.
    pub what: String,
}

impl ScenarioError {
    pub(crate) fn new(culprit: Culprit, what: impl Into<String>) -> ScenarioError {
        ScenarioError {
            culprit,
            what: what.into(),
        }
    }
}
