//! Notes on a script that is carried over: what the kernel does with a value or a line, and the tree too.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The notes on a script.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    sentences: Vec<(Range<usize>, String, bool)>,
    /// Sentences about several places each.
    lists: Vec<(Vec<usize>, String)>,
    files: Vec<PathBuf>,
}

/// A sentence about a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line that it is about, counted from 1; `None` for the whole script.
    pub line: Option<usize>,
    /// What the kernel does, and the tree too.
    pub text: String,
    /// Whether it is about hosts behind translated addresses. A run on one interface knows them.
    pub is_of_nat: bool,
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
        self.sentences.push((location, text, false));
    }

    /// Adds a sentence about hosts behind translated addresses.
    pub(crate) fn add_of_nat(&mut self, location: Range<usize>, text: String) {
        self.sentences.push((location, text, true));
    }

    /// Returns whether the script asks for hosts behind translated addresses.
    pub(crate) fn has_nat(&self) -> bool {
        self.sentences.iter().any(|(_, _, is_of_nat)| *is_of_nat)
    }

    /// Adds a sentence about several lines.
    pub(crate) fn add_lines(&mut self, locations: &[Range<usize>], text: &str) {
        if !locations.is_empty() {
            let starts = locations.iter().map(|location| location.start).collect();
            self.lists.push((starts, text.to_owned()));
        }
    }

    /// Notes that the script names a file, whose text belongs to it.
    pub(crate) fn add_file(&mut self, path: impl AsRef<Path>) {
        self.files.push(path.as_ref().to_owned());
    }

    /// Returns the files that the script names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// Adds the notes of another device of the same script.
    pub(crate) fn add_all(&mut self, other: &Notes) {
        self.sentences.extend(other.sentences.iter().cloned());
        self.lists.extend(other.lists.iter().cloned());
        self.files.extend(other.files.iter().cloned());
    }

    /// Returns the sentences in the order of the script.
    pub(crate) fn in_order(mut self, script: &str) -> Vec<Note> {
        self.sentences.sort_by_key(|(location, ..)| location.start);
        let line = |at: usize| script[..at].matches('\n').count() + 1;
        let note = |(location, text, is_of_nat): (Range<usize>, String, bool)| Note {
            line: Some(line(location.start)),
            text,
            is_of_nat,
        };
        let list = |(starts, text): (Vec<usize>, String)| {
            let lines: Vec<String> = starts.iter().map(|start| line(*start).to_string()).collect();
            let word = if lines.len() == 1 { "line" } else { "lines" };
            Note {
                line: None,
                is_of_nat: false,
                text: format!("{word} {}: {text}", lines.join(", ")),
            }
        };
        let lists = self.lists.into_iter().map(list);
        self.sentences.into_iter().map(note).chain(lists).collect()
    }
}
