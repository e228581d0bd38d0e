//! What is read of several workers, as one run.
//!
//! The counters of the directions add up. The trees of the workers become the classes of one node, numbered
//! from 1, whose statistics are the sum of theirs.

use std::iter;

use fairgate::{NodeNumber, Statistics, Variable};
use fairgate_run_api::{ProcessorStatus, SHARDED};

use super::reading::{DirectionReading, NodeReading, Sent, TreeReading};

/// What is read of a worker.
#[derive(Clone)]
pub(crate) struct WorkerReading {
    /// Its number.
    pub(crate) worker: usize,
    pub(crate) processor: ProcessorStatus,
    pub(crate) directions: [DirectionReading; 2],
    /// What it had sent of its logs before this reading.
    pub(crate) sent: Sent,
}

/// What all workers of a run did.
pub(crate) struct WorkersReading {
    pub(crate) processor: ProcessorStatus,
    pub(crate) directions: [DirectionReading; 2],
    /// What each worker had sent of its logs.
    pub(crate) sent: Vec<Sent>,
}

impl WorkersReading {
    /// Returns what the workers of a run did together.
    pub(crate) fn of(mut workers: Vec<WorkerReading>) -> WorkersReading {
        if workers.len() == 1
            && let Some(only) = workers.pop()
        {
            return WorkersReading {
                processor: only.processor,
                directions: only.directions,
                sent: vec![only.sent],
            };
        }
        // They answer at their own times, but each keeps its place.
        workers.sort_by_key(|reading| reading.worker);
        let mut sent = vec![Sent::default(); workers.last().map_or(0, |last| last.worker + 1)];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut processor = None;
        for one in workers {
            sent[one.worker] = one.sent;
            processor = Some(match processor {
                None => one.processor,
                Some(all) => together(all, one.processor),
            });
            let [from_left, from_right] = one.directions;
            left.push((one.worker, from_left));
            right.push((one.worker, from_right));
        }
        WorkersReading {
            processor: processor.expect("there is a worker"),
            directions: [DirectionReading::sum(left), DirectionReading::sum(right)],
            sent,
        }
    }
}

fn together(one: ProcessorStatus, other: ProcessorStatus) -> ProcessorStatus {
    ProcessorStatus {
        realtime: one.realtime && other.realtime,
        wake_ups: one.wake_ups + other.wake_ups,
        late_wake_ups: one.late_wake_ups + other.late_wake_ups,
        latest_us: one.latest_us.max(other.latest_us),
        stalls: one.stalls + other.stalls,
        longest_stall_us: one.longest_stall_us.max(other.longest_stall_us),
        waited_s: one.waited_s.zip(other.waited_s).map(|(one, other)| one + other),
    }
}

impl DirectionReading {
    /// Adds up what workers did in a direction.
    fn sum(workers: Vec<(usize, DirectionReading)>) -> DirectionReading {
        let count = workers.len();
        let mut statistics = Statistics::default();
        let mut trees = Vec::new();
        let mut all: Option<DirectionReading> = None;
        for (number, mut worker) in workers {
            worker.rates = worker.rates.of_worker(number as u32 + 1);
            let mut nodes = std::mem::take(&mut worker.tree).nodes;
            for node in &mut nodes {
                node.depth += 1;
                node.worker = number;
            }
            if let Some(root) = nodes.first_mut() {
                root.class = Some(number as u32 + 1);
                statistics += &root.statistics;
            }
            trees.extend(nodes);
            match &mut all {
                None => all = Some(worker),
                Some(all) => all.add(worker),
            }
        }
        let mut all = all.expect("there is a worker");
        let root = NodeReading {
            worker: 0,
            depth: 0,
            name: SHARDED.into(),
            class: None,
            host: None,
            at: trees.first().expect("each worker has a tree").at,
            number: NodeNumber::NONE,
            statistics,
            variables: vec![("shards".into(), Variable::Integer(count as i64))],
            class_states: Vec::new(),
        };
        all.tree = TreeReading::of_nodes(iter::once(root).chain(trees).collect());
        all
    }

    fn add(&mut self, other: DirectionReading) {
        self.counters += other.counters;
        self.rate_bps += other.rate_bps;
        self.in_line += other.in_line;
        self.missed += other.missed;
        self.rates.include(other.rates);
        self.sojourn
            .add(&other.sojourn)
            .expect("both have the same bounds");
    }
}
