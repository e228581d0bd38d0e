//! The program `fairgate` with the disciplines of the library.

use std::process::ExitCode;

/// The state of thousands of flows fits in no cache. mimalloc keeps it closer together than the C library.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    fairgate_cli::main_with(&fairgate_config::Registry::builtin())
}
