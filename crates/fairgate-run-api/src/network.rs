//! The nodes of a network in the tree of a list of subscribers: sites, access points.
//!
//! A node is an inner class. It has no discipline, and so it counts what it has sent and nothing else: drops,
//! delays and backlogs are those of the classes below it.

use std::collections::HashMap;

use crate::status::{ClassStatus, NodeStatus, SHARDED};

/// The nodes of a tree.
#[derive(Debug)]
pub struct Network<'t> {
    /// The nodes, in the order of their classes.
    pub nodes: Vec<NetworkNode<'t>>,
    by_class: HashMap<u32, usize>,
}

/// A node.
#[derive(Debug)]
pub struct NetworkNode<'t> {
    /// The path of its class.
    pub path: String,
    /// What people call it.
    pub name: &'t str,
    /// Its class.
    pub state: &'t ClassStatus,
    /// The index of the node above it.
    pub above: Option<usize>,
}

/// Returns the trees of a direction, each with the path of its root: one, or that of each worker.
pub fn trees(root: &NodeStatus) -> Vec<(String, &NodeStatus)> {
    if root.discipline != SHARDED {
        return vec![(String::new(), root)];
    }
    let of_worker = |tree: &NodeStatus| tree.class.unwrap_or_default().to_string();
    root.classes.iter().map(|tree| (of_worker(tree), tree)).collect()
}

/// Returns the path of a class below the root of a tree.
pub fn below(root: &str, class: u32) -> String {
    match root.is_empty() {
        true => class.to_string(),
        false => format!("{root}/{class}"),
    }
}

impl<'t> Network<'t> {
    /// Returns the nodes of a tree whose root has this path. There are none if it is not that of a list.
    pub fn of(path: &str, tree: &'t NodeStatus) -> Network<'t> {
        let is_inner = |state: &&ClassStatus| tree.in_class(state.class).is_none();
        let mut network = Network {
            nodes: Vec::new(),
            by_class: HashMap::new(),
        };
        for state in tree.class_states.iter().filter(is_inner) {
            let Some(name) = &state.name else {
                continue;
            };
            network.by_class.insert(state.class, network.nodes.len());
            network.nodes.push(NetworkNode {
                path: below(path, state.class),
                name,
                state,
                above: None,
            });
        }
        for index in 0..network.nodes.len() {
            network.nodes[index].above = network.find(network.nodes[index].state.node);
        }
        network
    }

    /// Returns the index of the node that has a class.
    pub fn find(&self, class: Option<u32>) -> Option<usize> {
        self.by_class.get(&class?).copied()
    }

    /// Returns the indices of a node and of all nodes above it.
    pub fn holding(&self, class: Option<u32>) -> impl Iterator<Item = usize> {
        // Whatever a document says: no circle has more steps than there are nodes.
        let up = |index: &usize| self.nodes[*index].above;
        std::iter::successors(self.find(class), up).take(self.nodes.len())
    }

    /// Returns the indices of all nodes, each before the one above it.
    pub fn upwards(&self) -> Vec<usize> {
        let mut indices: Vec<usize> = (0..self.nodes.len()).collect();
        let depth = |index: &usize| self.holding(Some(self.nodes[*index].state.class)).count();
        indices.sort_by_key(|index| std::cmp::Reverse(depth(index)));
        indices
    }
}
