//! One search from a node of the core to all others. The fewest hops win, then the least delay.

use std::time::Duration;

use crate::scenario::route::core::{Core, Edge, Hop};

/// The cost of a path: hops, then delay.
pub(super) type Cost = (u32, Duration);

/// Whether paths begin or end at the root of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Source,
    Destination,
}

/// The cost of the best path between the root and each node of the core. `None`: there is no path.
#[derive(Debug)]
pub(super) struct Search<'a> {
    core: &'a Core,
    root: usize,
    kind: Root,
    costs: Vec<Option<Cost>>,
}

impl<'a> Search<'a> {
    /// Searches level by level. Because hops come first, the cost of a node is final when its level is done.
    pub(super) fn new(core: &'a Core, root: usize, kind: Root) -> Search<'a> {
        let mut search = Search {
            core,
            root,
            kind,
            costs: vec![None; core.len()],
        };
        search.costs[root] = Some((0, Duration::ZERO));
        let mut level = vec![root];
        while !level.is_empty() {
            let mut next = Vec::new();
            for node in level {
                let (hops, delay) = search.costs[node].expect("a node of a level has been reached");
                for edge in core.edges(node) {
                    let cost = (hops + 1, delay + search.delay(edge));
                    let known = &mut search.costs[edge.to];
                    if known.is_none() {
                        next.push(edge.to);
                    }
                    if known.is_none_or(|known| cost < known) {
                        *known = Some(cost);
                    }
                }
            }
            level = next;
        }
        search
    }

    /// Returns the delay of an edge away from the root, in the direction of the packets.
    fn delay(&self, edge: &Edge) -> Duration {
        match self.kind {
            Root::Source => edge.delay,
            Root::Destination => edge.delay_back,
        }
    }

    /// Returns whether there is a path between the root and `node`.
    pub(super) fn reaches(&self, node: usize) -> bool {
        self.costs[node].is_some()
    }

    /// Returns the edges from `node` to its neighbours on best paths to the root.
    pub(super) fn towards_root(&self, node: usize) -> impl Iterator<Item = (&'a Edge, Cost)> {
        let own = self.costs[node];
        self.core.edges(node).iter().filter_map(move |edge| {
            // Seen from the neighbour, this edge leads away from the root.
            let delay = match self.kind {
                Root::Source => edge.delay_back,
                Root::Destination => edge.delay,
            };
            let (hops, so_far) = self.costs[edge.to]?;
            (own == Some((hops + 1, so_far + delay))).then_some((edge, (hops, so_far)))
        })
    }

    /// Returns the hops from the root, which is the source, to `node`. Of several best paths it is the one
    /// that reaches each node from the neighbour with the least delay, then from the one that comes first in
    /// the scenario, over the link that comes first.
    pub(super) fn path(&self, node: usize) -> Vec<Hop> {
        assert_eq!(self.kind, Root::Source, "paths begin at the root");
        let mut path = Vec::new();
        let mut at = node;
        while at != self.root {
            let (edge, _) = self
                .towards_root(at)
                .min_by_key(|(edge, (_, delay))| (*delay, edge.to, edge.hop))
                .expect("a node that was reached has a neighbour nearer to the root");
            path.push(edge.hop.back());
            at = edge.to;
        }
        path.reverse();
        path
    }
}
