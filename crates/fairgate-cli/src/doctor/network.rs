//! The network of a list of subscribers: which of its nodes are full, and why a subscriber is slow.

use std::collections::BTreeMap;

use fairgate_run_api::{
    Cause, DirectionStatus, FlowsStatus, Load, Network, NodeStatus, Status, SubscriberName, Why, trees,
};

use super::{Finding, Level, counted};

/// How many full nodes are named.
const NAMED: usize = 5;

/// Why a full node matters, and what to do.
const FULL_NODE: [&str; 2] = [
    "All subscribers below a full node share what it has, whatever their plans say.",
    "give the node more, or fewer subscribers; fairgate flows says who sends most",
];

/// A node of the network in a direction. Several workers have a part of each.
#[derive(Clone, Debug)]
struct NodeLoad {
    name: String,
    above: Option<u32>,
    limit_bps: Option<u64>,
    rate_bps: f64,
}

impl NodeLoad {
    fn load(&self) -> Load<'_> {
        Load {
            name: &self.name,
            rate_bps: self.rate_bps,
            limit_bps: self.limit_bps,
            delay_ms: None,
        }
    }
}

/// A direction of a run, read twice.
struct Meanwhile<'s> {
    before: &'s DirectionStatus,
    after: &'s DirectionStatus,
    seconds: f64,
}

impl<'s> Meanwhile<'s> {
    fn all(before: &'s Status, after: &'s Status) -> Vec<Meanwhile<'s>> {
        let seconds = (after.uptime_s - before.uptime_s).max(1e-3);
        let both = before.directions.iter().zip(&after.directions);
        both.map(|(before, after)| Meanwhile {
            before,
            after,
            seconds,
        })
        .collect()
    }

    fn rate_bps(&self, before: u64, after: u64) -> f64 {
        after.saturating_sub(before) as f64 * 8.0 / self.seconds
    }

    /// Returns the nodes by their classes.
    fn nodes(&self) -> BTreeMap<u32, NodeLoad> {
        let sent = |direction: &DirectionStatus| -> BTreeMap<u32, u64> {
            let mut sums = BTreeMap::new();
            for (_, tree) in trees(&direction.tree) {
                for state in &tree.class_states {
                    *sums.entry(state.class).or_default() += state.sent.bytes;
                }
            }
            sums
        };
        let [before, after] = [self.before, self.after].map(sent);
        let mut nodes = BTreeMap::new();
        for (path, tree) in trees(&self.after.tree) {
            for node in Network::of(&path, tree).nodes {
                let of_class = |sums: &BTreeMap<u32, u64>| sums.get(&node.state.class).copied().unwrap_or(0);
                nodes.entry(node.state.class).or_insert_with(|| NodeLoad {
                    name: node.name.to_owned(),
                    above: node.state.node,
                    limit_bps: node.state.limit_bps,
                    rate_bps: self.rate_bps(of_class(&before), of_class(&after)),
                });
            }
        }
        nodes
    }

    /// Returns the class of a subscriber at both readings, if packets have come to it.
    fn class(&self, id: &str) -> Option<[&'s NodeStatus; 2]> {
        let find = |direction: &'s DirectionStatus| {
            let is_its = |class: &&NodeStatus| class.subscriber.as_ref().is_some_and(|one| one.id == id);
            let classes = trees(&direction.tree)
                .into_iter()
                .flat_map(|(_, tree)| &tree.classes);
            classes.into_iter().find(is_its)
        };
        Some([find(self.before)?, find(self.after)?])
    }

    /// Says why this direction of a subscriber is slow.
    fn why(&self, id: &str, goes_down: bool, flows: &FlowsStatus) -> Why {
        let class = self.class(id);
        let own = class.map(|[before, after]| {
            let packets = after.dequeued.packets.saturating_sub(before.dequeued.packets);
            let waited = (after.sojourn_s - before.sojourn_s).max(0.0);
            Load {
                name: id,
                rate_bps: self.rate_bps(before.dequeued.bytes, after.dequeued.bytes),
                limit_bps: after.limit_bps,
                delay_ms: (packets > 0).then(|| waited * 1e3 / packets as f64),
            }
        });
        let nodes = self.nodes();
        let nearest = class.and_then(|[_, after]| nodes.get(&after.node?));
        let shared = std::iter::successors(nearest, |node| nodes.get(&node.above?));
        let is_its = |who: &Option<SubscriberName>| who.as_ref().is_some_and(|one| one.id == id);
        let of_class = flows
            .flows
            .iter()
            .filter(|flow| flow.from == self.after.from && is_its(&flow.subscriber));
        let of_class: Vec<_> = of_class.collect();
        // No path is longer than all nodes.
        let shared = shared.take(nodes.len()).map(NodeLoad::load);
        Why::find(goes_down, own, shared, &of_class)
    }
}

