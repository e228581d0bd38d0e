//! An experiment.

use std::borrow::Cow;

use fairgate_config::{Document, FileError, Registry};
use fairgate_sim::SECTIONS;

use crate::reproduce::ReproduceError;
use crate::reproduce::also;
use crate::reproduce::description::Description;
use crate::reproduce::findings::Findings;
use crate::reproduce::published::{self, Published};
use crate::reproduce::reproduction::Reproduction;
use crate::reproduce::run::{Conditions, Run};
use crate::reproduce::scenario;

/// An experiment of a paper.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name of the experiment.
    pub id: Cow<'static, str>,
    /// The path of a user's own file. `None` if the file is embedded.
    pub(crate) path: Option<String>,
    /// The text of its file.
    pub(crate) file: Cow<'static, str>,
    /// The text of the published values.
    pub(crate) published: Cow<'static, str>,
    /// Whether it counts instructions, if that is possible.
    pub counts: bool,
    /// Measures and judges the claims.
    pub(crate) run: fn(&Run<'_>) -> Result<Findings, ReproduceError>,
}

impl Experiment {
    /// Creates an experiment that is data alone from the text of a file with `[experiment]` and `[simulate]`.
    /// Errors name `path`, and relative paths in the file begin at its folder. `published` is the text of a
    /// file of published values, if there are any.
    ///
    /// # Errors
    /// Returns an error if one of the texts is invalid.
    pub fn from_text(
        id: &str,
        path: &str,
        text: String,
        published: Option<String>,
    ) -> Result<Experiment, ReproduceError> {
        let experiment = Experiment {
            id: Cow::Owned(id.to_owned()),
            path: Some(path.to_owned()),
            file: Cow::Owned(text),
            published: published.map_or(Cow::Borrowed(published::NONE), Cow::Owned),
            counts: false,
            run: scenario::run,
        };
        experiment.description()?;
        experiment.published()?;
        Ok(experiment)
    }

    /// Returns the experiment with other disciplines of the library beside those of the paper. No claim is
    /// judged by them.
    ///
    /// # Errors
    /// Returns an error if the experiment does not compare disciplines by cases of its file.
    pub fn also(&self, disciplines: &[String]) -> Result<Experiment, FileError> {
        let file = Cow::Owned(also::with(&self.document()?, disciplines)?);
        Ok(Experiment { file, ..self.clone() })
    }

    /// Parses the experiment's file. If it has a `[simulate]` section, it is a scenario that can also be
    /// simulated alone.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn document(&self) -> Result<Document, FileError> {
        let registry = Registry::builtin().with_sections(SECTIONS);
        match &self.path {
            Some(path) => Document::parse_with(path, &self.file, &registry),
            None => Document::parse_with(&format!("{}.toml", self.id), &self.file, &registry),
        }
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
        published::read(&self.published)
    }

    /// Returns whether a user means this experiment by `word`: its name, or the path of its file.
    pub fn is_called(&self, word: &str) -> bool {
        self.id == word || self.path.as_deref() == Some(word)
    }

    /// Returns whether it can be run live: its file has `[experiment.live]`.
    ///
    /// # Errors
    /// Returns an error if the file is invalid.
    pub fn can_run_live(&self) -> Result<bool, FileError> {
        scenario::can_run_live(&self.document()?)
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
            published: &published,
        })?;
        let Conditions { seeds, quick, .. } = conditions;
        Reproduction::new(&self.id, description, seeds, quick, findings, published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_does_not_exist_is_refused_with_what_is_meant() {
        let text = "[experiment]\npaper = \"own\"\n[simulat]\nduration = \"1s\"\n".to_owned();
        let refused = Experiment::from_text("own", "own.toml", text, None).expect_err("no section simulat");
        let said = format!("{refused:?}");
        assert!(said.contains("there is no section `simulat`"), "{said}");
        assert!(said.contains("simulate"), "{said}");
    }
}
