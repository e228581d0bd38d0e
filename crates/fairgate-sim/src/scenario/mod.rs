//! What is to be simulated: nodes, links between them, flows through them. Built in code, or read from a file.

mod application;
mod error;
mod flow;
mod link;
mod route;

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::time::Duration;

pub use application::Application;
pub use error::{Culprit, ScenarioError};
pub(crate) use flow::UDP_HEADERS;
pub use flow::{Flow, Pattern, Tcp, Traffic, Udp};
pub use link::{ETHERNET_HEADER, Link, Queue};
pub(crate) use route::{Hop, Router};

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

    /// Whether all parts make sense by themselves and together, routes apart.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let whole = |what: String| Err(ScenarioError::new(Culprit::Scenario, what));
        if self.duration.is_zero() {
            return whole("`duration` is 0, but must be above 0; give the time to simulate".into());
        }
        if self.measure.start >= self.measure.end || self.measure.end > self.duration {
            return whole(format!(
                "`measure` is from {:?} to {:?}, but must begin before it ends and end within `duration`, {:?}",
                self.measure.start, self.measure.end, self.duration
            ));
        }
        if self.interval.is_zero() {
            return whole("`interval` is 0, but must be above 0; 100 ms is usual".into());
        }
        for (index, link) in self.links.iter().enumerate() {
            link.check(self)
                .map_err(|what| ScenarioError::new(Culprit::Link(index), what))?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check(self)
                .map_err(|what| ScenarioError::new(Culprit::Flow(index), what))?;
        }
        Ok(())
    }
}
