//! Notes on a script that is carried over: what the kernel does with a value or a line, and the tree too.

use std::fmt;
use std::ops::Range;

/// The notes on a script.
#[derive(Clone, Default)]
pub(crate) struct Notes(Vec<(Range<usize>, String)>);

/// A sentence about a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line that it is about, counted from 1; `None` for the whole script.
    pub line: Option<usize>,
    /// What the kernel does, and the tree too.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl Notes {
    /// Adds a sentence about what is written at `location`.
    pub(crate) fn add(&mut self, location: Range<usize>, text: String) {
        self.0.push((location, text));
    }

    /// Adds the notes of another device of the same script.
    pub(crate) fn add_all(&mut self, other: &Notes) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns the sentences in the order of the script.
    pub(crate) fn in_order(mut self, script: &str) -> Vec<Note> {
        self.0.sort_by_key(|(location, _)| location.start);
        let line = |at: usize| script[..at].matches('\n').count() + 1;
        let note = |(location, text): (Range<usize>, String)| Note {
            line: Some(line(location.start)),
            text,
        };
        self.0.into_iter().map(note).collect()
    }
}
