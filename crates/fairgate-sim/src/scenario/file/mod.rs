//! The `[simulate]` section of a configuration file.
//!
//! ```toml
//! [simulate]
//! duration = "60s"
//! measure = ["10s", "60s"]          # the measurement window; default: the whole duration
//! interval = "100ms"                # between the points of time series
//! seed = 1
//! queue = "lan"                     # [queue.lan] at all interfaces for which no queue is named
//!
//! [[simulate.link]]                 # links create the nodes that they name
//! a = "home"
//! b = "router"
//! rate = "20mbit"                   # or rate_a and rate_b: from a, from b; if omitted, the link only delays
//! delay = "10ms"                    # or delay_a and delay_b
//! jitter = { exponential = "2ms" }  # added to the delay; or jitter_a and jitter_b
//! loss = 0.001                      # share of packets lost; or loss_a and loss_b
//! overhead = 14                     # bytes of framing per packet
//! queue_a = "wan"                   # [queue.wan] at a, for packets to b; `queue` is for both ends
//! workers_a = 4                     # threads that run it; `workers` is for both ends
//! shard_by = "flow"                 # what the workers divide: flow, source, destination or class
//!
//! [[simulate.cell]]                 # a Wi-Fi cell: an access point and its stations
//! name = "flat"
//! ap = "home"
//! stations = ["phone", "laptop"]    # or their number: then they are called flat-1, flat-2 and so on
//! distances = [3.0, 12.0]           # metres
//!
//! [[simulate.flow]]
//! name = "downloads"
//! from = "router"
//! to = "home"
//! count = 4
//! tcp = { congestion_control = "cubic" }
//!
//! [[simulate.flow]]
//! name = "call"
//! from = "home"
//! to = "router"
//! dscp = "EF"                          # or a number
//! udp = { rate = "64kbit", size = "160b" }
//!
//! [[simulate.observe]]              # a variable of a discipline over time
//! name = "flows"
//! interface = "router->home"
//! variable = "active_flows"
//!
//! [[simulate.autorate]]             # a rate that follows the capacity of a line
//! interface = "router->home"
//! probe = "ping"
//! rate = { min = "2mbit", base = "20mbit", max = "50mbit" }
//!
//! [[simulate.flow]]
//! name = "pages"
//! from = "router"
//! to = "home"
//! arrivals = { rate = "5/s" }       # flows arrive at random, and end; results for all together
//! tcp = { size = { pareto = "50kb", shape = 1.5 }, transfers = 1 }
//! ```
//!
//! If there are no links, the network is that of `[run]`: `left`, `router` and `right`, with the queues of
//! `[run]` on the router.

use std::ops::Range;
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::units::{parse_duration, parse_rate};
use fairgate_config::{Document, FileError, Spec, UnitError};
use serde::Deserialize;
use toml::Spanned;

use crate::scenario::file::autorate::AutorateSection;
use crate::scenario::file::capture::CaptureSection;
use crate::scenario::file::cells::CellSection;
use crate::scenario::file::flow_section::FlowSection;
use crate::scenario::file::names::Network;
use crate::scenario::file::network::{LinkSection, NodeSection};
use crate::scenario::file::observe::ObserveSection;
use crate::scenario::file::pair::Pair;
use crate::scenario::{NodeId, Queue, Scenario, ScenarioError, ScenarioPart};

mod autorate;
mod capture;
mod cells;
mod drawn;
mod expression;
mod flow_section;
mod flows;
mod line;
mod names;
mod network;
mod observe;
mod pair;
mod programs;
mod recording;
mod repeat;
mod sent;
mod shorthand;
mod sources;
mod tcp;
mod traffic;

/// The section `[simulate]`.
pub static SIMULATE: fairgate::registry::Section =
    fairgate::registry::Section::open("simulate", "a scenario: docs/simulation.md");

/// The maximum number of nodes that an error names.
const MOST_NAMED: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    duration: Spanned<String>,
    measure: Option<Spanned<Pair>>,
    interval: Option<Spanned<String>>,
    seed: Option<u64>,
    queue: Option<Spanned<String>>,
    #[serde(default)]
    ecmp: bool,
    #[serde(default, rename = "node")]
    nodes: Vec<NodeSection>,
    #[serde(default, rename = "link")]
    links: Vec<LinkSection>,
    #[serde(default, rename = "cell")]
    cells: Vec<CellSection>,
    #[serde(default, rename = "flow")]
    flows: Vec<FlowSection>,
    #[serde(default, rename = "observe")]
    observations: Vec<ObserveSection>,
    #[serde(default, rename = "capture")]
    captures: Vec<CaptureSection>,
    #[serde(default, rename = "autorate")]
    autorates: Vec<AutorateSection>,
}

