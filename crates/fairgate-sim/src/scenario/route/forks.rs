//! Equal-cost paths: at each node the hops among which it chooses.

use std::collections::BTreeMap;

use crate::scenario::NodeId;
use crate::scenario::route::Router;
use crate::scenario::route::core::Hop;
use crate::scenario::route::search::Search;

/// A node on the way, and the hops from it. The destination has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) node: NodeId,
    /// The hops in the order of the scenario, each with the index of the fork to which it leads.
    pub(crate) choices: Vec<(Hop, usize)>,
}

/// Returns the forks between two nodes: the destination first, the source last. `search` ends at the place of
/// the destination in the core, and there is a path.
pub(super) fn forks(
    router: &Router<'_>,
    search: &Search<'_>,
    source: NodeId,
    destination: NodeId,
) -> Vec<Fork> {
    let core = &router.core;
    let (first, last) = (core.number(source), core.number(destination));
    let mut forks = vec![Fork {
        node: destination,
        choices: Vec::new(),
    }];
    let all_to = |hops: Vec<Hop>, index: usize| hops.into_iter().map(|hop| (hop, index)).collect();
    // The indices of forks, by number in the core.
    let mut indices = BTreeMap::new();
    if core.is_host(destination) {
        forks.push(Fork {
            node: core.node(last),
            choices: all_to(router.best_links(core.node(last), destination), 0),
        });
    }
    indices.insert(last, forks.len() - 1);
    for node in passed(search, first, last) {
        let mut choices: Vec<(Hop, usize)> = search
            .towards_root(node)
            .map(|(edge, _)| (edge.hop, indices[&edge.to]))
            .collect();
        choices.sort_unstable();
        indices.insert(node, forks.len());
        forks.push(Fork {
            node: core.node(node),
            choices,
        });
    }
    if core.is_host(source) {
        forks.push(Fork {
            node: source,
            choices: all_to(router.best_links(source, core.node(first)), indices[&first]),
        });
    }
    forks
}

/// Returns the nodes of the core on best paths from `first` to the root `last`, without `last`. A node comes
/// after all nodes to which its hops lead.
fn passed(search: &Search<'_>, first: usize, last: usize) -> Vec<usize> {
    let mut hops = BTreeMap::from([(first, 0u32)]);
    let mut level = vec![first];
    let mut depth = 0;
    // Each step leads one hop nearer to the root. So all paths to a node have the same length.
    while !level.is_empty() {
        depth += 1;
        let mut next = Vec::new();
        for node in level {
            for (edge, _) in search.towards_root(node) {
                if hops.insert(edge.to, depth).is_none() {
                    next.push(edge.to);
                }
            }
        }
        level = next;
    }
    hops.remove(&last);
    let mut nodes: Vec<(u32, usize)> = hops.into_iter().map(|(node, depth)| (depth, node)).collect();
    nodes.sort_by_key(|&(depth, node)| (u32::MAX - depth, node));
    nodes.into_iter().map(|(_, node)| node).collect()
}
