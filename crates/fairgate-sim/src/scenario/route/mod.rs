//! Static routes. The path with the fewest hops wins, then the one with the least delay, then the link that
//! comes first in the scenario. Equal scenarios therefore have equal routes.
//!
//! With [`Scenario::ecmp`], all paths with the fewest hops and the least delay are used. Each node on the way
//! chooses the next hop by the hash of the packet's flow, as routers do (RFC 2992).

mod core;
mod forks;
mod search;
mod waypoint;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::scenario::{Flow, Mistake, NodeId, Scenario, ScenarioError, ScenarioPart};
use core::Core;
pub(crate) use core::Hop;
pub(crate) use forks::Fork;
use forks::forks;
use search::{Root, Search};
pub use waypoint::Waypoint;

/// The way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OneWayRoute {
    /// All packets take these hops.
    Line(Vec<Hop>),
    /// Each node chooses. The first entry is the destination, the last one the source. Choices lead to
    /// earlier entries.
    Forks(Vec<Fork>),
}

/// The ways of a flow: to its destination, and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) forth: OneWayRoute,
    pub(crate) back: OneWayRoute,
}

/// All routes of a scenario. Flows with the same source and destination share one.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) routes: Vec<Route>,
    /// The index of each flow's route.
    pub(crate) by_flow: Vec<usize>,
}

/// Finds paths.
pub(crate) struct Router<'a> {
    scenario: &'a Scenario,
    /// The outgoing hops of each node, in the order of the scenario.
    outgoing: Vec<Vec<Hop>>,
    core: Core,
}

