use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use fairgate::Rate;
use proptest::prelude::*;

use super::*;
use crate::scenario::{Link, Udp};

/// A link between two nodes, with its delays from `a` and from `b`, ms.
type Edge = (u32, u32, u64, u64);

fn network(nodes: u32, links: &[Edge]) -> Scenario {
    let mut scenario = Scenario::new(Duration::from_secs(1));
    for number in 0..nodes {
        scenario.node(format!("n{number}"));
    }
    for &(a, b, forth, back) in links {
        let mut link = Link::unlimited(NodeId(a), NodeId(b), Duration::from_millis(forth));
        link.delay_b = Duration::from_millis(back);
        scenario.links.push(link);
    }
    scenario
}

fn flow(from: u32, to: u32) -> Flow {
    Flow::new("f", NodeId(from), NodeId(to), Udp::constant(Rate::mbit(1), 100))
}

/// The hops from node 0 to `to`, over `via` if it is given.
fn route(scenario: &Scenario, to: u32, via: Option<&[Waypoint]>) -> Result<Vec<u32>, String> {
    let mut scenario = scenario.clone();
    let mut flow = flow(0, to);
    flow.route = via.map(<[Waypoint]>::to_vec);
    scenario.flows = vec![flow];
    let routes = Router::new(&scenario).routes().map_err(|error| error.what)?;
    match &routes.routes[0].forth {
        OneWayRoute::Line(hops) => Ok(hops.iter().map(|hop| hop.0).collect()),
        OneWayRoute::Forks(_) => unreachable!("the scenario has no equal-cost paths"),
    }
}

fn nodes(numbers: &[u32]) -> Vec<Waypoint> {
    numbers.iter().map(|&number| NodeId(number).into()).collect()
}

fn both(a: u32, b: u32, millis: u64) -> Edge {
    (a, b, millis, millis)
}

#[test]
fn a_route_minimises_hops_then_delay() {
    // 0-1-3 has less delay than 0-2-3. The path over 4 has the least delay, but more hops.
    let links = [
        both(0, 1, 5),
        both(1, 3, 5),
        both(0, 2, 5),
        both(2, 3, 6),
        both(0, 4, 1),
        both(4, 1, 1),
    ];
    assert_eq!(route(&network(5, &links), 3, None), Ok(vec![0, 2]));
}

#[test]
fn the_fastest_parallel_link_is_used_and_the_first_of_equal_ones() {
    let links = [both(0, 1, 5), both(1, 0, 4), both(0, 1, 4)];
    assert_eq!(route(&network(2, &links), 1, None), Ok(vec![3]));
}

#[test]
fn an_explicit_route_is_followed_and_its_gaps_are_reported() {
    let scenario = network(4, &[both(0, 1, 1), both(1, 3, 1), both(0, 3, 1)]);
    assert_eq!(route(&scenario, 3, Some(&nodes(&[0, 1, 3]))), Ok(vec![0, 2]));
    let error = route(&scenario, 3, Some(&nodes(&[0, 2, 3]))).unwrap_err();
    assert!(error.contains("from `n0` to `n2`"), "{error}");
    assert!(route(&scenario, 3, Some(&nodes(&[1, 3]))).is_err());
}

#[test]
fn an_explicit_route_may_name_a_parallel_link() {
    let mut scenario = network(3, &[both(0, 1, 1), both(0, 1, 9), both(1, 2, 1)]);
    scenario.links[1].name = Some("slow".to_owned());
    let over = |link| [&nodes(&[0])[..], &[Waypoint::Link(link)], &nodes(&[1, 2])].concat();
    assert_eq!(route(&scenario, 2, Some(&over(0))), Ok(vec![0, 4]));
    assert_eq!(route(&scenario, 2, Some(&over(1))), Ok(vec![2, 4]));
    scenario.links[2].name = Some("last".to_owned());
    let error = route(&scenario, 2, Some(&over(2))).unwrap_err();
    assert!(error.contains("over the link `last`"), "{error}");
    let twice = [&nodes(&[0])[..], &[Waypoint::Link(0); 2], &nodes(&[1, 2])].concat();
    assert!(route(&scenario, 2, Some(&twice)).is_err());
}

#[test]
fn the_error_for_a_missing_path_names_both_ends() {
    let error = route(&network(4, &[both(0, 1, 1), both(2, 3, 1)]), 3, None).unwrap_err();
    assert!(error.contains("`n0`") && error.contains("`n3`"), "{error}");
}