/// Finds nodes that are full. Nothing is said about a run without a network.
pub(crate) fn full_nodes(before: &Status, after: &Status) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut most = 0;
    for direction in Meanwhile::all(before, after) {
        let nodes = direction.nodes();
        most = most.max(nodes.len());
        let full: Vec<&NodeLoad> = nodes.values().filter(|node| node.load().is_full()).collect();
        if full.is_empty() {
            continue;
        }
        let mut names: Vec<String> = full
            .iter()
            .take(NAMED)
            .map(|node| format!("{}, {}", node.name, node.load().use_text()))
            .collect();
        if full.len() > NAMED {
            names.push(format!("and {} more", full.len() - NAMED));
        }
        let seen = format!(
            "{} of {} from {} full: {}",
            full.len(),
            counted(nodes.len() as u64, "node"),
            direction.after.from,
            names.join("; ")
        );
        found.push(
            Finding::new(Level::Warning, "nodes", &after.name, seen, FULL_NODE[0]).remedy(FULL_NODE[1]),
        );
    }
    if found.is_empty() && most > 0 {
        let seen = format!("none of {} is full", counted(most as u64, "node"));
        found.push(Finding::ok("nodes", &after.name, seen));
    }
    found
}

/// Says why a subscriber is slow, in both directions. `sides` are the directions down to it and up from it.
pub(crate) fn subscriber(
    id: &str,
    sides: [usize; 2],
    before: &Status,
    after: &Status,
    flows: &FlowsStatus,
) -> Vec<Finding> {
    let directions = Meanwhile::all(before, after);
    let of_side = |(index, check): (usize, &'static str)| {
        let why = directions.get(index)?.why(id, check == DOWNLOAD, flows);
        Some(finding(id, check, &why))
    };
    sides
        .into_iter()
        .zip([DOWNLOAD, "upload"])
        .filter_map(of_side)
        .collect()
}

const DOWNLOAD: &str = "download";

