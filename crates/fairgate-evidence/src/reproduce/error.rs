//! The reasons why an experiment has no result.

use fairgate::ConfigError;
use fairgate_config::FileError;
use fairgate_theory::guarantees::trial::TrialError;
use thiserror::Error;

use crate::bench::JobError;

/// The reason why an experiment has no result. A claim that does not hold is a result, not an error.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// The experiment's file is invalid.
    #[error("the experiment's file is wrong")]
    File(#[from] FileError),
    /// A discipline can't be built.
    #[error("a discipline can't be built: {0}")]
    Discipline(String),
    /// The simulator returned an error.
    #[error(transparent)]
    Simulation(#[from] fairgate_sim::Error),
    /// The speed of a scheduler could not be measured.
    #[error("{scheduler} of {flows} flows can't be measured")]
    Job {
        /// The scheduler.
        scheduler: &'static str,
        /// The number of flows.
        flows: u32,
        /// The reason.
        source: JobError,
    },
    /// A scheduler lost packets, or left the link idle while packets were queued.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A live run failed.
    #[error(transparent)]
    Live(#[from] crate::lab::LabError),
    /// The experiment has no live part.
    #[error("{id} cannot be run live")]
    NotLive {
        /// The experiment.
        id: String,
    },
    /// A line of the published values is invalid.
    #[error("line {line} of the published values: {what}")]
    Published {
        /// The line, from 1.
        line: usize,
        /// The error, and what is allowed.
        what: String,
    },
    /// The experiment's function does not match its file.
    #[error("the experiment `{id}` has a bug: {what}")]
    Bug {
        /// The experiment.
        id: String,
        /// The difference between function and file.
        what: String,
    },
}

impl From<ConfigError> for ReproduceError {
    fn from(error: ConfigError) -> ReproduceError {
        ReproduceError::Discipline(error.to_string())
    }
}
