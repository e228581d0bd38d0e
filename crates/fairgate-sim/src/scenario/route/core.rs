//! The network as the search sees it: hosts with one neighbour are left out.
//!
//! Every path from or to such a host passes its neighbour, and no other path passes the host. So paths are
//! searched between neighbours only. Ten thousand pairs of hosts around two routers need two searches over
//! two nodes.

use std::time::Duration;

use crate::scenario::{Link, NodeId, Scenario};

/// One direction of a link. Each link has two: `a` to `b` is even, `b` to `a` odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop(pub(crate) u32);

impl Hop {
    /// Returns the other direction of the same link.
    pub(crate) fn back(self) -> Hop {
        Hop(self.0 ^ 1)
    }

    /// Returns the index of the link.
    pub(crate) fn link(self) -> usize {
        self.0 as usize / 2
    }

    /// Returns the node from which the hop leads.
    pub(crate) fn from(self, links: &[Link]) -> NodeId {
        let link = &links[self.link()];
        if self.0.is_multiple_of(2) { link.a } else { link.b }
    }

    /// Returns the node to which the hop leads.
    pub(crate) fn to(self, links: &[Link]) -> NodeId {
        self.back().from(links)
    }

    pub(super) fn delay(self, links: &[Link]) -> Duration {
        links[self.link()].delays()[self.0 as usize % 2]
    }
}

/// A hop between two nodes of the core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) hop: Hop,
    /// The number of the other node in the core.
    pub(super) to: usize,
    pub(super) delay: Duration,
    /// The delay of the opposite direction.
    pub(super) delay_back: Duration,
}

/// The network without hosts that have one neighbour.
#[derive(Debug)]
pub(super) struct Core {
    /// The number of each node in the core, or that of its only neighbour.
    number: Vec<usize>,
    /// Whether the node is outside of the core.
    is_host: Vec<bool>,
    /// The nodes of the core, in the order of the scenario.
    nodes: Vec<NodeId>,
    /// By number in the core, in the order of the scenario.
    edges: Vec<Vec<Edge>>,
}

impl Core {
    pub(super) fn new(scenario: &Scenario, outgoing: &[Vec<Hop>]) -> Core {
        let links = &scenario.links;
        // `None` if there is no neighbour, or several ones.
        let only_neighbour = |node: usize| {
            let mut neighbours = outgoing[node].iter().map(|hop| hop.to(links));
            let first = neighbours.next()?;
            neighbours.all(|other| other == first).then_some(first)
        };
        let only: Vec<Option<NodeId>> = (0..outgoing.len()).map(only_neighbour).collect();
        // Two hosts that have only each other are both in the core.
        let router_of = |node: usize| only[node].filter(|neighbour| only[neighbour.index()].is_none());
        let is_host: Vec<bool> = (0..only.len()).map(|node| router_of(node).is_some()).collect();
        let mut number = vec![0; only.len()];
        let mut nodes = Vec::new();
        for node in (0..only.len()).filter(|&node| !is_host[node]) {
            number[node] = nodes.len();
            nodes.push(NodeId(node as u32));
        }
        for node in 0..only.len() {
            if let Some(router) = router_of(node) {
                number[node] = number[router.index()];
            }
        }
        let edges = nodes
            .iter()
            .map(|node| {
                let hops = outgoing[node.index()].iter();
                hops.filter(|hop| !is_host[hop.to(links).index()])
                    .map(|&hop| Edge {
                        hop,
                        to: number[hop.to(links).index()],
                        delay: hop.delay(links),
                        delay_back: hop.back().delay(links),
                    })
                    .collect()
            })
            .collect();
        Core {
            number,
            is_host,
            nodes,
            edges,
        }
    }

    /// Returns the number of a node in the core, or that of its only neighbour.
    pub(super) fn number(&self, node: NodeId) -> usize {
        self.number[node.index()]
    }

    /// Whether the node is outside of the core.
    pub(super) fn is_host(&self, node: NodeId) -> bool {
        self.is_host[node.index()]
    }

    /// Returns the node with this number.
    pub(super) fn node(&self, number: usize) -> NodeId {
        self.nodes[number]
    }

    /// Returns the edges from the node with this number.
    pub(super) fn edges(&self, number: usize) -> &[Edge] {
        &self.edges[number]
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}
