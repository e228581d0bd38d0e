//! The series of the nodes of a network: sites, access points. A node counts what it has sent; drops, delays
//! and backlogs are the sums of what is below it, which never fall.

use std::collections::{HashMap, HashSet};

use fairgate_run_api::{Network, NodeStatus, below, trees};

use super::figures::{Figures, Sum, Summed};

/// The nodes of a direction, by the paths of their classes: each is the sum of the subscribers that are
/// connected to it, and of the nodes right below it.
#[derive(Debug, Default)]
pub(super) struct Nodes(HashMap<String, Summed>);

/// A series of a node.
#[derive(Debug)]
pub(super) struct NodeRow {
    pub(super) from: String,
    /// The path of its class.
    pub(super) class: String,
    pub(super) name: String,
    /// The name of the node above it. The line has none.
    pub(super) above: String,
    pub(super) limit_bps: u64,
    pub(super) sent: Sum,
    /// Of what is below it.
    pub(super) figures: Figures,
}

impl Nodes {
    /// Takes a reading, and adds a row for each of the first `most` nodes of a tree.
    pub(super) fn take(&mut self, root: &NodeStatus, from: &str, most: usize, rows: &mut Vec<NodeRow>) {
        let mut present: HashSet<String> = HashSet::new();
        for (path, tree) in trees(root) {
            let network = Network::of(&path, tree);
            let shown = &network.nodes[..network.nodes.len().min(most)];
            let mut members: Vec<HashSet<String>> = vec![HashSet::new(); network.nodes.len()];
            for class in &tree.classes {
                if let Some(node) = network.find(class.node) {
                    let class_path = below(&path, class.class.unwrap_or_default());
                    let known = self.0.entry(network.nodes[node].path.clone()).or_default();
                    known.take(&class_path, Figures::of(class));
                    members[node].insert(class_path);
                }
            }
            let mut totals: Vec<Figures> = vec![Figures::default(); network.nodes.len()];
            for index in network.upwards() {
                let node = &network.nodes[index];
                let known = self.0.entry(node.path.clone()).or_default();
                known.keep(|path| members[index].contains(path));
                totals[index] = known.total();
                present.insert(node.path.clone());
                if let Some(above) = node.above {
                    let holder = self.0.entry(network.nodes[above].path.clone()).or_default();
                    holder.take(&node.path, totals[index].clone());
                    members[above].insert(node.path.clone());
                }
            }
            rows.extend(shown.iter().zip(totals).map(|(node, figures)| {
                NodeRow {
                    from: from.to_owned(),
                    class: node.path.clone(),
                    name: node.name.to_owned(),
                    above: node
                        .above
                        .map_or_else(String::new, |above| network.nodes[above].name.to_owned()),
                    limit_bps: node.state.limit_bps.unwrap_or(0),
                    sent: node.state.sent.into(),
                    figures,
                }
            }));
        }
        self.0.retain(|path, _| present.contains(path));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairgate_run_api::{ClassStatus, CountStatus, Detail, Question, Status, ask};
    use proptest::prelude::*;

    use super::*;
    use crate::rehearsal::Rehearsal;

    /// A tree with the line (1), a site (16) and an access point (17) below it, and these classes: by their
    /// numbers, the node of each and the packets that it has sent. A tenth of them was dropped besides.
    fn tree(classes: &BTreeMap<u32, (u32, u64)>) -> NodeStatus {
        let rehearsal = Rehearsal::new("fifo").unwrap();
        let detail = Detail::Used;
        let status: Status = ask(&rehearsal, "", Question::Status { detail }).unwrap();
        let empty = &status.directions[0].tree;
        let node = |class: u32, name: &str, node: Option<u32>| ClassStatus {
            class,
            name: Some(name.to_owned()),
            node,
            limit_bps: Some(1000),
            sent: CountStatus {
                packets: 7,
                bytes: 700,
            },
            overlimits: 0,
            variables: BTreeMap::new(),
            at_s: 0.0,
        };
        let mut root = empty.clone();
        root.class_states = vec![
            node(1, "line", None),
            node(16, "Site", Some(1)),
            node(17, "AP", Some(16)),
        ];
        let class = |(&number, &(node, packets)): (&u32, &(u32, u64))| {
            let mut class = empty.clone();
            class.class = Some(number);
            class.node = Some(node);
            class.dequeued.packets = packets;
            class.dropped.packets = packets / 10;
            class.sojourn_s = 0.1 * packets as f64;
            class.backlog.bytes = 1;
            class
        };
        root.classes = classes.iter().map(class).collect();
        root
    }

    fn rows(nodes: &mut Nodes, classes: &[(u32, (u32, u64))], most: usize) -> Vec<NodeRow> {
        let mut rows = Vec::new();
        let classes = classes.iter().copied().collect();
        nodes.take(&tree(&classes), "left", most, &mut rows);
        rows
    }

    #[test]
    fn a_node_sums_what_is_below_it() {
        let mut nodes = Nodes::default();
        let all = [(18, (17, 100)), (19, (16, 20)), (20, (1, 30))];
        let shown = rows(&mut nodes, &all, 9);
        let dropped = |rows: &[NodeRow]| -> Vec<(String, String, u64)> {
            let row = |row: &NodeRow| (row.name.clone(), row.above.clone(), row.figures.dropped.packets);
            rows.iter().map(row).collect()
        };
        let named = |name: &str, above: &str, count| (name.to_owned(), above.to_owned(), count);
        let wanted = [
            named("line", "", 15),
            named("Site", "line", 12),
            named("AP", "Site", 10),
        ];
        assert_eq!(dropped(&shown), wanted);
        assert_eq!((shown[0].figures.backlog.bytes, shown[0].sent.bytes), (3, 700));
        assert_eq!(rows(&mut nodes, &all, 2).len(), 2);
        // The subscriber of the access point is connected to the line now, and counts on there.
        let moved = rows(&mut nodes, &[(18, (1, 200)), (19, (16, 20)), (20, (1, 30))], 9);
        let wanted = [
            named("line", "", 35),
            named("Site", "line", 12),
            named("AP", "Site", 10),
        ];
        assert_eq!(dropped(&moved), wanted);
    }

    proptest! {
        /// Whoever comes, goes, moves or counts anew: no sum falls.
        #[test]
        fn sums_never_fall(steps in prop::collection::vec(
            prop::collection::btree_map(
                18_u32..24,
                (prop::sample::select(vec![1_u32, 16, 17]), 0_u64..500),
                0..6,
            ),
            1..12,
        )) {
            let mut nodes = Nodes::default();
            let mut before: Vec<Figures> = vec![Figures::default(); 3];
            for step in steps {
                let step: Vec<_> = step.into_iter().collect();
                let now = rows(&mut nodes, &step, 9).into_iter();
                let now: Vec<Figures> = now.map(|row| row.figures).collect();
                for (now, before) in now.iter().zip(&before) {
                    prop_assert!(now.goes_on_from(before), "{now:?} {before:?}");
                }
                before = now;
            }
        }
    }
}
