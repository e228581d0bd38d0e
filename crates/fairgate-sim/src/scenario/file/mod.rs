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

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

use fairgate::registry::{Parameter, Section as Described, Unit};
use fairgate_config::{Document, FileError, Spec, Table};
use toml::Spanned;

use crate::scenario::file::autorate::AUTORATE;
use crate::scenario::file::capture::CAPTURE;
use crate::scenario::file::cells::CELL;
use crate::scenario::file::flow_section::FLOW;
use crate::scenario::file::names::Network;
use crate::scenario::file::network::{LINK, NODE};
use crate::scenario::file::observe::OBSERVE;
use crate::scenario::{LONGEST, NodeId, Queue, Scenario, ScenarioError, ScenarioPart};

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
mod programs;
mod recording;
mod repeat;
mod sent;
mod sources;
mod tcp;
mod traffic;

/// The section `[simulate]`.
pub(crate) static SIMULATE: Described = Described::new("simulate", "a scenario: docs/simulation.md", || {
    Parameter::infos(&KEYS, Keys::default())
})
.with(&WITHIN);

static WITHIN: [Described; 7] = [NODE, LINK, CELL, FLOW, OBSERVE, CAPTURE, AUTORATE];

struct Keys {
    duration: Duration,
    measure: Vec<Duration>,
    interval: Duration,
    seed: u64,
    queue: String,
    ecmp: bool,
}

impl Default for Keys {
    fn default() -> Keys {
        let plain = Scenario::new(Duration::ZERO);
        Keys {
            duration: plain.duration,
            measure: Vec::new(),
            interval: plain.interval,
            seed: plain.seed,
            queue: String::new(),
            ecmp: plain.ecmp,
        }
    }
}

/// A time within a simulation, nanoseconds.
const TIMES: RangeInclusive<u64> = 0..=LONGEST.as_nanos() as u64;

static KEYS: [Parameter<Keys>; 6] = [
    Parameter::required(
        "duration",
        Unit::Time,
        TIMES,
        "How long to simulate.",
        |keys, _| &mut keys.duration,
    ),
    Parameter::new(
        "measure",
        Unit::Several(&Unit::Time, 2, 2),
        TIMES,
        "The measurement window, from one time to another; default: the whole duration.",
        |keys, _| &mut keys.measure,
    ),
    Parameter::new(
        "interval",
        Unit::Time,
        TIMES,
        "The time between the points of time series.",
        |keys, _| &mut keys.interval,
    ),
    Parameter::new(
        "seed",
        Unit::Count("seed"),
        0..=u64::MAX,
        "The seed of all random numbers; `--seed` and `--seeds` override it.",
        |keys, _| &mut keys.seed,
    ),
    Parameter::word(
        "queue",
        Unit::Text("tree"),
        "The tree at each interface for which none is named; default: a fifo of 1000 packets.",
        |keys, _| &mut keys.queue,
    ),
    Parameter::word(
        "ecmp",
        Unit::Flag,
        "Whether flows are spread over paths of equal cost.",
        |keys, _| &mut keys.ecmp,
    ),
];

/// The maximum number of nodes that an error names.
const MOST_NAMED: usize = 20;

/// A section as it is written.
struct Section {
    table: Table,
    keys: Keys,
    queue: Option<Spanned<String>>,
    nodes: Vec<Table>,
    links: Vec<Table>,
    cells: Vec<Table>,
    flows: Vec<Table>,
    observations: Vec<Table>,
    captures: Vec<Table>,
    autorates: Vec<Table>,
}

impl Section {
    fn read(document: &Document) -> Result<Option<Section>, FileError> {
        let Some(table) = document.table(&SIMULATE)? else {
            return Ok(None);
        };
        Ok(Some(Section {
            keys: table.read(&KEYS, Keys::default()),
            queue: table.text("queue"),
            nodes: table.list("node"),
            links: table.list("link"),
            cells: table.list("cell"),
            flows: table.list("flow"),
            observations: table.list("observe"),
            captures: table.list("capture"),
            autorates: table.list("autorate"),
            table,
        }))
    }

    /// Returns where a key is written, or where the section begins.
    fn location(&self, key: &str) -> Range<usize> {
        let duration = || self.table.span_of("duration");
        let written = self.table.span_of(key).or_else(duration);
        written.unwrap_or_else(|| self.table.span())
    }
}

