//! The trees of a script: one for each direction and interface.

use std::path::PathBuf;
use std::sync::Arc;

use fairgate_config::language::{Problems, check};
use fairgate_config::{FileError, Spec};

use super::rule::{Direction, Rule};
use super::script::Script;
use super::translate;
use crate::script::notes::Note;

/// A tree that a script describes.
#[derive(Debug)]
pub struct Tree {
    /// The interface that rules name, if they name one.
    pub interface: Option<String>,
    /// The direction of the packets.
    pub direction: Direction,
    /// The tree.
    pub spec: Spec,
    /// What lines do not mean here: those about the tree, and in the first tree all others.
    pub warnings: Vec<Note>,
    /// The files that the script names: the profiles of its pipes.
    pub files: Vec<PathBuf>,
}

impl Tree {
    /// Returns a name for the tree: the interface, with `/in` for arriving packets.
    pub fn name(&self) -> String {
        match (&self.interface, self.direction) {
            (Some(interface), Direction::Out) => interface.clone(),
            (Some(interface), Direction::In) => format!("{interface}/in"),
            (None, Direction::Out) => "out".to_owned(),
            (None, Direction::In) => "in".to_owned(),
        }
    }
}

impl Script {
    /// Returns the trees: one for each direction and interface that rules name.
    ///
    /// # Errors
    /// If parts of the script contradict one another or can't be translated.
    pub fn trees(&self) -> Result<Vec<Tree>, FileError> {
        let mut problems = Problems::new(Arc::clone(&self.source));
        let parts = self.parts();
        self.check_uses(&parts, &mut problems);
        let mut trees = Vec::new();
        let mut notes = self.notes.clone();
        self.note_unused(&mut notes);
        for part in parts.iter().filter(|_| problems.count() == 0).collect::<Vec<_>>() {
            let rules: Vec<&Rule> = self
                .rules
                .iter()
                .filter(|rule| self.covers(rule, *part))
                .collect();
            let draft = translate::tree(self, &rules, &mut problems, &mut notes);
            // A setting that could not be read would be reported as missing, too.
            let draft = draft.filter(|_| problems.count() == 0);
            if let Some(spec) = draft.and_then(|draft| check(&draft, &mut problems)) {
                trees.push(Tree {
                    interface: part.interface.map(str::to_owned),
                    direction: part.direction,
                    spec,
                    warnings: std::mem::take(&mut notes).in_order(self.source.inner()),
                    files: self.notes.files(),
                });
            }
        }
        problems.unless_any(trees)
    }
}
