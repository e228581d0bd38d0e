//! Observed variables: `[[simulate.observe]]`.
//!
//! ```toml
//! [[simulate.observe]]
//! name = "fair rate"
//! interface = "router->home"        # its name in the results
//! variable = "fair_rate"            # as the discipline shows it
//! class = "20"                      # or "20/1", "1:14"; without it the root
//! ```

use std::ops::Range;

use fairgate_config::FileError;
use serde::Deserialize;
use toml::Spanned;

use super::names::Network;
use super::repeat::Each;
use super::{Reader, span};
use crate::scenario::Observation;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObserveSection {
    name: Spanned<String>,
    interface: Spanned<String>,
    class: Option<Spanned<String>>,
    variable: Spanned<String>,
    each: Option<Spanned<Each>>,
}

impl ObserveSection {
    /// Returns where `field` is written, or the observation's name.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "interface" => Some(self.interface.span()),
            "class" => span(&self.class),
            "variable" => Some(self.variable.span()),
            _ => None,
        }
        .unwrap_or_else(|| self.name.span())
    }
}

impl Reader<'_> {
    /// Adds the observation of section `index`, or one for each copy.
    pub(super) fn add_observations(
        &self,
        network: &mut Network,
        index: usize,
        observe: &ObserveSection,
    ) -> Result<(), FileError> {
        for copy in self.copies(observe.each.as_ref())? {
            let class = observe.class.as_ref();
            let observation = Observation {
                name: self.fill(&observe.name, &copy)?,
                interface: self.fill(&observe.interface, &copy)?,
                class: class.map(|class| self.fill(class, &copy)).transpose()?,
                variable: self.fill(&observe.variable, &copy)?,
            };
            network.add_observation(observation, index);
        }
        Ok(())
    }
}
