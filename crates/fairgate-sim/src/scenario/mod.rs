//! What is to be simulated: nodes, links between them, flows through them. Built in code, or read from a file.

mod application;
mod error;
mod file;
mod flow;
mod link;
mod memory;
mod route;

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::time::Duration;

use crate::events::Event;
pub use application::Application;
pub(crate) use error::Mistake;
pub use error::{Culprit, ScenarioError};
pub(crate) use flow::UDP_HEADERS;
pub use flow::{Flow, Pattern, Tcp, Traffic, Udp};
pub use link::{ETHERNET_HEADER, Link, Queue};
pub(crate) use route::{Hop, Router};

/// A year: nanoseconds in 64 bits last for 584, so that no sum of times overflows.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A node of a [`Scenario`], by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The index in [`Scenario::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host or a router: every node sends, receives and forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The address in the headers of its packets, for filters to match.
    pub address: IpAddr,
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
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Links between them.
    pub links: Vec<Link>,
    /// Traffic between them.
    pub flows: Vec<Flow>,
    /// How long to simulate.
    pub duration: Duration,
    /// What figures are taken from: from the first point in time up to, not including, the second.
    pub measure: Range<Duration>,
    /// Distance of the points of time series.
    pub interval: Duration,
    /// Where all chance comes from: equal seeds give equal results, to the last digit.
    pub seed: u64,
}

impl Scenario {
    /// An empty network, measured over the whole `duration`, with time series by 100 ms and seed 1.
    pub fn new(duration: Duration) -> Scenario {
        Scenario {
            nodes: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
            duration,
            measure: Duration::ZERO..duration,
            interval: Duration::from_millis(100),
            seed: 1,
        }
    }

    /// Adds a node. Its address is 10.0.0.0 plus its number, counted from 1.
    pub fn node(&mut self, name: impl Into<String>) -> NodeId {
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            name: name.into(),
            address: IpAddr::V4(Ipv4Addr::from_bits((10 << 24) + number + 1)),
        });
        NodeId(number)
    }

    /// The node called `name`.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .map(|index| NodeId(index as u32))
    }

    /// The name of a node.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// Whether the scenario can be simulated: all parts make sense, and every flow has a path.
    ///
    /// # Errors
    /// Names the first part that doesn't.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_times()
            .map_err(|mistake| mistake.of(Culprit::Scenario))?;
        self.check_size()?;
        for (index, link) in self.links.iter().enumerate() {
            link.check(self)
                .map_err(|mistake| mistake.of(Culprit::Link(index)))?;
        }
        let router = Router::new(self);
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check(self)
                .and_then(|()| router.route(flow).map(|_| ()))
                .map_err(|mistake| mistake.of(Culprit::Flow(index)))?;
        }
        Ok(())
    }

    /// The engine's events name interfaces and flows by numbers of 22 bits.
    fn check_size(&self) -> Result<(), ScenarioError> {
        let most = Event::INDICES as usize;
        if 2 * self.links.len() > most {
            let what = format!(
                "there are more than {} links; simulate a part of the network",
                most / 2
            );
            return Err(Mistake::new("b", what).of(Culprit::Link(most / 2)));
        }
        let mut flows = 0;
        for (index, flow) in self.flows.iter().enumerate() {
            flows += flow.count as usize;
            if flows > most {
                let what = format!("there are more than {most} flows up to here; lower the counts");
                return Err(Mistake::new("count", what).of(Culprit::Flow(index)));
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
                    "the window of measurement is from {:?} to {:?}, but must begin before it ends, and end within the \
                     duration of {:?}",
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
