//! Rates that follow a line: `[[simulate.autorate]]`.
//!
//! ```toml
//! [[simulate.autorate]]
//! interface = "router->home"        # its name in the results
//! probe = "ping"                    # a [[simulate.flow]] with `ping`
//! rate = { min = "2mbit", base = "20mbit", max = "50mbit" }
//! tuning = { threshold = "20ms" }   # other settings than the defaults
//! ```

use std::ops::Range;

use fairgate_config::autorate::{read_bounds, read_tuning};
use fairgate_config::{FileError, Table};
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::names::Network;
use super::repeat::Each;
use crate::scenario::Autorate;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AutorateSection {
    interface: Spanned<String>,
    probe: Spanned<String>,
    rate: Spanned<Table>,
    #[serde(default)]
    tuning: Table,
    each: Option<Spanned<Each>>,
}

impl AutorateSection {
    /// Returns where `field` is written, or the interface.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "probe" => self.probe.span(),
            "rate" => self.rate.get_ref().span_of("min").unwrap_or(self.rate.span()),
            _ => self.interface.span(),
        }
    }
}

impl Reader<'_> {
    /// Adds the autorate of section `index`, or one for each copy.
    pub(super) fn add_autorates(
        &self,
        network: &mut Network,
        index: usize,
        section: &AutorateSection,
    ) -> Result<(), FileError> {
        let rate = read_bounds(self.document, section.rate.get_ref())?;
        let settings = read_tuning(self.document, &section.tuning)?;
        if let Some(span) = section.tuning.span_of("probe_interval") {
            return Err(self.document.error(
                span,
                "in a simulation the pings are the probes, and their flow says when they are sent",
                "remove `probe_interval`, and set `interval` of the ping",
            ));
        }
        for copy in self.copies(section.each.as_ref())? {
            let autorate = Autorate {
                interface: self.fill(&section.interface, &copy)?,
                probe: self.fill(&section.probe, &copy)?,
                rate,
                settings,
            };
            network.add_autorate(autorate, index);
        }
        Ok(())
    }
}
