//! Static routes. The path with the fewest hops wins, then the one with the least delay, then the link that
//! comes first in the scenario. Equal scenarios therefore have equal routes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::scenario::{Flow, Mistake, NodeId, Scenario};

/// One direction of a link. Each link has two: `a` to `b` is even, `b` to `a` odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop(pub(crate) u32);

impl Hop {
    /// Returns the other direction of the same link.
    pub(crate) fn back(self) -> Hop {
        Hop(self.0 ^ 1)
    }
}

/// Finds paths.
pub(crate) struct Router<'a> {
    scenario: &'a Scenario,
    /// The outgoing hops of each node, sorted by delay.
    outgoing: Vec<Vec<(Hop, NodeId, Duration)>>,
}

impl<'a> Router<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Router<'a> {
        let mut outgoing = vec![Vec::new(); scenario.nodes.len()];
        for (index, link) in scenario.links.iter().enumerate() {
            let forth = Hop(2 * index as u32);
            outgoing[link.a.index()].push((forth, link.b, link.delay));
            outgoing[link.b.index()].push((forth.back(), link.a, link.delay));
        }
        for hops in &mut outgoing {
            hops.sort_by_key(|&(_, _, delay)| delay);
        }
        Router { scenario, outgoing }
    }

    /// Returns the hops from the flow's source to its destination, or what is missing.
    pub(crate) fn route(&self, flow: &Flow) -> Result<Vec<Hop>, Mistake> {
        match &flow.route {
            Some(nodes) => self.explicit(flow, nodes),
            None => self.shortest(flow.source, flow.destination).ok_or_else(|| {
                let what = format!(
                    "flow `{}` has no path from `{}` to `{}`; add the links that are missing between them",
                    flow.name,
                    self.scenario.node_name(flow.source),
                    self.scenario.node_name(flow.destination)
                );
                Mistake::new("to", what)
            }),
        }
    }

    fn explicit(&self, flow: &Flow, nodes: &[NodeId]) -> Result<Vec<Hop>, Mistake> {
        if nodes.first() != Some(&flow.source) || nodes.last() != Some(&flow.destination) {
            let what = format!(
                "the route of flow `{}` must lead from `{}` to `{}`, both included",
                flow.name,
                self.scenario.node_name(flow.source),
                self.scenario.node_name(flow.destination)
            );
            return Err(Mistake::new("route", what));
        }
        nodes
            .windows(2)
            .map(|pair| {
                self.outgoing[pair[0].index()]
                    .iter()
                    .find(|(_, to, _)| *to == pair[1])
                    .map(|&(hop, _, _)| hop)
                    .ok_or_else(|| {
                        let what = format!(
                            "the route of flow `{}` goes from `{}` to `{}`, but no link does",
                            flow.name,
                            self.scenario.node_name(pair[0]),
                            self.scenario.node_name(pair[1])
                        );
                        Mistake::new("route", what)
                    })
            })
            .collect()
    }

    /// Dijkstra's algorithm over (hops, delay).
    fn shortest(&self, source: NodeId, destination: NodeId) -> Option<Vec<Hop>> {
        let mut reached: Vec<Option<(u32, Duration)>> = vec![None; self.outgoing.len()];
        let mut by: Vec<Option<(Hop, NodeId)>> = vec![None; self.outgoing.len()];
        reached[source.index()] = Some((0, Duration::ZERO));
        let mut frontier = BinaryHeap::from([Reverse((0, Duration::ZERO, source))]);
        while let Some(Reverse((hops, delay, node))) = frontier.pop() {
            if node == destination {
                break;
            }
            if reached[node.index()] != Some((hops, delay)) {
                continue;
            }
            for &(hop, next, link_delay) in &self.outgoing[node.index()] {
                let cost = (hops + 1, delay + link_delay);
                if reached[next.index()].is_none_or(|known| cost < known) {
                    reached[next.index()] = Some(cost);
                    by[next.index()] = Some((hop, node));
                    frontier.push(Reverse((cost.0, cost.1, next)));
                }
            }
        }
        let mut path = Vec::new();
        let mut at = destination;
        while at != source {
            let (hop, from) = by[at.index()]?;
            path.push(hop);
            at = from;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Link, Udp};
    use fairgate::Rate;

    fn network(links: &[(u32, u32, u64)]) -> Scenario {
        let mut scenario = Scenario::new(Duration::from_secs(1));
        for name in ["a", "b", "c", "d", "e"] {
            scenario.node(name);
        }
        for &(a, b, millis) in links {
            scenario.links.push(Link::unlimited(
                NodeId(a),
                NodeId(b),
                Duration::from_millis(millis),
            ));
        }
        scenario
    }

    fn route(scenario: &Scenario, to: u32, via: Option<&[u32]>) -> Result<Vec<u32>, String> {
        let mut flow = Flow::new("f", NodeId(0), NodeId(to), Udp::constant(Rate::mbit(1), 100));
        flow.route = via.map(|nodes| nodes.iter().map(|&node| NodeId(node)).collect());
        let hops = Router::new(scenario)
            .route(&flow)
            .map_err(|mistake| mistake.what)?;
        Ok(hops.into_iter().map(|hop| hop.0).collect())
    }

    #[test]
    fn a_route_minimises_hops_then_delay() {
        // a-b-d has less delay than a-c-d. The path over e has the least delay, but more hops.
        let scenario = network(&[(0, 1, 5), (1, 3, 5), (0, 2, 5), (2, 3, 6), (0, 4, 1), (4, 1, 1)]);
        assert_eq!(route(&scenario, 3, None), Ok(vec![0, 2]));
    }

    #[test]
    fn the_fastest_parallel_link_is_used_and_the_first_of_equal_ones() {
        let scenario = network(&[(0, 1, 5), (1, 0, 4), (0, 1, 4)]);
        assert_eq!(route(&scenario, 1, None), Ok(vec![3]));
    }

    #[test]
    fn an_explicit_route_is_followed_and_its_gaps_are_reported() {
        let scenario = network(&[(0, 1, 1), (1, 3, 1), (0, 3, 1)]);
        assert_eq!(route(&scenario, 3, Some(&[0, 1, 3])), Ok(vec![0, 2]));
        let error = route(&scenario, 3, Some(&[0, 2, 3])).unwrap_err();
        assert!(error.contains("from `a` to `c`"), "{error}");
        assert!(route(&scenario, 3, Some(&[1, 3])).is_err());
    }

    #[test]
    fn the_error_for_a_missing_path_names_both_ends() {
        let scenario = network(&[(0, 1, 1), (2, 3, 1)]);
        let error = route(&scenario, 3, None).unwrap_err();
        assert!(error.contains("`a`") && error.contains("`d`"), "{error}");
    }
}
