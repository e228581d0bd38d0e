//! Flows: `[[simulate.flow]]`.
//!
//! ```toml
//! count = 100
//! start = { uniform = ["0s", "1s"] }       # or a duration; each copy draws its own
//! stagger = { exponential = "10ms" }       # or a duration: each copy starts so much later than the last
//! lifetime = { exponential = "60s" }       # each flow sends for so long
//! departs_after = "5ms"                    # when a packet wants to leave etf or fq, after its sending
//! gives_up = true                          # a flow ends when admission control rejects one of its packets
//! rows = false                             # results for the group alone
//! each = { i = 9 }                         # a flow for each: `from`, `to`, `name` and `route` have {i}
//!
//! arrivals = { rate = "12/s" }             # instead of `count`: flows arrive at random (Poisson)
//! arrivals = { interval = { uniform = ["10ms", "50ms"] } }
//! arrivals = { load = "8mbit" }            # Poisson; the flows together offer so much payload
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use fairgate::registry::Unit;
use fairgate::{ClassId, Rate};
use fairgate_config::{FileError, Table};
use toml::Spanned;

use super::flow_section::Keys;
use super::names::Network;
use super::repeat::Copy;
use super::sent::Sent;
use super::{Reader, place};
use crate::random::Distribution;
use crate::scenario::{Arrivals, Flow, Waypoint};

