//! Why an experiment has no result.

use fairgate::ConfigError;
use fairgate_bench::JobError;
use fairgate_config::FileError;
use fairgate_theory::guarantees::trial::TrialError;
use thiserror::Error;

/// Why an experiment has no result. None of these is a claim that does not hold: that is a result.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// Its file is wrong.
    #[error("the experiment's file is wrong")]
    File(#[from] FileError),
    /// A discipline can't be built.
    #[error("a discipline can't be built: {0}")]
    Discipline(String),
    /// The simulator refused.
    #[error(transparent)]
    Simulation(#[from] fairgate_sim::Error),
    /// A scheduler was not measured.
    #[error("{scheduler} of {flows} flows can't be measured")]
    Job {
        /// The scheduler.
        scheduler: &'static str,
        /// How many flows.
        flows: u32,
        /// Why.
        source: JobError,
    },
    /// A scheduler lost packets, or let the link stand still.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A line of the published values is wrong.
    #[error("line {line} of the published values: {what}")]
    Published {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what it should be.
        what: String,
    },
    /// The experiment's function does not do what its file says.
    #[error("the experiment `{id}` is at fault: {what}")]
    Fault {
        /// The experiment.
        id: &'static str,
        /// What it did or left undone.
        what: String,
    },
}

impl From<ConfigError> for ReproduceError {
    fn from(error: ConfigError) -> ReproduceError {
        ReproduceError::Discipline(error.to_string())
    }
}
