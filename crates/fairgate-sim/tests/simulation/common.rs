//! What the tests of scenario files have in common.

use fairgate_config::{Document, FileError};
use fairgate_sim::{Results, Scenario, Simulation};

/// Reads a scenario file. Its queues are valid.
pub(crate) fn read(text: &str) -> Result<Scenario, FileError> {
    Scenario::read(&Document::parse("test.toml", text).expect("the queues are valid"))
}

/// Runs a scenario file that has no mistakes.
pub(crate) fn run(text: &str) -> Results {
    let scenario = read(text).expect("the file has no mistakes");
    Simulation::new(&scenario).unwrap().run().unwrap()
}
