//! Which classes have series of their own. A tree can have tens of thousands of classes, and classes come and
//! go, but Prometheus keeps every series that it has ever seen.
//!
//! The first [`MOST_CLASSES`] classes of a direction that packets come to have series of their own, as long
//! as they exist. The others are summed up, at each depth, in the class `other`. Such a sum must never fall
//! when one of its classes is removed or begins to count anew, because Prometheus would take that for a
//! restart ([`Summed`]). Nodes of a network are series of another kind: [`Nodes`].

use std::collections::{BTreeMap, HashMap, HashSet};

use fairgate_run_api::{DirectionStatus, NodeStatus, Status, trees};

use super::figures::{Figures, Summed};
use super::names::{Names, Node, nodes};
use super::network::{NodeRow, Nodes};

/// How many classes of a direction have series of their own.
pub const MOST_CLASSES: usize = 1_000;

/// The label `class` of the root, and of what is summed up.
const ROOT: &str = "root";
const OTHER: &str = "other";

/// The classes of a run that have series of their own.
#[derive(Debug)]
pub(crate) struct Classes {
    most: usize,
    /// By the interface that the direction receives from.
    directions: HashMap<String, Direction>,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes::with(MOST_CLASSES)
    }
}

#[derive(Debug, Default)]
struct Direction {
    named: Names,
    /// The classes without a series, by depth.
    others: BTreeMap<usize, Summed>,
    nodes: Nodes,
}

/// The series of the classes, and how many classes there are.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    pub(super) nodes: Vec<NodeRow>,
    /// The directions, with the number of their classes that have series and that have none.
    pub(super) counts: Vec<(String, u64, u64)>,
    pub(super) most: u64,
}

/// A series of a class.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) from: String,
    pub(super) class: String,
    pub(super) depth: String,
    pub(super) discipline: String,
    pub(super) listed: Listed,
    pub(super) figures: Figures,
}

/// What a list of subscribers says about the class of a series.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The identifier of the subscriber, what people call the class, its plan, and the name of its node.
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) limit_bps: Option<u64>,
}

impl Listed {
    fn of(status: &NodeStatus, node: Option<&str>) -> Listed {
        let subscriber = status.subscriber.as_ref();
        let labels = [
            ("id", subscriber.map(|one| one.id.as_str())),
            ("name", status.name.as_deref()),
            ("plan", subscriber.and_then(|one| one.plan.as_deref())),
            ("node", node),
        ];
        let labels = labels.into_iter();
        Listed {
            labels: labels
                .filter_map(|(label, value)| Some((label, value?.to_owned())))
                .collect(),
            limit_bps: status.limit_bps,
        }
    }
}

impl Classes {
    /// Returns names for this many classes of each direction.
    fn with(most: usize) -> Classes {
        Classes {
            most,
            directions: HashMap::new(),
        }
    }

    /// Returns the series of a status.
    pub(super) fn rows(&mut self, status: &Status) -> Rows {
        let mut rows = Rows {
            most: self.most as u64,
            ..Rows::default()
        };
        for direction in &status.directions {
            let known = self.directions.entry(direction.from.clone()).or_default();
            let nodes = nodes(&direction.tree);
            known.forget_removed(&nodes);
            known
                .nodes
                .take(&direction.tree, &direction.from, self.most, &mut rows.nodes);
            let counts = known.add(nodes, direction, self.most, &mut rows.rows);
            rows.counts.push((direction.from.clone(), counts.0, counts.1));
        }
        rows
    }
}

