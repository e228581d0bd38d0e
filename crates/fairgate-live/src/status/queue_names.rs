//! What users call the queues that packets were in.

use std::borrow::Cow;
use std::collections::HashMap;

use fairgate::NodeNumber;
use fairgate_run_api::SHARDED;

use super::class_names::ClassNames;
use super::path::Path;
use super::reading::RunReading;
use crate::packets::QueueName;

/// The queues of a run, by worker, side and number.
pub(crate) struct QueueNames {
    /// Path of classes and discipline of each.
    queues: HashMap<(usize, usize, NodeNumber), (String, Cow<'static, str>)>,
    class_names: [ClassNames; 2],
    has_workers: bool,
}

impl QueueNames {
    pub(crate) fn of(reading: &RunReading) -> QueueNames {
        let mut queues = HashMap::new();
        for (side, direction) in reading.directions.iter().enumerate() {
            let mut path = Path::default();
            for node in &direction.tree.nodes {
                let path = path.enter(node);
                if node.number != NodeNumber::NONE {
                    queues.insert(
                        (node.worker, side, node.number),
                        (path.to_owned(), node.name.clone()),
                    );
                }
            }
        }
        let roots = reading
            .directions
            .iter()
            .map(|direction| direction.tree.nodes.first());
        QueueNames {
            queues,
            class_names: reading.plan.class_names.clone(),
            has_workers: roots.flatten().any(|root| root.name == SHARDED),
        }
    }

    /// Returns what a queue is called.
    pub(crate) fn name(&self, worker: usize, side: usize, node: u32) -> QueueName {
        let found = self.queues.get(&(worker, side, NodeNumber::from_raw(node)));
        let Some((class, discipline)) = found else {
            return QueueName::default();
        };
        QueueName {
            class: class.clone(),
            discipline: discipline.clone(),
            subscriber: self.class_names[side].of_path(class, self.has_workers).cloned(),
        }
    }
}
