//! Notes on a script that is carried over: what the kernel does with a value or a line, and the tree too.

use std::ops::Range;

/// The notes on a script.
#[derive(Clone, Default)]
pub(super) struct Notes(Vec<(Range<usize>, String)>);

impl Notes {
    /// Adds a sentence about what is written at `location`.
    pub(super) fn add(&mut self, location: Range<usize>, text: String) {
        self.0.push((location, text));
    }

    /// Adds the notes of another device of the same script.
    pub(super) fn add_all(&mut self, other: &Notes) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns the sentences in the order of the script, each with its line.
    pub(super) fn in_order(mut self, script: &str) -> Vec<String> {
        self.0.sort_by_key(|(location, _)| location.start);
        let line = |at: usize| script[..at].matches('\n').count() + 1;
        self.0
            .into_iter()
            .map(|(location, text)| format!("line {}: {text}", line(location.start)))
            .collect()
    }
}