impl Scenario {
    /// Reads the `[simulate]` section of a configuration file.
    ///
    /// # Errors
    /// Reports the first mistake with its location. Whatever `read` accepts can be simulated, if there is
    /// enough memory.
    pub fn read(document: &Document) -> Result<Scenario, FileError> {
        Scenario::read_and_check(document, None, Scenario::check)
    }

    /// Reads the section for a machine with `memory` bytes available.
    ///
    /// # Errors
    /// Fails like [`read`](Scenario::read), and if the scenario needs more memory.
    pub fn read_for(document: &Document, memory: u64) -> Result<Scenario, FileError> {
        Scenario::read_and_check(document, None, |scenario| {
            scenario.check()?;
            scenario.check_memory(memory)
        })
    }

    /// Reads the section, and replaces queues: `replace` gets the name of each `[queue.NAME]` that an
    /// interface has, and returns the tree that it shall have instead, or `None` to keep it. Nothing is
    /// observed or captured then.
    ///
    /// # Errors
    /// Fails like [`read_for`](Scenario::read_for).
    pub fn read_replacing(
        document: &Document,
        memory: u64,
        replace: &dyn Fn(&str) -> Option<Spec>,
    ) -> Result<Scenario, FileError> {
        Scenario::read_and_check(document, Some(replace), |scenario| {
            scenario.check()?;
            scenario.check_memory(memory)
        })
    }

    fn read_and_check(
        document: &Document,
        replace: Option<Replace<'_>>,
        check: impl Fn(&Scenario) -> Result<(), ScenarioError>,
    ) -> Result<Scenario, FileError> {
        let Some(section) = document.section::<Section>("simulate")? else {
            return Err(document.error(
                0..0,
                "there is no [simulate] section",
                "add one with a `duration`, links and flows",
            ));
        };
        let reader = Reader {
            document,
            replace,
            default_queue: section.queue.as_ref(),
        };
        let network = reader.network(&section)?;
        check(&network.scenario).map_err(|error| {
            // The text before the semicolon says what is wrong. The text after it is the remedy.
            let (what, remedy) = error
                .what
                .rsplit_once("; ")
                .unwrap_or((&error.what, "correct this value"));
            document.error(location(&section, &network, &error), what, remedy)
        })?;
        Ok(network.scenario)
    }
}

/// Returns where the wrong field is written. If it is not written, returns where its part begins.
fn location(section: &Section, network: &Network, error: &ScenarioError) -> Range<usize> {
    match error.part {
        ScenarioPart::Scenario => match error.field {
            "measure" => span(&section.measure),
            "interval" => span(&section.interval),
            _ => None,
        }
        .unwrap_or_else(|| section.duration.span()),
        ScenarioPart::Node(index) => section
            .nodes
            .get(index)
            .map_or(0..0, |node| node.location(error.field)),
        // If the links come from [run], only their queues can be wrong, and those have been checked in their
        // own sections.
        ScenarioPart::Link(index) => network
            .link_section(index)
            .map_or(0..0, |index| section.links[index].location(error.field)),
        ScenarioPart::Cell(index) => section.cells[network.cell_section(index)].location(error.field),
        ScenarioPart::Flow(index) => section.flows[network.flow_section(index)].location(error.field),
        ScenarioPart::Capture(index) => {
            section.captures[network.capture_section(index)].location(error.field)
        }
        ScenarioPart::Autorate(index) => {
            section.autorates[network.autorate_section(index)].location(error.field)
        }
        ScenarioPart::Observation(index) => {
            section.observations[network.observe_section(index)].location(error.field)
        }
    }
}

fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

/// Returns the tree that replaces a named queue.
type Replace<'a> = &'a dyn Fn(&str) -> Option<Spec>;