/// Returns where a key of a table in a list is written, or that of all its ends: `delay` for `delay_a`. If
/// neither is, returns where its name is, or its first key.
fn place(table: &Table, key: &str) -> Range<usize> {
    let of_all = key.rsplit_once('_').map(|(of_all, _)| of_all);
    let keys = [Some(key), of_all, Some("name")].into_iter().flatten();
    let written = keys.filter_map(|key| table.span_of(key)).next();
    let first = || table.entries().first().map(|(_, value)| value.span());
    written.or_else(first).unwrap_or_else(|| table.span())
}

impl Scenario {
    /// Reads the `[simulate]` section of a configuration file.
    ///
    /// # Errors
    /// Reports each mistake with its location, as far as they do not depend on each other. Whatever `read`
    /// accepts can be simulated, if there is enough memory.
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
        let Some(section) = Section::read(document)? else {
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
        ScenarioPart::Scenario => section.location(error.field),
        ScenarioPart::Node(index) => section
            .nodes
            .get(index)
            .map_or(0..0, |node| place(node, error.field)),
        // If the links come from [run], only their queues can be wrong, and those have been checked in their
        // own sections.
        ScenarioPart::Link(index) => network
            .link_sections
            .get(index)
            .map_or(0..0, |index| place(&section.links[*index], error.field)),
        ScenarioPart::Cell(index) => place(&section.cells[network.cell_sections[index]], error.field),
        ScenarioPart::Flow(index) => {
            flow_section::place_of(&section.flows[network.flow_sections[index]], error.field)
        }
        ScenarioPart::Capture(index) => {
            place(&section.captures[network.capture_sections[index]], error.field)
        }
        ScenarioPart::Autorate(index) => {
            place(&section.autorates[network.autorate_sections[index]], error.field)
        }
        ScenarioPart::Observation(index) => place(
            &section.observations[network.observe_sections[index]],
            error.field,
        ),
    }
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
        let keys = &section.keys;
        let mut scenario = Scenario::new(keys.duration);
        if let [start, end] = keys.measure[..] {
            scenario.measure = start..end;
        }
        scenario.interval = keys.interval;
        scenario.seed = keys.seed;
        scenario.ecmp = keys.ecmp;
        let mut network = Network::new(scenario);
        // What comes later names what comes before, so each kind must be right for the next one.
        let mut problems = self.document.problems();
        for node in &section.nodes {
            problems.of(self.add_nodes(&mut network, node));
        }
        if section.links.is_empty() && section.cells.is_empty() {
            problems.of(self.add_run_network(&mut network, section));
        }
        for (index, link) in section.links.iter().enumerate() {
            problems.of(self.add_links(&mut network, index, link));
        }
        for (index, cell) in section.cells.iter().enumerate() {
            problems.of(self.add_cells(&mut network, index, cell));
        }
        problems.unless_any(())?;
        self.check_link_names(&network, &section.links)?;
        if section.flows.is_empty() {
            return Err(self.document.error(
                section.location("duration"),
                "this scenario has no flows",
                "add a [[simulate.flow]] with `name`, `from`, `to`, and `udp` or `tcp`",
            ));
        }
        self.add_flows(&mut network, &section.flows)?;
        // Another discipline in the place of a queue has other variables and perhaps no rate, and several
        // runs would write the same captures.
        if self.replace.is_none() {
            let mut problems = self.document.problems();
            for (index, observe) in section.observations.iter().enumerate() {
                problems.of(self.add_observations(&mut network, index, observe));
            }
            for (index, capture) in section.captures.iter().enumerate() {
                problems.of(self.add_captures(&mut network, index, capture));
            }
            for (index, autorate) in section.autorates.iter().enumerate() {
                problems.of(self.add_autorates(&mut network, index, autorate));
            }
            problems.unless_any(())?;
        }
        Ok(network)
    }

    /// Returns the text of a key that must be there, with its variables replaced.
    fn filled(&self, table: &Table, key: &str, copy: &repeat::Copy) -> Result<String, FileError> {
        let text = table.text(key);
        let text = text.unwrap_or_else(|| Spanned::new(table.span(), String::new()));
        self.fill(&text, copy)
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

    /// Returns the folder of the scenario file, where relative paths begin.
    fn folder(&self) -> &Path {
        Path::new(self.document.name()).parent().unwrap_or(Path::new(""))
    }

    /// Reads another file.
    fn text_of(&self, path: &Spanned<String>) -> Result<String, FileError> {
        std::fs::read_to_string(self.folder().join(path.get_ref())).map_err(|error| {
            self.document.error(
                path.span(),
                format!("can't read the file `{}`: {error}", path.get_ref()),
                "write a path that is relative to the folder of this file",
            )
        })
    }
}