impl Direction {
    /// Frees the names of classes that are gone. What the others had counted stays in their sum.
    fn forget_removed(&mut self, nodes: &[Node<'_>]) {
        let present: HashSet<&str> = nodes.iter().map(|node| node.path.as_str()).collect();
        self.named.forget_removed(&present);
        for others in self.others.values_mut() {
            others.keep(|path| present.contains(path));
        }
    }

    /// Adds the series of these disciplines. Returns how many classes have some, and how many have none.
    fn add(
        &mut self,
        nodes: Vec<Node<'_>>,
        direction: &DirectionStatus,
        most: usize,
        rows: &mut Vec<Row>,
    ) -> (u64, u64) {
        let from = &direction.from;
        let names = node_names(direction);
        for Node { path, depth, status } in nodes {
            let figures = Figures::of(status);
            let is_summed = self.others.get(&depth).is_some_and(|others| others.has(&path));
            if depth > 0 && (is_summed || !self.named.give(&path, most)) {
                self.others.entry(depth).or_default().take(&path, figures);
                continue;
            }
            let node = status.node.and_then(|class| names.get(&class).copied());
            rows.push(Row {
                from: from.clone(),
                class: if depth == 0 { ROOT.to_owned() } else { path },
                depth: depth.to_string(),
                discipline: status.discipline.clone(),
                listed: Listed::of(status, node),
                figures,
            });
        }
        rows.extend(self.others.iter().map(|(depth, others)| Row {
            from: from.clone(),
            class: OTHER.to_owned(),
            depth: depth.to_string(),
            discipline: String::new(),
            listed: Listed::default(),
            figures: others.total(),
        }));
        let summed: usize = self.others.values().map(Summed::len).sum();
        (self.named.len() as u64, summed as u64)
    }
}

/// Returns the names of the nodes of a network, by their classes. With several workers, each has the line.
fn node_names(direction: &DirectionStatus) -> HashMap<u32, &str> {
    let trees = trees(&direction.tree).into_iter();
    let states = trees.flat_map(|(_, tree)| &tree.class_states);
    states
        .filter_map(|state| Some((state.class, state.name.as_deref()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::{CountStatus, Detail, Question, ask};
    use proptest::prelude::*;

    use super::*;
    use crate::rehearsal::Rehearsal;

    /// A status with these classes below the root: their numbers and packets sent.
    fn status(classes: &[(u32, u64)]) -> Status {
        let rehearsal = Rehearsal::new("fifo").unwrap();
        let detail = Detail::Used;
        let mut status: Status = ask(&rehearsal, "", Question::Status { detail }).unwrap();
        for direction in &mut status.directions {
            set(direction, classes);
        }
        status
    }

    fn set(direction: &mut DirectionStatus, classes: &[(u32, u64)]) {
        let class = |&(number, packets): &(u32, u64)| {
            let mut class = direction.tree.clone();
            class.class = Some(number);
            class.dequeued = CountStatus {
                packets,
                bytes: 100 * packets,
            };
            class.drops.insert("aqm".to_owned(), packets / 2);
            class.dropped.packets = packets / 2;
            class.backlog.packets = 1;
            class
        };
        direction.tree.classes = classes.iter().map(class).collect();
    }

    fn row<'r>(rows: &'r Rows, class: &str) -> Option<&'r Figures> {
        let mut rows = rows.rows.iter();
        rows.find(|row| row.from == "left" && row.class == class)
            .map(|row| &row.figures)
    }

    #[test]
    fn names_are_kept_and_the_rest_is_summed_up() {
        let mut classes = Classes::with(2);
        let rows = classes.rows(&status(&[(1, 10), (2, 20), (3, 30), (4, 40)]));
        assert_eq!(row(&rows, "1").unwrap().sent.packets, 10);
        assert_eq!(row(&rows, "2").unwrap().sent.packets, 20);
        let other = row(&rows, "other").unwrap();
        assert_eq!(
            (other.sent.packets, other.sent.bytes, other.drops["aqm"]),
            (70, 7000, 35)
        );
        assert_eq!(other.backlog.packets, 2);
        assert!(row(&rows, "3").is_none() && row(&rows, "root").is_some());
        assert_eq!(rows.counts[0], ("left".to_owned(), 2, 2));

        // Class 1 is removed. A class that was summed up stays so, and a new one gets the name.
        let rows = classes.rows(&status(&[(2, 21), (3, 31), (4, 40), (5, 5)]));
        assert!(row(&rows, "1").is_none());
        assert_eq!(row(&rows, "5").unwrap().sent.packets, 5);
        assert_eq!(row(&rows, "other").unwrap().sent.packets, 71);

        // What class 3 had sent stays in the sum. Class 4 has begun anew.
        let rows = classes.rows(&status(&[(2, 21), (4, 1), (5, 5)]));
        let other = row(&rows, "other").unwrap();
        assert_eq!((other.sent.packets, other.backlog.packets), (31 + 40 + 1, 1));
        assert_eq!(rows.counts[0], ("left".to_owned(), 2, 1));
    }

    proptest! {
        /// Whatever comes and goes: no sum falls, there are never more names than allowed, and nothing is
        /// lost.
        #[test]
        fn sums_never_fall(
            steps in prop::collection::vec(prop::collection::btree_map(1_u32..9, 0_u64..50, 0..8), 1..20)
        ) {
            let mut classes = Classes::with(3);
            let mut before = Figures::default();
            for step in steps {
                let step: Vec<(u32, u64)> = step.into_iter().collect();
                let rows = classes.rows(&status(&step));
                let of_left = rows.rows.iter().filter(|row| row.from == "left");
                let named = of_left.filter(|row| row.class != ROOT && row.class != OTHER);
                let named: Vec<&Row> = named.collect();
                prop_assert!(named.len() <= 3);
                let other = row(&rows, "other").cloned().unwrap_or_default();
                prop_assert!(other.goes_on_from(&before), "{other:?} {before:?}");
                let waiting: u64 = named.iter().map(|row| row.figures.backlog.packets).sum();
                prop_assert_eq!(waiting + other.backlog.packets, step.len() as u64);
                let sent: u64 = named.iter().map(|row| row.figures.sent.packets).sum();
                let all: u64 = step.iter().map(|(_, packets)| packets).sum();
                prop_assert!(sent + other.sent.packets >= all);
                before = other;
            }
        }
    }
}
