//! The paths of classes to the disciplines of a reading.

use super::reading::NodeReading;

/// The path of classes to the discipline that was read last, like `1/30`.
#[derive(Default)]
pub(super) struct Path {
    text: String,
    /// The length of the path to each discipline from the root on.
    lengths: Vec<usize>,
}

impl Path {
    /// Goes to the next discipline of a reading.
    pub(super) fn enter(&mut self, node: &NodeReading) -> &str {
        self.lengths.truncate(node.depth);
        self.text.truncate(self.lengths.last().copied().unwrap_or(0));
        if let Some(class) = node.class {
            if !self.text.is_empty() {
                self.text.push('/');
            }
            self.text.push_str(&class.to_string());
        }
        self.lengths.push(self.text.len());
        &self.text
    }
}
