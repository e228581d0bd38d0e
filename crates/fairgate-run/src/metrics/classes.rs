//! Which classes have series of their own. A tree can have tens of thousands of classes, and classes come and
//! go, but Prometheus keeps every series that it has ever seen.
//!
//! The first [`MOST_CLASSES`] classes of a direction that packets come to have series of their own, as long
//! as they exist. The others are summed up, at each depth, in the class `other`. Such a sum must never fall
//! when one of its classes is removed or begins to count anew, because Prometheus would take that for a
//! restart. So the last figures of each of these classes are kept, and what it had counted stays in the sum.

use std::collections::{BTreeMap, HashMap, HashSet};

use fairgate_run_api::{CountStatus, NodeStatus, Status};

use super::names::{Names, Node, nodes};

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
    /// The last figures of each class without a series.
    others: HashMap<String, Other>,
    /// What classes without a series had counted when they were removed or began anew, by depth.
    gone: BTreeMap<usize, Figures>,
}

#[derive(Debug)]
struct Other {
    depth: usize,
    figures: Figures,
}

/// The series of the classes, and how many classes there are.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
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
    pub(super) figures: Figures,
}

/// What a class has counted, and what waits in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) sent: Sum,
    pub(super) dropped: Sum,
    pub(super) drops: BTreeMap<String, u64>,
    pub(super) marked: u64,
    pub(super) overlimits: u64,
    pub(super) delay_s: f64,
    pub(super) backlog: Sum,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl From<CountStatus> for Sum {
    fn from(count: CountStatus) -> Sum {
        Sum {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }

    fn is_at_least(self, before: Sum) -> bool {
        self.packets >= before.packets && self.bytes >= before.bytes
    }
}

impl Figures {
    fn of(node: &NodeStatus) -> Figures {
        Figures {
            sent: node.dequeued.into(),
            dropped: node.dropped.into(),
            drops: node.drops.clone(),
            marked: node.marked,
            overlimits: node.overlimits,
            delay_s: node.sojourn_s,
            backlog: node.backlog.into(),
        }
    }

    fn add(&mut self, other: &Figures) {
        self.sent.add(other.sent);
        self.dropped.add(other.dropped);
        for (reason, packets) in &other.drops {
            *self.drops.entry(reason.clone()).or_default() += packets;
        }
        self.marked += other.marked;
        self.overlimits += other.overlimits;
        self.delay_s += other.delay_s;
        self.backlog.add(other.backlog);
    }

    /// Returns whether these counters go on from `before`. If the class was replaced, or if another host has
    /// it now, they began at 0.
    fn goes_on_from(&self, before: &Figures) -> bool {
        self.sent.is_at_least(before.sent)
            && self.dropped.is_at_least(before.dropped)
            && self.marked >= before.marked
            && self.overlimits >= before.overlimits
            && self.delay_s >= before.delay_s
            && before
                .drops
                .iter()
                .all(|(reason, packets)| self.drops.get(reason).is_some_and(|now| now >= packets))
    }

    /// Forgets what waits: it waits there no more.
    fn without_backlog(mut self) -> Figures {
        self.backlog = Sum::default();
        self
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
            let names = self.directions.entry(direction.from.clone()).or_default();
            let nodes = nodes(&direction.tree);
            names.forget_removed(&nodes);
            let counts = names.add(nodes, &direction.from, self.most, &mut rows.rows);
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
        let gone = self.others.extract_if(|path, _| !present.contains(path.as_str()));
        for (_, other) in gone {
            let kept = self.gone.entry(other.depth).or_default();
            kept.add(&other.figures.without_backlog());
        }
    }

    /// Adds the series of these disciplines. Returns how many classes have some, and how many have none.
    fn add(&mut self, nodes: Vec<Node<'_>>, from: &str, most: usize, rows: &mut Vec<Row>) -> (u64, u64) {
        for Node { path, depth, status } in nodes {
            let figures = Figures::of(status);
            let is_summed = self.others.contains_key(&path);
            if depth > 0 && (is_summed || !self.named.give(&path, most)) {
                self.add_other(path, depth, figures);
                continue;
            }
            rows.push(Row {
                from: from.to_owned(),
                class: if depth == 0 { ROOT.to_owned() } else { path },
                depth: depth.to_string(),
                discipline: status.discipline.clone(),
                figures,
            });
        }
        let mut sums = self.gone.clone();
        for other in self.others.values() {
            sums.entry(other.depth).or_default().add(&other.figures);
        }
        rows.extend(sums.into_iter().map(|(depth, figures)| Row {
            from: from.to_owned(),
            class: OTHER.to_owned(),
            depth: depth.to_string(),
            discipline: String::new(),
            figures,
        }));
        (self.named.len() as u64, self.others.len() as u64)
    }

    fn add_other(&mut self, path: String, depth: usize, figures: Figures) {
        let before = self.others.remove(&path);
        if let Some(before) = before.filter(|before| !figures.goes_on_from(&before.figures)) {
            let kept = self.gone.entry(depth).or_default();
            kept.add(&before.figures.without_backlog());
        }
        self.others.insert(path, Other { depth, figures });
    }
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::DirectionStatus;
    use fairgate_run_api::{Detail, Question, ask};
    use proptest::prelude::*;

    use super::*;
    use crate::rehearsal::Rehearsal;

    /// A status with these classes below the root: their numbers and packets sent.
    fn status(classes: &[(u16, u64)]) -> Status {
        let rehearsal = Rehearsal::new("fifo").unwrap();
        let detail = Detail::Used;
        let mut status: Status = ask(&rehearsal, "", Question::Status { detail }).unwrap();
        for direction in &mut status.directions {
            set(direction, classes);
        }
        status
    }

    fn set(direction: &mut DirectionStatus, classes: &[(u16, u64)]) {
        let class = |&(number, packets): &(u16, u64)| {
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
            steps in prop::collection::vec(prop::collection::btree_map(1_u16..9, 0_u64..50, 0..8), 1..20)
        ) {
            let mut classes = Classes::with(3);
            let mut before = Figures::default();
            for step in steps {
                let step: Vec<(u16, u64)> = step.into_iter().collect();
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
