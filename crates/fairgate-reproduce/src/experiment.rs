//! An experiment, and what its function gets to run it.

use fairgate_bench::{Job, JobError};
use fairgate_config::{Document, FileError};
use serde::de::DeserializeOwned;

use crate::ReproduceError;
use crate::description::{self, Description};
use crate::findings::Findings;
use crate::published::{self, Published};
use crate::reproduction::Reproduction;

/// An experiment of a paper.
pub struct Experiment {
    /// Its name.
    pub id: &'static str,
    /// Its file.
    pub(crate) file: &'static str,
    /// The published values.
    pub(crate) published: &'static str,
    /// Whether it counts instructions, where that can be done.
    pub counts: bool,
    /// Measures, and judges the claims.
    pub(crate) run: fn(&Run<'_>) -> Result<Findings, ReproduceError>,
}

/// Instructions of a pair of a job, the controller's own included.
pub type Count<'a> = &'a dyn Fn(&Job) -> Result<f64, JobError>;

/// How an experiment is to be run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// The seeds: a run for each where chance matters.
    pub seeds: &'a [u64],
    /// Whether to measure as little as shows that everything works. Claims may then fail for want of data.
    pub quick: bool,
    /// To be told now and then how much is done, 0 to 1, and what comes next.
    pub progress: &'a dyn Fn(f64, &str),
    /// Counts instructions, if that can be done. A program counts itself, by running again: only it knows how.
    pub count: Option<Count<'a>>,
}

/// What an experiment's function gets.
pub struct Run<'a> {
    /// The experiment's file.
    pub document: &'a Document,
    /// How it is to be run.
    pub conditions: Conditions<'a>,
}

impl Run<'_> {
    /// The experiment's own parameters, `[experiment.parameters]`.
    ///
    /// # Errors
    /// If they are missing or are not what is asked for.
    pub fn parameters<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        description::parameters(self.document)
    }
}

impl Experiment {
    /// The experiment's file: a scenario that may be simulated by itself where there is a `[simulate]` section in it.
    ///
    /// # Errors
    /// If the file is wrong.
    pub fn document(&self) -> Result<Document, FileError> {
        Document::parse(&format!("{}.toml", self.id), self.file)
    }

    /// The experiment in words.
    ///
    /// # Errors
    /// If the file is wrong.
    pub fn description(&self) -> Result<Description, FileError> {
        Description::read(&self.document()?)
    }

    /// The values that the paper's text gives.
    ///
    /// # Errors
    /// Names the line that is wrong.
    pub fn published(&self) -> Result<Vec<Published>, ReproduceError> {
        published::read(self.published)
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// If it could not be run, or its function does not do what the file says.
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
