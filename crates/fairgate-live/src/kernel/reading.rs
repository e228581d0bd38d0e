//! What was read of a qdisc, as the status of a run has it.

use fairgate::{Count, NodeNumber, Statistics, Time, Variable};
use fairgate_kernel::client::Contents;
use fairgate_kernel::{ClassRecord, NodeRecord, Record, middle};
use hdrhistogram::Histogram;

use crate::direction::{Counters, no_sojourns};
use crate::status::{ClassReadingOf, DirectionReading, NodeReading, Rates, TreeReading, Variables};

/// Returns the reading of a direction. `contents` is missing if it has no tree: its packets pass uncounted.
pub(super) fn direction(ends: [&str; 2], now: Time, contents: Option<Contents>) -> DirectionReading {
    let contents = contents.unwrap_or_default();
    let refused = contents.counters.refused.packets;
    let mut sojourn = no_sojourns();
    for record in &contents.records {
        if let Record::Sojourn { bucket, packets } = *record {
            sojourn.saturating_record_n(middle(bucket.into()), packets);
        }
    }
    let tree = tree(now, contents);
    DirectionReading {
        from: ends[0].to_owned(),
        to: ends[1].to_owned(),
        counters: Counters {
            sent: sent(&tree.nodes[0], &sojourn),
            no_frame: refused,
            ..Counters::default()
        },
        rate_bps: 0.0,
        in_line: 0,
        missed: 0,
        sojourn,
        tree,
        rates: Rates::default(),
    }
}

/// Returns the disciplines and classes of a direction.
pub(super) fn tree(now: Time, contents: Contents) -> TreeReading {
    let mut nodes: Vec<NodeReading> = Vec::new();
    for record in contents.records {
        match record {
            Record::Node(node) => nodes.push(node_reading(*node)),
            Record::Class(class) => {
                if let Some(node) = nodes.last_mut() {
                    node.class_states.push(class_reading(class));
                }
            }
            Record::Sojourn { .. } => {}
        }
    }
    if nodes.is_empty() {
        nodes.push(plain_fifo(now, &contents.counters));
    }
    TreeReading::of_nodes(nodes)
}

/// Returns what has left the tree. The kernel reads the root and the sojourn times at the same moment.
fn sent(root: &NodeReading, sojourn: &Histogram<u64>) -> Count {
    Count {
        packets: sojourn.len(),
        bytes: root.statistics.dequeued.bytes,
    }
}

/// What there is without a tree: none was asked for, or it has panicked.
fn plain_fifo(now: Time, counters: &fairgate_kernel::client::Counters) -> NodeReading {
    let mut variables = Variables::new();
    if counters.has_panicked {
        variables.push(("panicked".into(), Variable::Flag(true)));
        variables.push(("passed".into(), Variable::Integer(counters.passed as i64)));
    }
    NodeReading {
        worker: 0,
        depth: 0,
        name: "fifo".into(),
        class: None,
        host: None,
        at: now,
        number: NodeNumber::NONE,
        statistics: Statistics::clone(&counters.statistics),
        variables,
        class_states: Vec::new(),
    }
}

fn node_reading(node: NodeRecord) -> NodeReading {
    NodeReading {
        worker: 0,
        depth: node.depth.into(),
        name: node.name.into(),
        class: node.class,
        host: node.host,
        at: Time::from_nanos(node.at),
        number: NodeNumber::NONE,
        statistics: node.statistics,
        variables: variables(node.variables),
        class_states: Vec::new(),
    }
}

fn class_reading(class: ClassRecord) -> ClassReadingOf {
    ClassReadingOf {
        minor: class.minor,
        at: Time::from_nanos(class.at),
        sent: class.sent,
        overlimits: class.overlimits,
        variables: variables(class.variables),
    }
}

fn variables(read: Vec<(String, Variable)>) -> Variables {
    read.into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use fairgate::{Packet, Time};
    use fairgate_config::Spec;
    use fairgate_kernel::convert::tree_of;
    use fairgate_kernel::{Arriving, Plan, Prepared, Queue, Reading, records};

    use super::*;
    use crate::status::tree_status;

    const TREE: &str =
        "htb default=20 { 1 rate=20mbit { 10 rate=5mbit ceil=20mbit / fq_codel; 20 rate=15mbit / fifo } }";

    fn queue() -> Queue {
        let spec = Spec::inline(TREE).unwrap();
        let plan = Plan {
            slots: 64,
            cuts: true,
            tree: tree_of(&spec).unwrap(),
        };
        Queue::new(&mut Prepared::new(plan, 1).unwrap(), [1, 2])
    }

    fn read(queue: &Queue) -> Contents {
        let mut reading = Reading::new(queue);
        let mut contents = Contents::default();
        loop {
            let part = reading.part(queue, Time::ZERO);
            if part.is_empty() {
                return contents;
            }
            contents.records.extend(records(part).unwrap());
        }
    }

    /// The kernel's code, on this machine: the status is that of the tree itself.
    #[test]
    fn the_status_is_that_of_the_tree() {
        let mut queue = queue();
        for number in 0..40_u64 {
            let arriving = Arriving {
                head: &[],
                ethertype: 0,
                outer_ethertype: 0,
                vlan: 0,
                priority: 0,
                packet: Packet {
                    cookie: number,
                    ..Packet::of_length(1000)
                },
            };
            assert!(queue.enqueue(&arriving, Time::ZERO));
        }
        let mut left = 0;
        while queue.dequeue(Time::from_millis(5)).packet().is_some() {
            left += 1;
        }
        assert!(left > 0);
        let reading = direction(["wan", "host"], Time::ZERO, Some(read(&queue)));
        assert_eq!(reading.counters.sent, queue.statistics().dequeued);
        assert_eq!(reading.sojourn.len(), left);
        assert!(reading.sojourn.max().abs_diff(5_000_000) < 100_000);
        let status = tree_status(reading.tree, Time::ZERO);
        let found: Vec<_> = status
            .classes
            .iter()
            .map(|class| (class.class, &*class.discipline))
            .collect();
        assert_eq!(found, [(Some(10), "fq_codel"), (Some(20), "fifo")]);
        assert_eq!(status.in_class(20).unwrap().dequeued.packets, left);
        let states: Vec<u32> = status.class_states.iter().map(|class| class.class).collect();
        assert_eq!(states, [1, 10, 20]);
    }

    #[test]
    fn without_a_tree_there_is_a_fifo() {
        let mut contents = Contents::default();
        contents.counters.has_panicked = true;
        contents.counters.passed = 7;
        for (contents, variables) in [(None, 0), (Some(contents), 2)] {
            let reading = direction(["wan", "host"], Time::ZERO, contents);
            let status = tree_status(reading.tree, Time::ZERO);
            assert_eq!((&*status.discipline, status.variables.len()), ("fifo", variables));
        }
    }
}
