//! Rates that follow a line: `[[simulate.autorate]]`.
//!
//! ```toml
//! [[simulate.autorate]]
//! interface = "router->home"        # its name in the results
//! probe = "ping"                    # a [[simulate.flow]] with `ping`
//! rate = { min = "2mbit", base = "20mbit", max = "50mbit" }
//! tuning = { threshold = "20ms" }   # other settings than the defaults
//! ```

use fairgate::registry::{Parameter, Section, Shape, Unit};
use fairgate_config::autorate::{TUNING, bounds_section, read_bounds, read_tuning};
use fairgate_config::{FileError, Table};

use super::Reader;
use super::names::Network;
use super::repeat::EACH;
use crate::scenario::Autorate;

/// The tables `[[simulate.autorate]]`.
pub(super) const AUTORATE: Section =
    Section::new("autorate", "a rate that follows the capacity of a line", || {
        Parameter::infos(&KEYS, Keys::default())
    })
    .shaped(Shape::List)
    .with(&WITHIN);

static WITHIN: [Section; 3] = [bounds_section("rate", "its rates").required(), TUNING, EACH];

#[derive(Default)]
struct Keys {
    interface: String,
    probe: String,
}

static KEYS: [Parameter<Keys>; 2] = [
    Parameter::required_word(
        "interface",
        Unit::Text("interface"),
        "An interface with a shaper, as the results name it: router->home.",
        |keys, _| &mut keys.interface,
    ),
    Parameter::required_word(
        "probe",
        Unit::Text("flow"),
        "A flow with `ping`, whose delay says how full the line is.",
        |keys, _| &mut keys.probe,
    ),
];

impl Reader<'_> {
    /// Adds the autorate of table `index`, or one for each copy.
    pub(super) fn add_autorates(
        &self,
        network: &mut Network,
        index: usize,
        section: &Table,
    ) -> Result<(), FileError> {
        let rate = section.table("rate").unwrap_or_default();
        let rate = read_bounds(self.document, &rate)?;
        let tuning = section.table("tuning").unwrap_or_default();
        let settings = read_tuning(self.document, &tuning)?;
        if let Some(span) = tuning.span_of("probe_interval") {
            return Err(self.document.error(
                span,
                "in a simulation the pings are the probes, and their flow says when they are sent",
                "remove `probe_interval`, and set `interval` of the ping",
            ));
        }
        for copy in self.copies(section)? {
            let autorate = Autorate {
                interface: self.filled(section, "interface", &copy)?,
                probe: self.filled(section, "probe", &copy)?,
                rate,
                settings,
            };
            network.add_autorate(autorate, index);
        }
        Ok(())
    }
}