impl Reader<'_> {
    /// Adds the flows of all sections.
    ///
    /// A section with `each` has a flow for each copy. Copies whose names are equal, after variables are
    /// replaced, are one group, and are called `name-1`, `name-2` and so on.
    pub(super) fn add_flows(&self, network: &mut Network, sections: &[Table]) -> Result<(), FileError> {
        let mut all: Vec<(usize, Vec<Flow>)> = Vec::new();
        let mut section_of: BTreeMap<String, usize> = BTreeMap::new();
        let mut problems = self.document.problems();
        for (index, section) in sections.iter().enumerate() {
            let flows = self.flows_of(network, section, index, &mut section_of);
            let flows = problems.of(flows).into_iter().flatten();
            all.extend(flows.map(|flows| (index, flows)));
        }
        problems.unless_any(())?;
        for (index, flows) in all {
            let taken = flows[1..]
                .iter()
                .find_map(|other| section_of.get(other.group_name()));
            if let Some(&section) = taken {
                return Err(self.document.error(
                    place(&sections[section], "name"),
                    format!("flow `{}` has another flow with this name", flows[0].name),
                    "give this flow a different name",
                ));
            }
            flows.into_iter().for_each(|flow| network.add_flow(flow, index));
        }
        Ok(())
    }

    /// Returns the flows of table `index`: those of each copy. `section_of` has the tables of all names.
    fn flows_of(
        &self,
        network: &Network,
        section: &Table,
        index: usize,
        section_of: &mut BTreeMap<String, usize>,
    ) -> Result<Vec<Vec<Flow>>, FileError> {
        let sent = self.sent(section)?;
        let copies = self.copies(section)?;
        let names = copies.iter().map(|copy| self.filled(section, "name", copy));
        let names = names.collect::<Result<Vec<String>, FileError>>()?;
        let mut all = Vec::with_capacity(copies.len());
        let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
        names.iter().for_each(|name| *sizes.entry(name).or_default() += 1);
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for (name, copy) in names.iter().zip(&copies) {
            let other = section_of.insert(name.clone(), index);
            if other.is_some_and(|other| other != index) {
                return Err(self.document.error(
                    place(section, "name"),
                    format!("there are two flows with the name `{name}`"),
                    "give each flow a different name, or write one flow with a `count` or `each`",
                ));
            }
            let mut forth = self.flow(network, section, copy, &sent)?;
            forth.name.clone_from(name);
            if sizes[name.as_str()] > 1 {
                let number = numbers.entry(name).or_default();
                *number += 1;
                forth.name = format!("{name}-{number}");
                forth.group = Some(name.clone());
            }
            let others = sent.clone().others(&forth);
            all.push(std::iter::once(forth).chain(others).collect());
        }
        Ok(all)
    }

    fn flow(&self, network: &Network, flow: &Table, copy: &Copy, sent: &Sent) -> Result<Flow, FileError> {
        let (start, random_start) = self.moment(flow, "start")?;
        let (stagger, random_stagger) = self.moment(flow, "stagger")?;
        let node = |key| {
            let written = Spanned::new(place(flow, key), String::new());
            self.node(network, &written, &self.filled(flow, key, copy)?)
        };
        let plain = Flow::new("", node("from")?, node("to")?, sent.forth.clone());
        let Keys {
            flow: read, route, ..
        } = Keys::read(flow, plain);
        let route = route.into_iter().zip(flow.spans_in("route"));
        let route = route.map(|(name, span)| {
            let written = Spanned::new(span, name);
            self.waypoint(network, &written, &self.fill(&written, copy)?)
        });
        let route = route.collect::<Result<Vec<Waypoint>, FileError>>()?;
        Ok(Flow {
            start: start + sent.offset,
            random_start,
            count: sent.count.unwrap_or(read.count),
            stagger,
            random_stagger,
            arrivals: flow
                .table("arrivals")
                .map(|arrivals| self.arrivals(&arrivals))
                .transpose()?,
            lifetime: self.times(flow, "lifetime")?,
            class: match flow.text("class") {
                Some(class) => self.class(&class)?,
                None => read.class,
            },
            route: flow.span_of("route").map(|_| route),
            ..read
        })
    }

    /// Reads a time that may be random, as a constant part and a random one.
    fn moment(&self, flow: &Table, key: &str) -> Result<(Duration, Distribution), FileError> {
        let nothing = Distribution::Constant(0);
        Ok(match self.times(flow, key)? {
            None => (Duration::ZERO, nothing),
            Some(Distribution::Constant(nanos)) => (Duration::from_nanos(nanos), nothing),
            Some(random) => (Duration::ZERO, random),
        })
    }

    fn arrivals(&self, written: &Table) -> Result<Arrivals, FileError> {
        let rate = written.text("rate");
        let interval = self.times(written, "interval")?;
        let load: Option<Rate> = written.plain("load", Unit::Rate);
        match (rate, interval, load) {
            (Some(rate), None, None) => Ok(Arrivals::Poisson {
                per_second: self.frequency(&rate)?,
            }),
            (None, Some(interval), None) => Ok(Arrivals::Renewal { interval }),
            (None, None, Some(load)) => Ok(Arrivals::Load { load }),
            _ => Err(self.document.error(
                written.span(),
                "`arrivals` must have one of `rate`, `interval` and `load`",
                "write for example { rate = \"12/s\" }, { interval = { exponential = \"100ms\" } } or \
                 { load = \"8mbit\" }",
            )),
        }
    }

    /// Parses a number of events per time, such as `12/s` or `30/min`, and returns that per second.
    fn frequency(&self, text: &Spanned<String>) -> Result<f64, FileError> {
        let parse = |text: &str| {
            let (number, unit) = text.split_once('/')?;
            let seconds = match unit.trim() {
                "s" => 1.0,
                "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            let number: f64 = number.trim().parse().ok()?;
            (number.is_finite() && number > 0.0).then_some(number / seconds)
        };
        parse(text.get_ref()).ok_or_else(|| {
            self.document.error(
                text.span(),
                format!("`{}` is not a rate of arrivals above 0", text.get_ref()),
                "write how many flows arrive on average in a second, a minute or an hour, such as \"12/s\", \
                 \"30/min\" or \"5/h\"",
            )
        })
    }

    /// Returns the node or the link with this name.
    fn waypoint(
        &self,
        network: &Network,
        written: &Spanned<String>,
        name: &str,
    ) -> Result<Waypoint, FileError> {
        if let Some(node) = network.find(name) {
            return Ok(Waypoint::Node(node));
        }
        let mut links = network.scenario.links.iter();
        match links.position(|link| link.name.as_deref() == Some(name)) {
            Some(link) => Ok(Waypoint::Link(link)),
            None => self.node(network, written, name).map(Waypoint::Node),
        }
    }

    /// Parses a class such as `10:1`. Both numbers are hexadecimal, as in tc.
    fn class(&self, text: &Spanned<String>) -> Result<ClassId, FileError> {
        let parse = |digits: &str| u16::from_str_radix(digits, 16).ok();
        text.get_ref()
            .split_once(':')
            .and_then(|(major, minor)| Some(ClassId::new(parse(major)?, parse(minor)?)))
            .ok_or_else(|| {
                self.document.error(
                    text.span(),
                    format!("`{}` is not a class", text.get_ref()),
                    "write the discipline's handle and the number of the class, such as \"10:1\"",
                )
            })
    }
}
