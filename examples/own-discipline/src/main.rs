//! The program `fairgate` with one additional discipline.

use std::process::ExitCode;

use fairgate::registry::Registry;
use own_discipline::early_head;

fn main() -> ExitCode {
    let mut registry = Registry::builtin();
    registry
        .add(&early_head::DESCRIPTION)
        .expect("no discipline of the library has this name");
    fairgate_cli::main_with(&registry)
}
