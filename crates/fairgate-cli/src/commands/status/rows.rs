//! The rows of a tree. Classes of a list of subscribers are called by their names, and each is below the node
//! of the network that it is connected to.

use std::collections::BTreeMap;
use std::time::SystemTime;

use fairgate_run_api::{ClassStatus, Network, NodeStatus, ValueStatus, brief};

use super::{NAME, delay, megabits, millis};
use crate::log::until;
use crate::output::{self, Table};

const HEAD: [&str; 12] = [
    "DISCIPLINE",
    "SENT",
    "BYTES",
    "MBIT/S",
    "DELAY",
    "DROPPED",
    "MARKED",
    "BACKLOG",
    "BYTES",
    "OVERLIMITS",
    "DROPPED FOR",
    "STATE OF THE CLASS",
];

/// Where the columns of a list of subscribers are: after the rate.
const LIMIT: usize = 4;

/// Returns the table of a tree. Rates and delays are since `before`.
pub(super) fn table(tree: &NodeStatus, before: Option<&NodeStatus>, seconds: f64) -> String {
    let mut head = HEAD.to_vec();
    let has_limits = fairgate_run_api::trees(tree)
        .iter()
        .any(|(_, tree)| tree.classes.iter().any(|class| class.limit_bps.is_some()));
    if has_limits {
        head.splice(LIMIT..LIMIT, ["LIMIT", "USED"]);
    }
    let mut rows = Rows {
        table: output::table(head),
        seconds,
        has_limits,
    };
    rows.add(tree, before, None, 0);
    output::table_text(&rows.table)
}

struct Rows {
    table: Table,
    seconds: f64,
    has_limits: bool,
}

/// A class: what the discipline above keeps for it, and the discipline in it. It has one of both at least.
#[derive(Clone, Copy, Default)]
struct Class<'s> {
    state: Option<&'s ClassStatus>,
    node: Option<&'s NodeStatus>,
}

impl Rows {
    fn add(
        &mut self,
        node: &NodeStatus,
        before: Option<&NodeStatus>,
        state: Option<&ClassStatus>,
        depth: usize,
    ) {
        // A class that was replaced, or that was assigned to another host, starts again at 0.
        let before = before.filter(|before| {
            before.discipline == node.discipline
                && before.host == node.host
                && before.dequeued.packets <= node.dequeued.packets
        });
        let drops = node.drops.iter();
        let drops: Vec<String> = drops.map(|(reason, count)| format!("{reason} {count}")).collect();
        let sent = before.map_or(0, |before| before.dequeued.bytes);
        let mut row = vec![
            format!(
                "{:indent$}{}{}",
                "",
                called(node),
                node.discipline,
                indent = 2 * depth
            ),
            node.dequeued.packets.to_string(),
            node.dequeued.bytes.to_string(),
            megabits(node.dequeued.bytes, sent, self.seconds),
            delay(node, before),
            node.dropped.packets.to_string(),
            node.marked.to_string(),
            node.backlog.packets.to_string(),
            node.backlog.bytes.to_string(),
            node.overlimits.to_string(),
            drops.join(", "),
            state.map_or_else(String::new, state_text),
        ];
        self.add_limit(&mut row, node.limit_bps, node.dequeued.bytes - sent);
        self.table.add_row(row);
        Below::of(node, before).add(self, None, depth + 1);
    }

    /// Adds what a class may send, and how much of it it did since `before`.
    fn add_limit(&self, row: &mut Vec<String>, limit_bps: Option<u64>, bytes: u64) {
        if !self.has_limits {
            return;
        }
        let limit = limit_bps.filter(|limit| *limit > 0).map(|limit| limit as f64);
        let used = |limit: f64| 8e2 * bytes as f64 / self.seconds.max(1e-9) / limit;
        let texts = [
            limit.map_or_else(String::new, |limit| format!("{:.1}", limit / 1e6)),
            limit.map_or_else(String::new, |limit| format!("{:.0} %", used(limit))),
        ];
        row.splice(LIMIT..LIMIT, texts);
    }
}

/// The classes of a discipline, by the node that they are below.
struct Below<'s> {
    network: Network<'s>,
    sums: Vec<Sum>,
    classes: BTreeMap<u32, Class<'s>>,
    before: BTreeMap<u32, Class<'s>>,
    /// The index of the node above, and the class.
    below: BTreeMap<Option<usize>, Vec<u32>>,
}

/// What is below a node.
#[derive(Clone, Default)]
struct Sum {
    dropped: u64,
    marked: u64,
    packets: u64,
    bytes: u64,
    /// What has left the classes, and the sum of its delays, since the status before.
    left: u64,
    delayed_s: f64,
}

