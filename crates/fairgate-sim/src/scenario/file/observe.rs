//! Observed variables: `[[simulate.observe]]`.
//!
//! ```toml
//! [[simulate.observe]]
//! name = "fair rate"
//! interface = "router->home"        # its name in the results
//! variable = "fair_rate"            # as the discipline shows it
//! class = "20"                      # or "20/1", "1:14"; without it the root
//! ```

use fairgate::registry::{Parameter, Section, Shape, Unit};
use fairgate_config::{FileError, Table};

use super::Reader;
use super::names::Network;
use super::repeat::EACH;
use crate::scenario::Observation;

/// The tables `[[simulate.observe]]`.
pub(super) const OBSERVE: Section = Section::new("observe", "a variable of a discipline over time", || {
    Parameter::infos(&KEYS, Keys::default())
})
.shaped(Shape::List)
.with(&WITHIN);

static WITHIN: [Section; 1] = [EACH];

#[derive(Default)]
struct Keys {
    name: String,
    interface: String,
    class: String,
    variable: String,
}

static KEYS: [Parameter<Keys>; 4] = [
    Parameter::required_word(
        "name",
        Unit::Text("name"),
        "The name in the results, different for each observation.",
        |keys, _| &mut keys.name,
    ),
    Parameter::required_word(
        "interface",
        Unit::Text("interface"),
        "An interface, as the results name it: router->home.",
        |keys, _| &mut keys.interface,
    ),
    Parameter::word(
        "class",
        Unit::Text("class"),
        "A class of its discipline: \"20\", \"20/1\" or \"1:14\"; default: the root.",
        |keys, _| &mut keys.class,
    ),
    Parameter::required_word(
        "variable",
        Unit::Text("variable"),
        "The variable, as the discipline shows it in `fairgate status`.",
        |keys, _| &mut keys.variable,
    ),
];

impl Reader<'_> {
    /// Adds the observation of table `index`, or one for each copy.
    pub(super) fn add_observations(
        &self,
        network: &mut Network,
        index: usize,
        observe: &Table,
    ) -> Result<(), FileError> {
        for copy in self.copies(observe)? {
            let text = |key| self.filled(observe, key, &copy);
            let observation = Observation {
                name: text("name")?,
                interface: text("interface")?,
                class: observe.span_of("class").map(|_| text("class")).transpose()?,
                variable: text("variable")?,
            };
            network.add_observation(observation, index);
        }
        Ok(())
    }
}