fn finding(id: &str, check: &'static str, why: &Why) -> Finding {
    let (level, matters, remedy) = match why.cause {
        Cause::Idle | Cause::Nothing => return Finding::ok(check, id, &*why.text),
        Cause::Plan => (
            Level::Note,
            "The run keeps it to its plan; its own flows share that fairly.",
            format!("fairgate subscribers set {id} down=RATE up=RATE  # or another plan"),
        ),
        Cause::Node => (Level::Warning, FULL_NODE[0], FULL_NODE[1].to_owned()),
        Cause::Bursts => (
            Level::Note,
            "Its packets come faster than its limit for a short time.",
            format!("fairgate doctor --subscriber {id} --for 30s  # longer than a burst"),
        ),
        Cause::Loss => (
            Level::Warning,
            "Its connections slow down at each loss, and this run can't prevent those.",
            "compare with other subscribers: those behind the same link have the same losses".to_owned(),
        ),
        Cause::Devices => (
            Level::Warning,
            "Its packets leave this run at once and wait behind it.",
            "let the subscriber look at its Wi-Fi and router".to_owned(),
        ),
        Cause::Servers => (
            Level::Note,
            "The path to its servers is long, or busy beyond this network.",
            "compare with other subscribers that use the same servers".to_owned(),
        ),
    };
    Finding::new(level, check, id, &*why.text, matters).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use fairgate_run_api::{ClassStatus, CountStatus};

    use super::super::run::tests::{flow, status};
    use super::*;

    const NO_BYTES: CountStatus = CountStatus { packets: 0, bytes: 0 };

    /// What a run has sent to subscriber 1001 and through the access point above it, megabits in each
    /// direction, after so many seconds. 1001 is in class 20 below the access point "AP" in class 17, which
    /// is below "Mast" in class 16.
    fn read(at: f64, own: f64, node: f64, held: f64) -> Status {
        let mut status = status(at, [own, 0.0], held);
        let bytes = |megabits: f64| (megabits * 125_000.0) as u64;
        for direction in &mut status.directions {
            let mut class = direction.tree.clone();
            class.class = Some(20);
            class.node = Some(17);
            class.limit_bps = Some(20_000_000);
            class.subscriber = Some(SubscriberName {
                id: "1001".to_owned(),
                ..SubscriberName::default()
            });
            direction.tree.classes = vec![class];
            let inner = |class, name: &str, above, limit_bps| ClassStatus {
                class,
                name: Some(name.to_owned()),
                node: above,
                limit_bps: Some(limit_bps),
                sent: CountStatus {
                    bytes: bytes(node),
                    ..NO_BYTES
                },
                overlimits: 0,
                variables: Default::default(),
                at_s: at,
            };
            direction.tree.class_states = vec![
                inner(16, "Mast", None, 100_000_000),
                inner(17, "AP", Some(16), 50_000_000),
            ];
        }
        status
    }

    /// Ten seconds in which a subscriber and its access point have such rates, Mbit/s.
    fn judged(own: f64, node: f64, held: f64, flows: &FlowsStatus) -> [Vec<Finding>; 2] {
        let (before, after) = (
            read(5.0, 100.0, 1000.0, held),
            read(15.0, 100.0 + 10.0 * own, 1000.0 + 10.0 * node, held),
        );
        [
            full_nodes(&before, &after),
            subscriber("1001", [0, 1], &before, &after, flows),
        ]
    }

    fn levels(findings: &[Finding]) -> Vec<(Level, &str)> {
        findings
            .iter()
            .map(|finding| (finding.level, finding.check))
            .collect()
    }

    #[test]
    fn a_full_node_is_named_with_its_figures() {
        let [nodes, of_subscriber] = judged(5.0, 49.0, 1.0, &FlowsStatus::default());
        assert_eq!(levels(&nodes), [(Level::Warning, "nodes"); 2]);
        assert_eq!(
            nodes[0].seen,
            "1 of 2 nodes from left full: AP, 49.0 Mbit/s of 50.0 Mbit/s"
        );
        assert_eq!(
            levels(&of_subscriber),
            [(Level::Warning, "download"), (Level::Ok, "upload")]
        );
        assert_eq!(
            of_subscriber[0].seen,
            "AP is full: 49.0 Mbit/s of 50.0 Mbit/s for all who share it. A packet waits 1.00 ms here."
        );
        // The nearest one is the cause, although that above it is full, too.
        let [nodes, of_subscriber] = judged(5.0, 99.0, 1.0, &FlowsStatus::default());
        assert!(nodes[0].seen.starts_with("2 of 2 nodes"), "{}", nodes[0].seen);
        assert!(of_subscriber[0].seen.starts_with("AP is full"));
        let [nodes, _] = judged(5.0, 40.0, 1.0, &FlowsStatus::default());
        assert_eq!(levels(&nodes), [(Level::Ok, "nodes")]);
        assert_eq!(nodes[0].seen, "none of 2 nodes is full");
        let none = status(1.0, [1.0, 1.0], 1.0);
        assert!(full_nodes(&none, &none).is_empty());
    }

    #[test]
    fn a_used_up_plan_and_far_devices_are_told_apart() {
        let far = || {
            let mut one = flow(250.0, 20.0);
            one.subscriber = Some(SubscriberName {
                id: "1001".to_owned(),
                ..SubscriberName::default()
            });
            FlowsStatus {
                flows: vec![one, flow(1.0, 1.0)],
                ..FlowsStatus::default()
            }
        };
        let [_, plan] = judged(19.5, 40.0, 30.0, &far());
        assert_eq!(levels(&plan), [(Level::Note, "download"), (Level::Ok, "upload")]);
        assert!(
            plan[0]
                .seen
                .starts_with("Its plan is used up: 19.5 Mbit/s of 20.0 Mbit/s.")
        );
        let [_, devices] = judged(5.0, 40.0, 1.0, &far());
        assert_eq!(devices[0].level, Level::Warning);
        assert!(
            devices[0].seen.contains("takes 250 ms (median of 1 flow)"),
            "{}",
            devices[0].seen
        );
        let [_, fine] = judged(5.0, 40.0, 1.0, &FlowsStatus::default());
        assert_eq!(levels(&fine), [(Level::Ok, "download"), (Level::Ok, "upload")]);
    }
}
