//! What to simulate: nodes, links between them, and flows. A scenario is built in code or read from a file.

mod application;
mod arrivals;
mod autorate;
mod capture;
mod cell;
mod error;
mod file;
mod flow;
mod impairment;
mod interfaces;
mod link;
mod media;
mod memory;
mod observation;
mod rate;
mod route;
mod udp;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::time::Duration;

use crate::events::Event;
use crate::random::Distribution;
use application::MOST_CONNECTIONS;
pub use application::{Adaptive, Application, Burst, Requests, Web};
pub use arrivals::Arrivals;
pub use autorate::Autorate;
pub(crate) use autorate::Followed;
pub use capture::Capture;
pub use cell::{Access, Cell, Positions};
pub(crate) use error::Mistake;
pub use error::{ScenarioError, ScenarioPart};
pub(crate) use file::SIMULATE;
use flow::MOST_COPIES;
pub use flow::{Flow, Tcp, Traffic};
pub use impairment::{Jitter, Loss};
pub(crate) use link::Direction;
use link::MOST_OVERHEAD;
pub use link::{ETHERNET_HEADER, Link, Queue};
pub use media::{Frames, Picture, Ping, Video, Voice};
pub(crate) use media::{RTP_HEADER, Scale};
pub use observation::Observation;
pub(crate) use observation::Observed;
pub use rate::{LineRate, Schedule, Trace};
pub use route::Waypoint;
pub(crate) use route::{OneWayRoute, Router};
pub(crate) use udp::{LONGEST_DATAGRAM, UDP_HEADERS};
pub use udp::{Pattern, Udp};

/// The longest duration: a year. A sum of times can't overflow, because 64 bits hold 584 years in
/// nanoseconds.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The number of a node in a [`Scenario`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Returns the index in [`Scenario::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host or a router. Every node sends, receives and forwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The address in the headers of its packets, which filters can match.
    pub address: IpAddr,
    /// How long the node takes for each packet that it forwards, ns. A packet never overtakes another one.
    /// `None`: no time.
    pub processing: Option<Distribution>,
}

/// A network and the traffic through it.
///
/// ```
/// use std::time::Duration;
/// use fairgate::Rate;
/// use fairgate_sim::{Flow, Link, Scenario, Simulation, Udp};
///
/// let mut scenario = Scenario::new(Duration::from_secs(10));
/// let (home, router) = (scenario.node("home"), scenario.node("router"));
/// scenario.links.push(Link::new(home, router, Rate::mbit(20), Duration::from_millis(5)));
/// scenario.flows.push(Flow::new("call", home, router, Udp::constant(Rate::mbit(1), 160)));
/// let results = Simulation::new(&scenario)?.run()?;
/// assert_eq!(results.flows[0].lost, 0);
/// # Ok::<(), fairgate_sim::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The hosts and routers.
    pub nodes: Vec<Node>,
    /// The links between them.
    pub links: Vec<Link>,
    /// The Wi-Fi cells.
    pub cells: Vec<Cell>,
    /// The traffic between the nodes.
    pub flows: Vec<Flow>,
    /// The variables of disciplines that are sampled over time.
    pub observations: Vec<Observation>,
    /// The interfaces whose packets are written into files.
    pub captures: Vec<Capture>,
    /// The shapers whose rates follow lines.
    pub autorates: Vec<Autorate>,
    /// How long to simulate.
    pub duration: Duration,
    /// The measurement window: from the first time up to, but not including, the second.
    pub measure: Range<Duration>,
    /// The interval between the points of time series.
    pub interval: Duration,
    /// The seed of all random numbers. Equal seeds give equal results, to the last digit.
    pub seed: u64,
    /// Whether flows are spread over all paths with the fewest hops and the least delay (equal-cost
    /// multipath). Each node on the way chooses by the hash of the flow. Otherwise all flows take one path.
    pub ecmp: bool,
}

impl Scenario {
    /// Creates an empty network that is measured over the whole `duration`, with time series every 100 ms and
    /// seed 1.
    pub fn new(duration: Duration) -> Scenario {
        Scenario {
            nodes: Vec::new(),
            links: Vec::new(),
            cells: Vec::new(),
            flows: Vec::new(),
            observations: Vec::new(),
            captures: Vec::new(),
            autorates: Vec::new(),
            duration,
            measure: Duration::ZERO..duration,
            interval: Duration::from_millis(100),
            seed: 1,
            ecmp: false,
        }
    }

