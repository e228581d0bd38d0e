//! Tests of the translation of scripts.

mod generators;
mod mistakes;
mod pipes;
mod rules;
mod schedulers;

use fairgate_config::{Document, FileError};

use super::Script;
use crate::tc::Device;

fn read(text: &str) -> Result<Vec<super::Tree>, FileError> {
    Script::parse("test.ipfw", text, Device::default())?.trees()
}

/// Returns the trees as they are printed, each after its name.
fn trees(text: &str) -> Vec<String> {
    let trees = read(text).unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()));
    let shown = trees.iter().map(|tree| {
        let printed = tree.spec.to_toml(&tree.name());
        let document =
            Document::parse("printed", &printed).unwrap_or_else(|error| panic!("{error:?} in\n{printed}"));
        assert_eq!(document.queue(&tree.name()), Some(&tree.spec), "{printed}");
        let priomap = " priomap=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
        format!("{}: {}", tree.name(), tree.spec).replace(priomap, "")
    });
    shown.collect()
}

fn tree(text: &str) -> String {
    let [tree] = &trees(text)[..] else {
        panic!("one tree")
    };
    tree.clone()
}

/// Returns the first mistake: line, column, message, remedy.
fn mistake(text: &str) -> (usize, usize, String, String) {
    let error = read(text).map(|_| ()).expect_err("there is a mistake");
    let problem = &error.problems()[0];
    assert!(
        !problem.help.is_empty() && !problem.label.is_empty(),
        "{problem:?}"
    );
    let (line, column) = problem.position();
    (line, column, problem.message.clone(), problem.help.clone())
}

/// Returns the warnings of a script that is taken.
fn warnings(text: &str) -> Vec<String> {
    let trees = read(text).unwrap_or_else(|error| panic!("{text}: {:?}", error.problems()));
    let warnings = trees.iter().flat_map(|tree| &tree.warnings);
    warnings.map(ToString::to_string).collect()
}
