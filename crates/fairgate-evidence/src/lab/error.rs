//! Why a scenario has no live results.

use fairgate_config::FileError;
use fairgate_live::LiveError;
use fairgate_live::testbed::TestbedError;
use thiserror::Error;

/// A part of a scenario that cannot be expressed with namespaces.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{part} cannot be run live: {what}")]
pub struct NotLive {
    /// The part.
    pub part: String,
    /// What is not possible, and what is.
    pub what: String,
}

impl NotLive {
    pub(crate) fn new(part: impl Into<String>, what: impl Into<String>) -> NotLive {
        NotLive {
            part: part.into(),
            what: what.into(),
        }
    }
}

/// Why a scenario has no live results.
#[derive(Debug, Error)]
pub enum LabError {
    /// The scenario cannot be expressed.
    #[error(transparent)]
    NotLive(#[from] NotLive),
    /// A queue cannot be built.
    #[error("a queue of the scenario cannot be run live")]
    Queue(#[from] FileError),
    /// The network or a bridge failed, or the run was interrupted.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A sender or receiver failed.
    #[error("flow `{flow}`: {action} failed")]
    Flow {
        /// The flow.
        flow: String,
        /// What was tried.
        action: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The counters of a bridge do not add up. This is a bug.
    #[error("the counters of a bridge do not add up")]
    Imbalance(#[from] fairgate::balance::Imbalance),
}

impl From<LiveError> for LabError {
    fn from(error: LiveError) -> LabError {
        LabError::Testbed(error.into())
    }
}
