//! An experiment, and the arguments of its function.

use fairgate_bench::{Job, JobError};
use fairgate_config::{Document, FileError};
use serde::de::DeserializeOwned;

use crate::ReproduceError;
use crate::description::{self, Description};
use crate::findings::Findings;
use crate::published::{self, Published};
use crate::reproduction::Reproduction;

/// An experiment of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// The name of the experiment.
    pub id: &'static str,
    /// The text of its file.
    pub(crate) file: &'static str,
    /// The text of the published values.
    pub(crate) published: &'static str,
    /// Whether it counts instructions, if that is possible.
    pub counts: bool,
    /// Measures and judges the claims.
    pub(crate) run: fn(&Run<'_>) -> Result<Findings, ReproduceError>,
}

/// Counts the instructions of a pair of a job, including those of the controller.
pub type Count<'a> = &'a dyn Fn(&Job) -> Result<f64, JobError>;

/// The conditions of a run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// The seeds. If chance matters, there is one run for each seed.
    pub seeds: &'a [u64],
    /// Whether to measure only enough to see that everything works. Claims may then fail for lack of data.
    pub quick: bool,
    /// Called from time to time with the share that is done, 0 to 1, and the name of the next step.
    pub progress: &'a dyn Fn(f64, &str),
    /// Counts instructions, if that is possible. A program counts its own instructions by running again, so
    /// it must provide this.
    pub count: Option<Count<'a>>,
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

impl Experiment {
    /// Parses the experiment's file. If it has a `[simulate]` section, it is a scenario that can also be
    /// simulated alone.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn document(&self) -> Result<Document, FileError> {
        Document::parse(&format!("{}.toml", self.id), self.file)
    }

    /// Reads the description of the experiment.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn description(&self) -> Result<Description, FileError> {
        Description::read(&self.document()?)
    }

    /// Reads the values that the paper's text gives.
    ///
    /// # Errors
    /// Returns an error that names the invalid line.
    pub fn published(&self) -> Result<Vec<Published>, ReproduceError> {
        published::read(self.published)
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// Returns an error if the experiment could not be run, or if its function does not match its file.
    pub fn reproduce(&self, conditions: Conditions<'_>) -> Result<Reproduction, ReproduceError> {
        let document = self.document()?;
        let description = Description::read(&document)?;
        let published = self.published()?;
        let findings = (self.run)(&Run {
            document: &document,
            conditions,
        })?;
        let Conditions { seeds, quick, .. } = conditions;
        Reproduction::new(self.id, description, seeds, quick, findings, published)
    }
}
