//! What users call the queues that packets were in.

use std::collections::HashMap;

use fairgate::NodeNumber;

use super::path::Path;
use super::reading::RunReading;

/// Path of classes and discipline of each queue, by worker, side and number.
pub(super) struct QueueNames(HashMap<(usize, usize, NodeNumber), (String, &'static str)>);

impl QueueNames {
    pub(super) fn of(reading: &RunReading) -> QueueNames {
        let mut names = HashMap::new();
        for (side, direction) in reading.directions.iter().enumerate() {
            let mut path = Path::default();
            for node in &direction.tree.nodes {
                let path = path.enter(node);
                if node.number != NodeNumber::NONE {
                    names.insert((node.worker, side, node.number), (path.to_owned(), node.name));
                }
            }
        }
        QueueNames(names)
    }

    /// Returns path and discipline of a queue. Both are empty if it is not there any more.
    pub(super) fn name(&self, worker: usize, side: usize, node: u32) -> (String, &'static str) {
        let found = self.0.get(&(worker, side, NodeNumber::from_raw(node)));
        found.cloned().unwrap_or_default()
    }
}