impl Sum {
    fn add(&mut self, class: &NodeStatus, before: Option<&NodeStatus>) {
        self.dropped += class.dropped.packets;
        self.marked += class.marked;
        self.packets += class.backlog.packets;
        self.bytes += class.backlog.bytes;
        let before = before.filter(|before| before.dequeued.packets <= class.dequeued.packets);
        self.left += class.dequeued.packets - before.map_or(0, |before| before.dequeued.packets);
        self.delayed_s += class.sojourn_s - before.map_or(0.0, |before| before.sojourn_s);
    }
}

impl<'s> Below<'s> {
    fn of(node: &'s NodeStatus, before: Option<&'s NodeStatus>) -> Below<'s> {
        let before = before.map(classes).unwrap_or_default();
        let classes = classes(node);
        let network = Network::of("", node);
        let mut sums = vec![Sum::default(); network.nodes.len()];
        for class in &node.classes {
            let known = class.class.and_then(|number| before.get(&number)?.node);
            for index in network.holding(class.node) {
                sums[index].add(class, known);
            }
        }
        let mut below: BTreeMap<Option<usize>, Vec<u32>> = BTreeMap::new();
        for (number, class) in &classes {
            let of_discipline = class.node.and_then(|node| node.node);
            let above = of_discipline.or_else(|| class.state.and_then(|state| state.node));
            below.entry(network.find(above)).or_default().push(*number);
        }
        Below {
            network,
            sums,
            classes,
            before,
            below,
        }
    }

    /// Adds the rows of the classes right below a node, each with what is below it.
    fn add(&self, rows: &mut Rows, above: Option<usize>, depth: usize) {
        for number in self.below.get(&above).into_iter().flatten() {
            let class = self.classes[number];
            let before = self.before.get(number).copied().unwrap_or_default();
            if let Some(node) = class.node {
                rows.add(node, before.node, class.state, depth);
            } else if let Some(state) = class.state {
                let index = self.network.find(Some(*number));
                self.add_inner(rows, state, before.state, index, depth);
                if index.is_some() && index != above {
                    self.add(rows, index, depth + 1);
                }
            }
        }
    }

    /// Adds the row of a class that has classes below it and no discipline. What a node of a network has not
    /// counted itself is the sum of what is below it.
    fn add_inner(
        &self,
        rows: &mut Rows,
        class: &ClassStatus,
        before: Option<&ClassStatus>,
        index: Option<usize>,
        depth: usize,
    ) {
        let mut row = vec![String::new(); HEAD.len()];
        let name = match &class.name {
            Some(name) => brief(name, NAME),
            None => format!("{}: classes", class.class),
        };
        row[0] = format!("{:indent$}{name}", "", indent = 2 * depth);
        row[1] = class.sent.packets.to_string();
        row[2] = class.sent.bytes.to_string();
        row[9] = class.overlimits.to_string();
        row[11] = state_text(class);
        let sent = before.map_or(0, |before| before.sent.bytes.min(class.sent.bytes));
        if let Some(sum) = index.map(|index| &self.sums[index]) {
            row[3] = megabits(class.sent.bytes, sent, rows.seconds);
            row[4] = match sum.left {
                0 => "-".to_owned(),
                left => millis(sum.delayed_s.max(0.0) * 1e6 / left as f64),
            };
            row[5] = sum.dropped.to_string();
            row[6] = sum.marked.to_string();
            row[7] = sum.packets.to_string();
            row[8] = sum.bytes.to_string();
        }
        rows.add_limit(&mut row, class.limit_bps, class.sent.bytes - sent);
        rows.table.add_row(row);
    }
}

/// Returns the classes of a discipline by their numbers.
fn classes(node: &NodeStatus) -> BTreeMap<u32, Class<'_>> {
    let mut classes: BTreeMap<u32, Class<'_>> = BTreeMap::new();
    for below in &node.classes {
        classes.entry(below.class.unwrap_or_default()).or_default().node = Some(below);
    }
    for state in &node.class_states {
        classes.entry(state.class).or_default().state = Some(state);
    }
    classes
}

/// Returns what the class of a discipline is called: by a list of subscribers, or by its number.
fn called(node: &NodeStatus) -> String {
    let name = match (&node.subscriber, &node.name, node.class) {
        (Some(subscriber), ..) => match subscriber.limited_until_s {
            Some(until_s) => {
                let until = until(until_s, SystemTime::now());
                format!("{} limited until {until}", subscriber.brief(NAME))
            }
            None => subscriber.brief(NAME),
        },
        (None, Some(name), _) => brief(name, NAME),
        (None, None, class) => {
            let host = node.host.as_ref().map(|host| format!("{host} "));
            return class.map_or_else(String::new, |class| {
                format!("{class}: {}", host.unwrap_or_default())
            });
        }
    };
    format!("{name} / ")
}