/// Converts text to values, and knows the locations of errors.
struct Reader<'a> {
    document: &'a Document,
    replace: Option<Replace<'a>>,
    /// The queue of interfaces for which none is named.
    default_queue: Option<&'a Spanned<String>>,
}

impl Reader<'_> {
    fn network(&self, section: &Section) -> Result<Network, FileError> {
        let duration = self.duration(&section.duration)?;
        let mut scenario = Scenario::new(duration);
        if let Some(window) = &section.measure {
            let [start, end] = window
                .get_ref()
                .0
                .each_ref()
                .map(|text| self.unit(&window.span(), parse_duration(text)));
            scenario.measure = start?..end?;
        }
        if let Some(interval) = &section.interval {
            scenario.interval = self.duration(interval)?;
        }
        if let Some(seed) = section.seed {
            scenario.seed = seed;
        }
        scenario.ecmp = section.ecmp;
        let mut network = Network::new(scenario);
        for node in &section.nodes {
            self.add_nodes(&mut network, node)?;
        }
        if section.links.is_empty() && section.cells.is_empty() {
            self.add_run_network(&mut network, section)?;
        }
        for (index, link) in section.links.iter().enumerate() {
            self.add_links(&mut network, index, link)?;
        }
        for (index, cell) in section.cells.iter().enumerate() {
            self.add_cells(&mut network, index, cell)?;
        }
        self.check_link_names(&network, &section.links)?;
        if section.flows.is_empty() {
            return Err(self.document.error(
                section.duration.span(),
                "this scenario has no flows",
                "add a [[simulate.flow]] with `name`, `from`, `to`, and `udp` or `tcp`",
            ));
        }
        self.add_flows(&mut network, &section.flows)?;
        // Another discipline in the place of a queue has other variables and perhaps no rate, and several
        // runs would write the same captures.
        if self.replace.is_none() {
            for (index, observe) in section.observations.iter().enumerate() {
                self.add_observations(&mut network, index, observe)?;
            }
            for (index, capture) in section.captures.iter().enumerate() {
                self.add_captures(&mut network, index, capture)?;
            }
            for (index, autorate) in section.autorates.iter().enumerate() {
                self.add_autorates(&mut network, index, autorate)?;
            }
        }
        Ok(network)
    }

    /// Returns the node with this name: the text of `written`, with its variables replaced.
    fn node(&self, network: &Network, written: &Spanned<String>, name: &str) -> Result<NodeId, FileError> {
        network.find(name).ok_or_else(|| {
            let nodes = &network.scenario.nodes;
            let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            let more = names.len().saturating_sub(MOST_NAMED);
            names.truncate(MOST_NAMED);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.document.error(
                written.span(),
                format!("there is no node `{name}`"),
                format!(
                    "the nodes are {}{more}; a [[simulate.link]] creates more",
                    names.join(", ")
                ),
            )
        })
    }

    fn queue(&self, name: Option<&Spanned<String>>) -> Result<Queue, FileError> {
        match name.or(self.default_queue) {
            Some(name) => self.named_queue(name, name.get_ref()),
            None => Ok(Queue::default()),
        }
    }

    /// Returns the queue `[queue.NAME]`, or what replaces it. `name` is the text of `written`, with its
    /// variables replaced.
    fn named_queue(&self, written: &Spanned<String>, name: &str) -> Result<Queue, FileError> {
        Ok(self.named_tree(written, name)?.into())
    }

    /// Returns the tree of the same queue.
    fn named_tree(&self, written: &Spanned<String>, name: &str) -> Result<Spec, FileError> {
        let name = Spanned::new(written.span(), name.to_owned());
        let spec = self.document.resolve(&name)?;
        let replaced = self.replace.and_then(|replace| replace(name.get_ref()));
        Ok(replaced.unwrap_or_else(|| spec.clone()))
    }

    fn duration(&self, text: &Spanned<String>) -> Result<Duration, FileError> {
        self.unit(&text.span(), parse_duration(text.get_ref()))
    }

    fn rate(&self, text: &Spanned<String>) -> Result<Rate, FileError> {
        self.unit(&text.span(), parse_rate(text.get_ref()))
    }

    fn unit<T>(&self, span: &Range<usize>, parsed: Result<T, UnitError>) -> Result<T, FileError> {
        parsed.map_err(|error| self.document.error(span.clone(), error.message, error.remedy))
    }
}
