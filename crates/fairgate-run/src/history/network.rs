//! What the nodes of a network did: the sums of what the classes below them did.

use std::collections::HashMap;

use fairgate_run_api::{DirectionStatus, Network, below, trees};

use super::{ClassFigures, Moved};

/// Returns what each node did. `moved` has what each class did, by its path.
pub(super) fn of_nodes(direction: &DirectionStatus, moved: &HashMap<&str, Moved>) -> Vec<ClassFigures> {
    let mut all = Vec::new();
    for (path, tree) in trees(&direction.tree) {
        let network = Network::of(&path, tree);
        let figures = |index: usize| ClassFigures::of_node(&network.nodes[index]);
        let mut nodes: Vec<ClassFigures> = (0..network.nodes.len()).map(figures).collect();
        let mut sums = vec![Moved::default(); nodes.len()];
        for class in &tree.classes {
            let number = class.class.unwrap_or_default();
            let did = moved.get(below(&path, number).as_str());
            for index in network.holding(class.node) {
                nodes[index].add_counts(class);
                if let Some(did) = did {
                    sums[index].add_beside(did);
                }
            }
        }
        for (node, sum) in nodes.iter_mut().zip(&sums) {
            node.set_moved(sum);
        }
        all.extend(nodes);
    }
    all
}
