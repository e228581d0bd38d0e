//! Shapers whose rate follows the capacity of a line, by what a ping sees of it.

use std::collections::BTreeSet;
use std::time::Duration;

use fairgate::autorate::{Bounds, Settings};
use fairgate::registry::Registry;
use fairgate_config::autorate::RootRate;

use crate::scenario::{Mistake, Scenario, ScenarioError, ScenarioPart, Traffic};

/// The rate at the root of an interface's tree follows the capacity of a line behind or before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Autorate {
    /// The name of the interface in the results: `router->home`.
    pub interface: String,
    /// The name of a flow that pings over the line. Several interfaces may have the same one.
    pub probe: String,
    /// Between which rates the rate is.
    pub rate: Bounds,
    /// How it follows. The time between probes is that of the ping, whatever is set here.
    pub settings: Settings,
}

/// An [`Autorate`] whose names were found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Followed {
    /// The position of the interface in the order of the results.
    pub(crate) interface: usize,
    /// The index of the flow that pings.
    pub(crate) probe: u32,
    /// With the time between the pings.
    pub(crate) settings: Settings,
}

impl Scenario {
    /// Finds the interfaces and the pings, and checks that the rates can be set.
    ///
    /// # Errors
    /// Reports the first autorate that is wrong.
    pub(crate) fn followed(&self) -> Result<Vec<Followed>, ScenarioError> {
        if self.autorates.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.interface_names();
        let mut taken = BTreeSet::new();
        let followed = self.autorates.iter().enumerate().map(|(number, autorate)| {
            let is_first = taken.insert(autorate.interface.as_str());
            let found = self.follow(autorate, &names, is_first);
            found.map_err(|mistake| mistake.of(ScenarioPart::Autorate(number)))
        });
        followed.collect()
    }

    fn follow(&self, autorate: &Autorate, names: &[String], is_first: bool) -> Result<Followed, Mistake> {
        let name = autorate.interface.as_str();
        let Some(interface) = names.iter().position(|other| other == name) else {
            return Err(super::observation::no_interface(name, names));
        };
        if interface >= 2 * self.links.len() {
            let what = format!("{name} belongs to a cell, which has no rate; name an interface of a link");
            return Err(Mistake::new("interface", what));
        }
        if !is_first {
            let what = format!("the rate of {name} follows already; name each interface once");
            return Err(Mistake::new("interface", what));
        }
        if self
            .observations
            .iter()
            .any(|other| other.name == autorate.observation())
        {
            let what = format!(
                "an observation is called `{}`, as the results call this rate; give it another name",
                autorate.observation()
            );
            return Err(Mistake::new("interface", what));
        }
        self.check_tree(autorate, interface)?;
        let probe = self.flows.iter().position(|flow| flow.name == autorate.probe);
        let ping = probe.and_then(|index| match &self.flows[index].traffic {
            Traffic::Ping(ping) if self.flows[index].count == 1 && self.flows[index].arrivals.is_none() => {
                Some((index as u32, ping))
            }
            _ => None,
        });
        let Some((probe, ping)) = ping else {
            let what = match probe {
                None => format!("there is no flow `{}`", autorate.probe),
                Some(_) => format!("`{}` is not a single flow that pings", autorate.probe),
            };
            let what = format!("{what}; name a [[simulate.flow]] with `ping` and without `count`");
            return Err(Mistake::new("probe", what));
        };
        let settings = Settings {
            probe_interval: Duration::from_nanos(ping.interval.mean()),
            ..autorate.settings
        };
        let checked = settings.check().and_then(|()| autorate.rate.check());
        checked.map_err(|error| Mistake::new("probe", error.to_string()))?;
        Ok(Followed {
            interface,
            probe,
            settings,
        })
    }

    /// Checks that the tree of an interface has a rate, and that it can have the least and the greatest one.
    fn check_tree(&self, autorate: &Autorate, interface: usize) -> Result<(), Mistake> {
        let name = autorate.interface.as_str();
        let Some(tree) = self.interface_queue(interface).spec() else {
            let what =
                format!("the queue of {name} is not a tree with a rate; name one with a shaper at its root");
            return Err(Mistake::new("interface", what));
        };
        let root = RootRate::of(tree).map_err(|[what, remedy]| {
            Mistake::new(
                "interface",
                format!("the rate of {name} can't follow: {what}; {remedy}"),
            )
        })?;
        let Bounds { min, max, .. } = autorate.rate;
        let guaranteed = root.guaranteed(tree);
        if guaranteed > min.bits_per_second() {
            let what = format!(
                "classes of {name} are guaranteed {guaranteed} bit/s, but the rate may fall to {min}; raise \
                 `min`, or lower the guarantees"
            );
            return Err(Mistake::new("rate", what));
        }
        for rate in [min, max] {
            root.set(tree, rate, &Registry::builtin()).map_err(|error| {
                Mistake::new(
                    "rate",
                    format!("the tree of {name} can't have a rate of {rate}: {error}"),
                )
            })?;
        }
        Ok(())
    }
}

impl Autorate {
    /// Returns the name under which the results have the rate.
    pub(crate) fn observation(&self) -> String {
        format!("rate of {}", self.interface)
    }
}