/// The search that this project used at first: Dijkstra's algorithm for each flow, over all nodes.
fn dijkstra(scenario: &Scenario, source: NodeId, destination: NodeId) -> Option<Vec<Hop>> {
    let mut outgoing = vec![Vec::new(); scenario.nodes.len()];
    for (index, link) in scenario.links.iter().enumerate() {
        let forth = Hop(2 * index as u32);
        outgoing[link.a.index()].push((forth, link.b, link.delay_a));
        outgoing[link.b.index()].push((forth.back(), link.a, link.delay_b));
    }
    for hops in &mut outgoing {
        hops.sort_by_key(|&(_, _, delay)| delay);
    }
    let mut reached: Vec<Option<(u32, Duration)>> = vec![None; outgoing.len()];
    let mut by: Vec<Option<(Hop, NodeId)>> = vec![None; outgoing.len()];
    reached[source.index()] = Some((0, Duration::ZERO));
    let mut frontier = BinaryHeap::from([Reverse((0, Duration::ZERO, source))]);
    while let Some(Reverse((hops, delay, node))) = frontier.pop() {
        if node == destination {
            break;
        }
        if reached[node.index()] != Some((hops, delay)) {
            continue;
        }
        for &(hop, next, link_delay) in &outgoing[node.index()] {
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

/// All paths with the fewest hops, and of these all with the least delay, by trying every path.
fn all_best(scenario: &Scenario, source: NodeId, destination: NodeId) -> BTreeSet<Vec<Hop>> {
    let mut paths = vec![(Vec::new(), source, Duration::ZERO)];
    for _ in 0..scenario.nodes.len() {
        let mut longer = Vec::new();
        for (path, at, delay) in &paths {
            for index in 0..2 * scenario.links.len() as u32 {
                let hop = Hop(index);
                if hop.from(&scenario.links) == *at {
                    let path: Vec<Hop> = [&path[..], &[hop]].concat();
                    longer.push((path, hop.to(&scenario.links), *delay + hop.delay(&scenario.links)));
                }
            }
        }
        let arrived: Vec<_> = longer.iter().filter(|(_, at, _)| *at == destination).collect();
        if let Some(least) = arrived.iter().map(|(_, _, delay)| *delay).min() {
            let best = arrived.into_iter().filter(|(_, _, delay)| *delay == least);
            return best.map(|(path, ..)| path.clone()).collect();
        }
        paths = longer;
    }
    BTreeSet::new()
}

/// All paths through forks.
fn through(forks: &[Fork], at: usize) -> BTreeSet<Vec<Hop>> {
    if at == 0 {
        return BTreeSet::from([Vec::new()]);
    }
    let choices = forks[at].choices.iter();
    choices
        .flat_map(|&(hop, next)| {
            through(forks, next)
                .into_iter()
                .map(move |rest| [&[hop], &rest[..]].concat())
        })
        .collect()
}

/// Networks with parallel links, equal delays, hosts with one neighbour, and parts without a connection.
fn any_network(most: u32) -> impl Strategy<Value = (Scenario, Vec<(u32, u32)>)> {
    (2..most).prop_flat_map(move |nodes| {
        let pair = (0..nodes, 0..nodes).prop_filter("two different nodes", |(a, b)| a != b);
        let link = (pair.clone(), 1u64..4, 1u64..4).prop_map(|((a, b), forth, back)| (a, b, forth, back));
        let most_links = nodes as usize * 2;
        (
            prop::collection::vec(link, 1..=most_links).prop_map(move |links| network(nodes, &links)),
            prop::collection::vec(pair, 1..8),
        )
    })
}

proptest! {
    #[test]
    fn routes_equal_those_of_a_search_for_each_flow((mut scenario, pairs) in any_network(12)) {
        let paths: Vec<Option<Vec<Hop>>> =
            pairs.iter().map(|&(from, to)| dijkstra(&scenario, NodeId(from), NodeId(to))).collect();
        scenario.flows = pairs.iter().map(|&(from, to)| flow(from, to)).collect();
        match Router::new(&scenario).routes() {
            Ok(routes) => {
                for (path, &place) in paths.iter().zip(&routes.by_flow) {
                    let hops = path.clone().expect("every flow has a path");
                    prop_assert_eq!(&routes.routes[place], &there_and_back(hops));
                }
                let distinct: BTreeSet<_> = pairs.into_iter().collect();
                prop_assert_eq!(routes.routes.len(), distinct.len());
            }
            Err(error) => {
                let first = paths.iter().position(Option::is_none);
                prop_assert_eq!(error.part, ScenarioPart::Flow(first.expect("a flow has no path")));
            }
        }
    }

    #[test]
    fn forks_hold_all_equal_paths_and_no_others((mut scenario, pairs) in any_network(7)) {
        scenario.ecmp = true;
        for (from, to) in pairs {
            let (from, to) = (NodeId(from), NodeId(to));
            scenario.flows = vec![flow(from.0, to.0)];
            let expected = all_best(&scenario, from, to);
            let Ok(routes) = Router::new(&scenario).routes() else {
                prop_assert!(expected.is_empty());
                continue;
            };
            for (way, expected) in [
                (&routes.routes[0].forth, expected),
                (&routes.routes[0].back, all_best(&scenario, to, from)),
            ] {
                let OneWayRoute::Forks(forks) = way else {
                    return Err(TestCaseError::fail("every path has forks"));
                };
                prop_assert_eq!(through(forks, forks.len() - 1), expected);
            }
        }
    }
}
