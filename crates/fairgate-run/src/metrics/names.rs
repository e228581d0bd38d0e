//! Which classes have names of their own, if there is not enough room for all: the first ones that packets
//! come to, each as long as it exists.

use std::collections::HashSet;

use fairgate_run_api::NodeStatus;

/// The classes of a direction that have names.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Frees the names of classes that are gone.
    pub(crate) fn forget_removed(&mut self, present: &HashSet<&str>) {
        self.0.retain(|path| present.contains(path.as_str()));
    }

    /// Returns whether a class has a name.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    /// Returns whether a class has a name. If it has none and less than `most` classes have one, it gets one.
    pub(crate) fn give(&mut self, path: &str, most: usize) -> bool {
        if !self.has(path) && self.0.len() < most {
            self.0.insert(path.to_owned());
        }
        self.has(path)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A discipline, and the path and number of classes to it.
pub(crate) struct Node<'s> {
    /// The numbers of classes from the root on, as `20/3`. It is empty for the root.
    pub(crate) path: String,
    pub(crate) depth: usize,
    pub(crate) status: &'s NodeStatus,
}

/// Lists a discipline and those below it.
pub(crate) fn nodes(root: &NodeStatus) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    collect(root, String::new(), 0, &mut nodes);
    nodes
}

fn collect<'s>(status: &'s NodeStatus, path: String, depth: usize, nodes: &mut Vec<Node<'s>>) {
    for class in &status.classes {
        let number = class.class.unwrap_or(0);
        let below = match path.is_empty() {
            true => number.to_string(),
            false => format!("{path}/{number}"),
        };
        collect(class, below, depth + 1, nodes);
    }
    nodes.push(Node { path, depth, status });
}
