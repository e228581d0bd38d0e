//! An experiment, and what its function gets to run it.

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
    /// Measures, and judges the claims.
    pub(crate) run: fn(&Run<'_>) -> Result<Findings, ReproduceError>,
}

/// How an experiment is to be run.
pub struct Run<'a> {
    /// The experiment's file.
    pub document: &'a Document,
    /// The seeds: a run for each where chance matters.
    pub seeds: &'a [u64],
    /// Whether to measure as little as shows that everything works. Claims may then fail for want of data.
    pub quick: bool,
    /// To be told now and then how much is done, 0 to 1, and what comes next.
    pub progress: &'a dyn Fn(f64, &str),
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

    /// Runs the experiment with one run for each of `seeds` where chance matters.
    ///
    /// # Errors
    /// If it could not be run, or its function does not do what the file says.
    pub fn reproduce(
        &self,
        seeds: &[u64],
        quick: bool,
        progress: &dyn Fn(f64, &str),
    ) -> Result<Reproduction, ReproduceError> {
        let document = self.document()?;
        let description = Description::read(&document)?;
        let published = self.published()?;
        let findings = (self.run)(&Run {
            document: &document,
            seeds,
            quick,
            progress,
        })?;
        Reproduction::new(self.id, description, seeds, quick, findings, published)
    }
}
