//! The program `fairgate` with the disciplines of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairgate_cli::main_with(&fairgate_config::Registry::builtin())
}
