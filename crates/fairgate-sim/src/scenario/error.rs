//! Errors in scenarios, with the part that is wrong.

use thiserror::Error;

/// The part of a scenario that is wrong. A caller who knows the file can find the location with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScenarioPart {
    /// The scenario as a whole.
    Scenario,
    /// The node with this index.
    Node(usize),
    /// The link with this index.
    Link(usize),
    /// The flow with this index.
    Flow(usize),
    /// The Wi-Fi cell with this index.
    Cell(usize),
    /// The observation with this index.
    Observation(usize),
    /// The capture with this index.
    Capture(usize),
    /// The autorate with this index.
    Autorate(usize),
}

/// A scenario that can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct ScenarioError {
    /// The wrong part.
    pub part: ScenarioPart,
    /// The wrong field, as files name it.
    pub field: &'static str,
    /// What is wrong, and the remedy.
    pub what: String,
}

/// A mistake in one part. It does not know the position of that part in the scenario.
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

    pub(crate) fn of(self, part: ScenarioPart) -> ScenarioError {
        ScenarioError {
            part,
            field: self.field,
            what: self.what,
        }
    }
}
