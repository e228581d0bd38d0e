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

use fairgate::ClassId;
use fairgate_config::FileError;
use toml::Spanned;

use super::Reader;
use super::drawn::Drawn;
use super::flow_section::{ArrivalsSection, FlowSection};
use super::names::Network;
use super::repeat::Copy;
use super::sent::Sent;
use crate::random::Distribution;
use crate::scenario::{Arrivals, Flow, Waypoint};

impl Reader<'_> {
    /// Adds the flows of all sections.
    ///
    /// A section with `each` has a flow for each copy. Copies whose names are equal, after variables are
    /// replaced, are one group, and are called `name-1`, `name-2` and so on.
    pub(super) fn add_flows(&self, network: &mut Network, sections: &[FlowSection]) -> Result<(), FileError> {
        let mut all: Vec<(usize, Vec<Flow>)> = Vec::new();
        let mut section_of: BTreeMap<String, usize> = BTreeMap::new();
        for (index, section) in sections.iter().enumerate() {
            let sent = self.sent(section)?;
            let copies = self.copies(section.each.as_ref())?;
            let names = copies.iter().map(|copy| self.fill(&section.name, copy));
            let names = names.collect::<Result<Vec<String>, FileError>>()?;
            let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
            names.iter().for_each(|name| *sizes.entry(name).or_default() += 1);
            let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
            for (name, copy) in names.iter().zip(&copies) {
                let other = section_of.insert(name.clone(), index);
                if other.is_some_and(|other| other != index) {
                    return Err(self.document.error(
                        section.name.span(),
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
                all.push((index, std::iter::once(forth).chain(others).collect()));
            }
        }
        for (index, flows) in all {
            let taken = flows[1..]
                .iter()
                .find_map(|other| section_of.get(other.group_name()));
            if let Some(&section) = taken {
                return Err(self.document.error(
                    sections[section].name.span(),
                    format!("flow `{}` has another flow with this name", flows[0].name),
                    "give this flow a different name",
                ));
            }
            flows.into_iter().for_each(|flow| network.add_flow(flow, index));
        }
        Ok(())
    }

    fn flow(
        &self,
        network: &Network,
        flow: &FlowSection,
        copy: &Copy,
        sent: &Sent,
    ) -> Result<Flow, FileError> {
        let optional =
            |text: &Option<Spanned<String>>| text.as_ref().map(|text| self.duration(text)).transpose();
        let (start, random_start) = self.time(&flow.start)?;
        let (stagger, random_stagger) = self.time(&flow.stagger)?;
        let node = |name: &Spanned<String>| self.node(network, name, &self.fill(name, copy)?);
        let (source, destination) = (node(&flow.from)?, node(&flow.to)?);
        let plain = Flow::new(
            flow.name.get_ref().clone(),
            source,
            destination,
            sent.forth.clone(),
        );
        Ok(Flow {
            start: start + sent.offset,
            random_start,
            stop: optional(&flow.stop)?,
            count: match sent.count {
                Some(count) => count,
                None => flow.count.as_ref().map_or(plain.count, |count| *count.get_ref()),
            },
            stagger,
            random_stagger,
            arrivals: flow
                .arrivals
                .as_ref()
                .map(|arrivals| self.arrivals(arrivals))
                .transpose()?,
            lifetime: flow
                .lifetime
                .as_ref()
                .map(|drawn| self.durations(drawn))
                .transpose()?,
            gives_up: flow.gives_up,
            rows: flow.rows,
            dscp: flow
                .dscp
                .as_ref()
                .map_or(Ok(plain.dscp), |dscp| self.document.dscp(dscp))?,
            priority: flow
                .priority
                .as_ref()
                .map_or(plain.priority, |priority| *priority.get_ref()),
            ecn: flow.ecn,
            mark: flow.mark,
            class: flow
                .class
                .as_ref()
                .map_or(Ok(plain.class), |class| self.class(class))?,
            departs_after: optional(&flow.departs_after)?,
            port: flow.port,
            route: flow
                .route
                .as_ref()
                .map(|nodes| {
                    nodes
                        .get_ref()
                        .iter()
                        .map(|name| self.waypoint(network, name, &self.fill(name, copy)?))
                        .collect()
                })
                .transpose()?,
            ..plain
        })
    }

    /// Reads a time that may be random, as a constant part and a random one.
    fn time(&self, drawn: &Option<Spanned<Drawn>>) -> Result<(Duration, Distribution), FileError> {
        let nothing = Distribution::Constant(0);
        let Some(drawn) = drawn else {
            return Ok((Duration::ZERO, nothing));
        };
        Ok(match self.durations(drawn)? {
            Distribution::Constant(nanos) => (Duration::from_nanos(nanos), nothing),
            random => (Duration::ZERO, random),
        })
    }

    fn arrivals(&self, section: &Spanned<ArrivalsSection>) -> Result<Arrivals, FileError> {
        match section.get_ref() {
            ArrivalsSection {
                rate: Some(rate),
                interval: None,
                load: None,
            } => Ok(Arrivals::Poisson {
                per_second: self.frequency(rate)?,
            }),
            ArrivalsSection {
                rate: None,
                interval: Some(interval),
                load: None,
            } => Ok(Arrivals::Renewal {
                interval: self.durations(interval)?,
            }),
            ArrivalsSection {
                rate: None,
                interval: None,
                load: Some(load),
            } => Ok(Arrivals::Load {
                load: self.rate(load)?,
            }),
            _ => Err(self.document.error(
                section.span(),
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