impl<'a> Router<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Router<'a> {
        let mut outgoing = vec![Vec::new(); scenario.nodes.len()];
        for (index, link) in scenario.links.iter().enumerate() {
            let forth = Hop(2 * index as u32);
            outgoing[link.a.index()].push(forth);
            outgoing[link.b.index()].push(forth.back());
        }
        let core = Core::new(scenario, &outgoing);
        Router {
            scenario,
            outgoing,
            core,
        }
    }

    /// Finds the routes of all flows. The source of each flow differs from its destination.
    ///
    /// # Errors
    /// Reports a flow without a path, or with a wrong one.
    pub(crate) fn routes(&self) -> Result<Routes, ScenarioError> {
        let mut found: Vec<Option<Route>> = Vec::new();
        let mut by_flow = Vec::with_capacity(self.scenario.flows.len());
        let mut pairs: BTreeMap<[NodeId; 2], usize> = BTreeMap::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let place = match &flow.route {
                Some(waypoints) => {
                    let hops = self
                        .explicit(flow, waypoints)
                        .map_err(|mistake| mistake.of(ScenarioPart::Flow(index)))?;
                    found.push(Some(there_and_back(hops)));
                    found.len() - 1
                }
                None => *pairs.entry([flow.source, flow.destination]).or_insert_with(|| {
                    found.push(None);
                    found.len() - 1
                }),
            };
            by_flow.push(place);
        }
        match self.scenario.ecmp {
            false => self.lines(pairs, &mut found),
            true => self.forks(pairs, &mut found),
        }
        let mut routes = Vec::with_capacity(found.len());
        for (place, route) in found.into_iter().enumerate() {
            routes.push(route.ok_or_else(|| {
                // Places are given in the order of flows. So this is the first flow without a path.
                let index = by_flow.iter().position(|&other| other == place);
                let index = index.expect("every place belongs to a flow");
                self.no_path(&self.scenario.flows[index])
                    .of(ScenarioPart::Flow(index))
            })?);
        }
        Ok(Routes { routes, by_flow })
    }

    fn no_path(&self, flow: &Flow) -> Mistake {
        let what = format!(
            "flow `{}` has no path from `{}` to `{}`; add the links that are missing between them",
            flow.name,
            self.scenario.node_name(flow.source),
            self.scenario.node_name(flow.destination)
        );
        Mistake::new("to", what)
    }

    /// Finds one path for each pair. All pairs with their sources at the same place of the core share a
    /// search.
    fn lines(&self, pairs: BTreeMap<[NodeId; 2], usize>, found: &mut [Option<Route>]) {
        let mut pairs: Vec<([NodeId; 2], usize)> = pairs.into_iter().collect();
        let root = |[source, _]: &[NodeId; 2]| self.core.number(*source);
        pairs.sort_by_key(|(pair, _)| root(pair));
        for pairs in pairs.chunk_by(|one, other| root(&one.0) == root(&other.0)) {
            let search = Search::new(&self.core, root(&pairs[0].0), Root::Source);
            for &([source, destination], place) in pairs {
                let end = self.core.number(destination);
                if !search.reaches(end) {
                    continue;
                }
                let mut hops = Vec::new();
                if self.core.is_host(source) {
                    hops.push(self.best_links(source, self.core.node(root(&[source, destination])))[0]);
                }
                hops.extend(search.path(end));
                if self.core.is_host(destination) {
                    hops.push(self.best_links(self.core.node(end), destination)[0]);
                }
                found[place] = Some(there_and_back(hops));
            }
        }
    }

    /// Finds all equal paths of each pair, in both directions. All pairs with their destinations at the same
    /// place of the core share a search.
    fn forks(&self, pairs: BTreeMap<[NodeId; 2], usize>, found: &mut [Option<Route>]) {
        let mut ways: Vec<([NodeId; 2], usize, bool)> = pairs
            .into_iter()
            .flat_map(|([source, destination], place)| {
                [
                    ([source, destination], place, false),
                    ([destination, source], place, true),
                ]
            })
            .collect();
        let root = |[_, destination]: &[NodeId; 2]| self.core.number(*destination);
        ways.sort_by_key(|(pair, place, _)| (root(pair), *place));
        for ways in ways.chunk_by(|one, other| root(&one.0) == root(&other.0)) {
            let search = Search::new(&self.core, root(&ways[0].0), Root::Destination);
            for &([source, destination], place, is_back) in ways {
                if !search.reaches(self.core.number(source)) {
                    continue;
                }
                let route = found[place].get_or_insert_with(|| there_and_back(Vec::new()));
                let way = OneWayRoute::Forks(forks(self, &search, source, destination));
                match is_back {
                    false => route.forth = way,
                    true => route.back = way,
                }
            }
        }
    }

    /// Returns the links from one node to its neighbour with the least delay, in the order of the scenario.
    fn best_links(&self, from: NodeId, to: NodeId) -> Vec<Hop> {
        let links = &self.scenario.links;
        // A host has few links, a router may have ten thousand.
        let (is_reverse, end, other) = match self.core.is_host(from) {
            true => (false, from, to),
            false => (true, to, from),
        };
        let hops = self.outgoing[end.index()]
            .iter()
            .filter(|hop| hop.to(links) == other);
        let hops: Vec<Hop> = hops
            .map(|&hop| if is_reverse { hop.back() } else { hop })
            .collect();
        let least = hops.iter().map(|hop| hop.delay(links)).min();
        let best = hops.into_iter().filter(|hop| Some(hop.delay(links)) == least);
        best.collect()
    }

    fn explicit(&self, flow: &Flow, waypoints: &[Waypoint]) -> Result<Vec<Hop>, Mistake> {
        let links = &self.scenario.links;
        let name = |node| self.scenario.node_name(node);
        let wrong = |what: String| Mistake::new("route", format!("the route of flow `{}` {what}", flow.name));
        let ends = [waypoints.first(), waypoints.last()];
        if ends
            != [flow.source, flow.destination]
                .map(Waypoint::Node)
                .each_ref()
                .map(Some)
        {
            return Err(wrong(format!(
                "must lead from `{}` to `{}`, both included",
                name(flow.source),
                name(flow.destination)
            )));
        }
        let (mut at, mut over) = (flow.source, None);
        let mut hops = Vec::new();
        for waypoint in &waypoints[1..] {
            let to = match *waypoint {
                Waypoint::Node(node) => node,
                Waypoint::Link(link) if over.is_some() || link >= links.len() => {
                    return Err(wrong(
                        "has a link that does not stand between two nodes; write the nodes on both sides of \
                         it"
                        .to_owned(),
                    ));
                }
                Waypoint::Link(link) => {
                    over = Some(link);
                    continue;
                }
            };
            let (from, over) = (std::mem::replace(&mut at, to), over.take());
            let hop = self.outgoing[from.index()]
                .iter()
                .filter(|hop| hop.to(links) == to && over.is_none_or(|link| hop.link() == link))
                .min_by_key(|hop| hop.delay(links));
            hops.push(*hop.ok_or_else(|| {
                let (from, to) = (name(from), name(to));
                wrong(match over.map(|link| links[link].name.as_deref()) {
                    None => format!("goes from `{from}` to `{to}`, but no link does"),
                    Some(link) => format!(
                        "goes from `{from}` to `{to}` over the link `{}`, but this link does not connect \
                         them; name a link between these two nodes, or none",
                        link.unwrap_or("without a name")
                    ),
                })
            })?);
        }
        Ok(hops)
    }
}

/// Returns the route over these hops, with the same links back.
fn there_and_back(hops: Vec<Hop>) -> Route {
    let back = hops.iter().rev().map(|hop| hop.back()).collect();
    Route {
        forth: OneWayRoute::Line(hops),
        back: OneWayRoute::Line(back),
    }
}
