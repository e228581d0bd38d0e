//! The arguments of an experiment's function.

use fairgate_config::{Document, FileError};
use fairgate_live::testbed::Interrupt;
use serde::de::DeserializeOwned;

use crate::bench::{Job, JobError};
use crate::reproduce::description;
use crate::reproduce::published::Published;

/// Counts the instructions of a pair of a job, including those of the controller.
pub type Count<'a> = &'a (dyn Fn(&Job) -> Result<f64, JobError> + Sync);

/// The conditions of a run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// The seeds. If chance matters, there is one run for each seed.
    pub seeds: &'a [u64],
    /// Whether to measure only enough to see that everything works. Claims may then fail for lack of data.
    pub quick: bool,
    /// Called from time to time with the share that is done, 0 to 1, and the name of the next step.
    pub progress: &'a (dyn Fn(f64, &str) + Sync),
    /// Counts instructions, if that is possible. A program counts its own instructions by running again, so
    /// it must provide this.
    pub count: Option<Count<'a>>,
    /// Runs the experiment live, with real traffic beside the simulation, until the process is asked to end.
    pub live: Option<&'a Interrupt>,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Conditions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conditions").finish_non_exhaustive()
    }
}

/// The arguments of an experiment's function.
#[derive(Debug)]
pub struct Run<'a> {
    /// The experiment's file.
    pub document: &'a Document,
    /// The conditions of the run.
    pub conditions: Conditions<'a>,
    /// The values that the paper gives.
    pub published: &'a [Published],
}

impl Run<'_> {
    /// Reads the experiment's own parameters, `[experiment.parameters]`.
    ///
    /// # Errors
    /// Returns an error if they are missing or invalid.
    pub fn parameters<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        description::parameters(self.document)
    }
}