    /// Adds a node. Its address is 10.0.0.0 plus its number, which starts at 1.
    pub fn node(&mut self, name: impl Into<String>) -> NodeId {
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            name: name.into(),
            address: IpAddr::V4(Ipv4Addr::from_bits((10 << 24) + number + 1)),
            processing: None,
        });
        NodeId(number)
    }

    /// Returns the node called `name`.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .map(|index| NodeId(index as u32))
    }

    /// Returns the name of a node.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// Checks that the scenario can be simulated: all parts are valid, and every flow has a path.
    ///
    /// # Errors
    /// Reports the first part that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_times()
            .map_err(|mistake| mistake.of(ScenarioPart::Scenario))?;
        self.check_size()?;
        for (index, link) in self.links.iter().enumerate() {
            link.check(self)
                .map_err(|mistake| mistake.of(ScenarioPart::Link(index)))?;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(processing) = &node.processing {
                link::check_delay(processing)
                    .map_err(|what| Mistake::new("processing", what).of(ScenarioPart::Node(index)))?;
            }
        }
        for (index, cell) in self.cells.iter().enumerate() {
            cell.check(self)
                .map_err(|mistake| mistake.of(ScenarioPart::Cell(index)))?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check(self)
                .map_err(|mistake| mistake.of(ScenarioPart::Flow(index)))?;
        }
        self.check_groups()?;
        self.observed_places()?;
        self.check_captures()?;
        self.followed()?;
        Router::new(&self.for_routes()).routes().map(|_| ())
    }

    /// Checks that the results of all flows of a group can be added.
    fn check_groups(&self) -> Result<(), ScenarioError> {
        let mut first_of: BTreeMap<&str, &Flow> = BTreeMap::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let first = first_of.entry(flow.group_name()).or_insert(flow);
            let is_like = |other: &Flow| {
                (
                    other.traffic.transport(),
                    other.arrivals.is_some(),
                    other.has_rows(),
                ) == (flow.traffic.transport(), flow.arrivals.is_some(), flow.has_rows())
            };
            if !is_like(first) {
                let what = format!(
                    "flows `{}` and `{}` are in one group, but differ in their transport, `arrivals` or \
                     `rows`; put them in different groups",
                    first.name, flow.name
                );
                return Err(Mistake::new("group", what).of(ScenarioPart::Flow(index)));
            }
        }
        Ok(())
    }

    /// Checks the numbers of interfaces and flows. Events identify them by 22 bits.
    fn check_size(&self) -> Result<(), ScenarioError> {
        let most = Event::INDICES as usize;
        if 2 * self.links.len() > most {
            let what = format!(
                "there are {} links, but must be at most {}; simulate a part of the network",
                self.links.len(),
                most / 2
            );
            return Err(Mistake::new("b", what).of(ScenarioPart::Link(most / 2)));
        }
        if 2 * self.links.len() + self.cell_interfaces() > most {
            let what = format!(
                "with all cells there are more than {most} interfaces, which is the limit; simulate a part \
                 of the network"
            );
            return Err(Mistake::new("stations", what).of(ScenarioPart::Cell(0)));
        }
        let mut flows = 0;
        for (index, flow) in self.flows.iter().enumerate() {
            flows += flow.count as usize;
            if flows > most {
                let what = format!(
                    "up to here there are more than {most} flows, which is the limit; lower the counts"
                );
                return Err(Mistake::new("count", what).of(ScenarioPart::Flow(index)));
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Mistake> {
        if self.duration.is_zero() || self.duration > LONGEST {
            return Err(Mistake::new(
                "duration",
                format!(
                    "the duration is {:?}, but must be above 0 and at most a year",
                    self.duration
                ),
            ));
        }
        if self.measure.start >= self.measure.end || self.measure.end > self.duration {
            return Err(Mistake::new(
                "measure",
                format!(
                    "the measurement window is from {:?} to {:?}, but must begin before it ends, and end \
                     within the duration of {:?}",
                    self.measure.start, self.measure.end, self.duration
                ),
            ));
        }
        if self.interval.is_zero() || self.interval > self.duration {
            return Err(Mistake::new(
                "interval",
                format!(
                    "the interval is {:?}, but must be above 0 and at most the duration; 100 ms is usual",
                    self.interval
                ),
            ));
        }
        Ok(())
    }
}