/// Returns state variables under their names.
fn state_text(class: &ClassStatus) -> String {
    let variable = |(name, value): (&String, &ValueStatus)| match value {
        ValueStatus::Integer(value) => format!("{name} {value}"),
        ValueStatus::Nanos(nanos) => format!("{name} {}", millis(*nanos as f64 / 1e3)),
        ValueStatus::Flag(true) => name.clone(),
        ValueStatus::Flag(false) => format!("not {name}"),
        ValueStatus::Unset => format!("{name} -"),
    };
    let variables: Vec<String> = class.variables.iter().map(variable).collect();
    variables.join(", ")
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::{CountStatus, SubscriberName};

    use super::*;
    use crate::top::testing::status;

    fn count(packets: u64) -> CountStatus {
        CountStatus {
            packets,
            bytes: 1000 * packets,
        }
    }

    /// A line (1) with a site (16) with an access point (17), each with a subscriber; unknown addresses (2).
    fn tree() -> NodeStatus {
        let mut root = status("htb");
        let class = |number: u32, name: &str, node: u32, is_subscriber: bool| {
            let mut class = status("fq_codel");
            class.class = Some(number);
            class.name = Some(name.to_owned());
            class.node = Some(node);
            class.limit_bps = Some(8_000_000);
            class.subscriber = is_subscriber.then(|| SubscriberName {
                id: format!("id-{number}"),
                name: Some(name.to_owned()),
                plan: None,
                limited_until_s: None,
            });
            class.dequeued = count(500);
            class.dropped.packets = 3;
            class
        };
        root.classes = vec![
            class(2, "unknown addresses", 1, false),
            class(18, "Anna", 16, true),
            class(19, "Ben", 17, true),
        ];
        let node = |class: u32, name: &str, node: Option<u32>| ClassStatus {
            class,
            name: Some(name.to_owned()),
            node,
            limit_bps: Some(10_000_000),
            sent: count(1000),
            overlimits: 0,
            variables: BTreeMap::new(),
            at_s: 0.0,
        };
        root.class_states = vec![
            node(1, "line", None),
            node(16, "Site", Some(1)),
            node(17, "AP", Some(16)),
        ];
        root
    }

    #[test]
    fn a_network_is_a_tree_of_names() {
        let text = table(&tree(), None, 1.0);
        let rows: Vec<Vec<String>> = text.lines().skip(1).map(cells_of).collect();
        let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            names,
            [
                "htb",
                "line",
                "unknown addresses / fq_codel",
                "Site",
                "AP",
                "id-19 Ben / fq_codel",
                "id-18 Anna / fq_codel"
            ],
            "{text}"
        );
        // 8 Mbit in a second, of 10 Mbit/s; two subscribers with three drops each.
        let has = |row: usize, cell: &str| rows[row].iter().any(|other| other == cell);
        assert!(has(3, "80 %") && has(3, "6"), "{text}");
        assert!(has(5, "50 %"), "{text}");
        let indent = |line: &str| line.len() - line.trim_start().len();
        let indents: Vec<usize> = text.lines().skip(1).map(indent).collect();
        assert_eq!(indents, [0, 2, 4, 4, 6, 8, 6], "{text}");
        // Half of it was there before.
        let mut before = tree();
        for state in &mut before.class_states {
            state.sent = count(500);
        }
        let text = table(&tree(), Some(&before), 1.0);
        assert!(text.lines().nth(4).unwrap().contains("40 %"), "{text}");
    }

    /// The cells of a line, between two spaces or more.
    fn cells_of(line: &str) -> Vec<String> {
        let cells = line.split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    }

    /// Without a list classes have their numbers, and there are no columns of limits.
    #[test]
    fn other_classes_have_numbers() {
        let mut root = tree();
        for class in &mut root.classes {
            (class.name, class.node, class.limit_bps, class.subscriber) = (None, None, None, None);
        }
        for state in &mut root.class_states {
            (state.name, state.node, state.limit_bps) = (None, None, None);
        }
        let text = table(&root, None, 1.0);
        assert!(
            text.contains("16: classes") && text.contains("18: fq_codel"),
            "{text}"
        );
        assert!(!text.contains("USED"), "{text}");
    }
}
